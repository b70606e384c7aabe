// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer where only known inputs are to be run: fuzz_nifti FILE_OR_FOLDER...
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "larch/files/file.h"
#include "tests/fuzz/fuzz.h"

namespace {
namespace fs = std::filesystem;

std::vector<std::string> files_of(int count, char** names) {
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    if (!fs::is_directory(names[i])) {
      files.emplace_back(names[i]);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(names[i]))
      files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> files = files_of(argc, argv);
  for (const std::string& file : files) {
    // The last line printed names the input that ended the process.
    std::fprintf(stderr, "%s\n", file.c_str());
    const std::string bytes = larch::read_file(file);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs\n", files.size());
  return files.empty() ? 1 : 0;
}
