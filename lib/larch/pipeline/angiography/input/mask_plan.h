// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/angiography.h"
#include "larch/io/xa/angiogram.h"

// The mask of each frame of an angiogram: that of the file (PS3.3, C.7.6.10) or of the user.
namespace larch::pipeline {

/// The groups in the order of their first frames; no frame is in two of them.
struct MaskPlan {
  std::vector<dsa::MaskGroup> groups{};
  std::string source{};                 ///< what decided it, for people
  std::vector<std::string> warnings{};  ///< what the user should know
};

/// "1-3,7" as the frames 0, 1, 2 and 6: rising, each once. Throws UsageError, which names `flag`,
/// for another text, and for frames beyond `count` (0: not known yet).
std::vector<int> parse_frames(const std::string& text, int64_t count, const std::string& flag);

/// As the Mask Subtraction Sequence of the file says, for those of the frames `wanted`:
/// - AVG_SUB: without ranges all frames, up to the last that can be averaged;
/// - TID: without ranges all frames whose mask frame is there;
/// - REV_TID: the mask of frame f is 2 first - tid_offset - f, where `first` is that of the first
///   range.
/// A frame that several items name belongs to the first of them, with a warning. Empty if no item
/// subtracts anything. Each item agrees with the file, as its reader has checked. Throws InputError
/// for Angiogram::mask_problem and for frames whose masks the file does not have, UsageError if the
/// sequence is for other frames than those of `wanted` alone.
MaskPlan plan_by_file(const Angiogram& about, const std::vector<int>& wanted);

}  // namespace larch::pipeline
