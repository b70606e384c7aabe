// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace larch::metrics {

/// A segmentation and what it is compared with.
struct Pair {
  std::string id;  ///< column `id`, else the name of the prediction
  std::string prediction, reference;
};

/// The rows of a list with a header line and the columns `prediction`, `reference` and optionally
/// `id`, in any order; other columns are ignored. Columns are parted by tabs, or by commas if the
/// name of the list ends in .csv (no quotes). Names of files are returned relative to the list's
/// folder, unless they are absolute. `path` is the name of the list, `text` what it holds.
/// Throws InputError with the line: missing column, wrong number of fields, empty name, an id that
/// repeats, no rows.
std::vector<Pair> parse_pair_list(const std::string& path, const std::string& text);

}  // namespace larch::metrics
