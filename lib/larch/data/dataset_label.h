// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace larch {

/// A label of a data set, or a region of several labels.
struct DatasetLabel {
  std::string name;
  std::vector<int32_t> values;
};

/// The names that nnU-Net gives a meaning: voxels that nobody has annotated, and those around the
/// structures. Neither is a structure.
inline constexpr const char* kIgnoreName = "ignore";
inline constexpr const char* kBackgroundName = "background";

}  // namespace larch
