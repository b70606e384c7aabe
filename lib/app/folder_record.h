// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "larch/config/config.h"

namespace larch::detail {

/// The record of a run into a folder that other runs write into as well.
struct FolderRecord {
  std::string path;                     ///< "<folder>/larch.json", or a part of its own
  config::Json json;                    ///< what to write there
  std::vector<std::string> taken_in{};  ///< parts that are in it: to be removed afterwards
};

/// Earlier runs that larch.json tells of, and their bytes as JSON; the oldest are left out.
constexpr size_t kMostEarlierRuns = 1000;
constexpr size_t kMostEarlierBytes = size_t{4} << 20;

/// larch.json is the sidecar of the run that ended last. Its object "Larch" has the list
/// "EarlierRuns": the objects "Larch" of the runs before it, the latest first. For use while the
/// lock of the folder is held, until the file is written; without it (`has_lock` false) the record
/// goes to the part ".larch/run-<random>.json", which the next run takes in. A larch.json that
/// cannot be understood is kept under another name; `warn` says so. Throws OutputError.
FolderRecord folder_record(const std::string& folder, config::Json sidecar, bool has_lock,
                           const std::function<void(const std::string&)>& warn);

}  // namespace larch::detail
