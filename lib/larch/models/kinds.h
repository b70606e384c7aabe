// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace larch::models {

/// Names the program that uses a container of this kind, as the end of an error about a wrong one:
/// "hdn-detect reads it".
std::string use_of_kind(std::string_view kind);

/// A summary for people of a model of any kind, and all of it as JSON text. Throw InputError for a
/// file that is none, or a checkpoint.
std::string describe_any(const std::string& path);
std::string export_any(const std::string& path);

}  // namespace larch::models
