// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "larch/config/fields.h"

namespace larch {

/// Describes a model in the words of its makers; results do not depend on it.
struct ModelCard {
  std::string name, licence;
  std::string intended_use = "research, not a medical device";

  template <class F>
  void fields(F&& f) {
    f(Field{"name", name, "name of the model"},
      Field{"licence", licence, "under which it may be used, such as CC-BY-4.0"},
      Field{"intended_use", intended_use, "what it is for"});
  }
};

/// The same in a model, and what it learned from. Older models have none of it.
struct ModelAbout {
  ModelCard card{{}, {}, {}};
  /// SHA-256 of the digests of the cases, in their order, a line each.
  std::string training_list{};
};

/// The origin of a model. It names neither paths nor devices, threads or times, so that its file
/// depends on data and settings alone.
struct ModelInfo {
  std::string tool_version;
  std::string training_config_json;
  std::vector<std::string> case_digests;
  uint64_t seed = 0;
  std::vector<std::pair<std::string, double>> validation;
  ModelAbout about{};
};

}  // namespace larch
