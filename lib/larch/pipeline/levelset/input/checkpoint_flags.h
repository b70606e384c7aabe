// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/config/fields.h"

namespace larch::pipeline {

/// Where a segmentation on its way is kept, and whether it goes on from there: a group of flags
/// (larch/cases/option_groups.h).
struct CheckpointFlags {
  bool resume = false, keep = false;
  std::string file{};

  template <class F>
  void fields(F&& f) {
    f(Field{"resume", resume,
            "go on from the checkpoint of an interrupted or ended run; begin where there is none"}
          .no_effect_on_results(),
      Field{"checkpoint", file,
            "file for --resume (default: the name of the first output and .ckpt)"}
          .no_effect_on_results(),
      Field{"keep-checkpoint", keep,
            "write the checkpoint at the end too, and leave it: --resume with a larger "
            "max_iterations goes on from it"}
          .no_effect_on_results());
  }
  bool are_given() const { return resume || keep || !file.empty(); }
};

}  // namespace larch::pipeline
