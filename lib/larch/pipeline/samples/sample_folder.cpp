// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/samples/sample_folder.h"

#include <cstdio>
#include <filesystem>

#include "larch/core/error.h"

namespace larch::pipeline {

namespace fs = std::filesystem;

std::string sample_case_name(int number) {
  char text[32];
  std::snprintf(text, sizeof text, "case_%03d", number);
  return text;
}

std::string in_folder(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

std::shared_ptr<void> make_folders(const std::vector<std::string>& folders) {
  const auto remove_empty = [folders](void*) {
    std::error_code ignored;
    for (auto it = folders.rbegin(); it != folders.rend(); ++it) fs::remove(*it, ignored);
  };
  std::shared_ptr<void> owner(nullptr, remove_empty);
  for (const std::string& folder : folders) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw OutputError("cannot make folder '" + folder + "': " + error.message());
  }
  return owner;
}

}  // namespace larch::pipeline
