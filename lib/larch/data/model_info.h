// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace larch {

/// The origin of a model. It names neither paths nor devices, threads or times, so that its file
/// depends on data and settings alone.
struct ModelInfo {
  std::string tool_version;
  std::string training_config_json;
  std::vector<std::string> case_digests;
  uint64_t seed = 0;
  std::vector<std::pair<std::string, double>> validation;
};

}  // namespace larch
