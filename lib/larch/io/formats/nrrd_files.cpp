// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/formats/nrrd_files.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <utility>

#include <sys/stat.h>

#include "larch/io/image/message.h"
#include "larch/io/image/text_header.h"

namespace larch::io {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMostDataFiles = 100000;

[[noreturn]] void bad_line(const std::string& path) {
  bad(path, "the header line 'data file' is damaged or not supported");
}

/// The names of a pattern such as "slice%03d.raw 1 40 1": one conversion of an integer, and
/// nothing that printf would take for another.
std::vector<std::string> names_of_pattern(const std::string& path,
                                          const std::vector<std::string>& words) {
  const std::string& pattern = words[0];
  const size_t percent = pattern.find('%');
  size_t at = percent + 1;
  const bool zeros = at < pattern.size() && pattern[at] == '0';
  size_t width = 0;
  for (; at < pattern.size() && std::isdigit(static_cast<unsigned char>(pattern[at])); ++at) {
    width = std::min<size_t>(width * 10 + static_cast<size_t>(pattern[at] - '0'), 1000);
  }
  const bool one = at < pattern.size() && (pattern[at] == 'd' || pattern[at] == 'u') && width < 100;
  if (!one || pattern.find('%', at) != std::string::npos || words.size() > 5) {
    bad_line(path);
  }
  double range[3] = {};
  for (size_t i = 0; i < 3; ++i) {
    const auto value = number_of_word(words[i + 1]);
    if (!value || std::abs(*value) > 1e9 || *value != std::floor(*value)) bad_line(path);
    range[i] = *value;
  }
  const double count = range[2] == 0 ? 0 : std::floor((range[1] - range[0]) / range[2]) + 1;
  if (!(count >= 1 && count <= kMostDataFiles)) bad_line(path);
  std::vector<std::string> names;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const auto value = static_cast<int64_t>(range[0] + static_cast<double>(i) * range[2]);
    if (value < 0 && pattern[at] == 'u') bad_line(path);
    std::string number = std::to_string(value);  // whose sign counts to the width, as for printf
    const size_t padding = width - std::min(width, number.size());
    number.insert(zeros && value < 0 ? 1 : 0, padding, zeros ? '0' : ' ');
    names.push_back(pattern.substr(0, percent) + number + pattern.substr(at + 1));
  }
  return names;
}

[[noreturn]] void bad_repeat(const std::string& path, const std::string& name) {
  bad(path,
      "the header names '" + name.substr(0, 200) +
          "' twice as a file of voxels, perhaps by a link; repair its list, or write one file");
}

// Names are shown by messages, and no terminal should obey them.
void check_names(const std::string& path, const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::iscntrl(c); })) {
      bad_line(path);
    }
    if (!seen.insert(fs::path(name).lexically_normal().string()).second) bad_repeat(path, name);
  }
}

// Links to a file are that file.
class SeenFiles {
 public:
  bool add(const std::string& file) {
    struct stat status {};
    return ::stat(file.c_str(), &status) != 0 ||
           seen_.insert({status.st_dev, status.st_ino}).second;
  }

 private:
  std::set<std::pair<dev_t, ino_t>> seen_;
};

}  // namespace

std::vector<std::string> nrrd_data_files(const std::string& path, const std::string& value,
                                         const std::vector<std::string>& lines) {
  const std::vector<std::string> words = words_of(value);
  std::vector<std::string> names{value};
  if (words[0] == "LIST") {
    names = lines;
  } else if (words.size() >= 4 && words[0].find('%') != std::string::npos) {
    names = names_of_pattern(path, words);
  }
  if (names.empty() || names.size() > kMostDataFiles) bad_line(path);
  check_names(path, names);
  SeenFiles seen;
  std::vector<std::string> files;
  for (const std::string& name : names) {
    const std::string file = (fs::path(path).parent_path() / name).string();
    std::error_code error;
    if (!fs::is_regular_file(file, error)) {
      bad(path, "the voxels should stand in '" + file + "', which is missing");
    }
    if (fs::equivalent(file, path, error)) {
      bad(path, "the header names itself as the file of the voxels; repair the line 'data file'");
    }
    if (!seen.add(file)) bad_repeat(path, name);
    files.push_back(file);
  }
  return files;
}

}  // namespace larch::io
