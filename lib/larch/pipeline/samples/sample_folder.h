// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace larch::pipeline {

/// "case_007".
std::string sample_case_name(int number);

/// A name below a folder: "samples" and "samples/" give the same.
std::string in_folder(const std::string& folder, const std::string& name);

/// Makes folders; when the last owner goes, those that are still empty are taken away again, the
/// last of them first. Throws OutputError.
std::shared_ptr<void> make_folders(const std::vector<std::string>& folders);

}  // namespace larch::pipeline
