// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/text_header.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <vector>

#include "larch/core/error.h"
#include "larch/io/file.h"
#include "larch/io/zstream.h"

namespace larch::io {
namespace {
namespace fs = std::filesystem;

constexpr size_t kLongestHeader = 1 << 20;

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw InputError("'" + path + "': " + what);
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// The most bytes that the data files can hold; a list or a pattern counts all files of the folder.
int64_t data_bytes(const std::string& path, const std::string& name, bool attached) {
  if (attached) return static_cast<int64_t>(fs::file_size(path));
  const fs::path folder = fs::path(path).parent_path();
  const fs::path data = fs::path(name).is_absolute() ? fs::path(name) : folder / name;
  std::error_code error;
  if (fs::is_regular_file(data, error)) return static_cast<int64_t>(fs::file_size(data));
  if (name.rfind("LIST", 0) != 0 && name.find('%') == std::string::npos) {
    bad(path, "the voxels should stand in '" + data.string() + "', which is missing");
  }
  int64_t sum = 0;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? fs::path(".") : folder)) {
    if (entry.is_regular_file()) sum += static_cast<int64_t>(entry.file_size());
  }
  return sum;
}

}  // namespace

std::string TextHeader::value(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() ? std::string() : found->second;
}

TextHeader read_text_header(const std::string& path, char separator, const std::string& last_key) {
  if (!fs::is_regular_file(path)) bad(path, "no such file; check the path");
  std::ifstream in(path, std::ios::binary);
  TextHeader header;
  for (std::string line; static_cast<size_t>(header.bytes) < kLongestHeader;) {
    line.clear();
    for (char c = 0; line.size() < kLongestHeader && in.get(c) && c != '\n';) line.push_back(c);
    header.bytes += static_cast<int64_t>(line.size()) + 1;
    if (line.find('\0') != std::string::npos) bad(path, "the header is damaged (not text)");
    if (trimmed(line).empty() && last_key.empty()) break;
    const size_t at = line.find(separator);
    if (at != std::string::npos && line[0] != '#') {
      std::string key = trimmed(line.substr(0, at));
      for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      header.values[key] = trimmed(line.substr(at + 1));
      if (key == last_key) break;
    }
    if (!in) break;
  }
  return header;
}

std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> all;
  const char* at = text.c_str();
  for (char* end = nullptr; all.size() < 64; at = end) {
    const double value = std::strtod(at, &end);
    if (end == at) break;
    all.push_back(value);
  }
  return all;
}

std::vector<double> checked_sizes(const std::string& path, const std::string& dimension,
                                  const std::string& sizes) {
  const std::vector<double> count = numbers_of(dimension);
  if (count.size() != 1 || !(count[0] >= 1 && count[0] <= 5) || count[0] != std::floor(count[0])) {
    bad(path, "the header gives '" + dimension + "' dimensions; it is damaged");
  }
  std::vector<double> all = numbers_of(sizes);
  if (all.size() != static_cast<size_t>(count[0])) {
    bad(path, "the header gives " + dimension + " dimensions and the sizes '" + sizes +
                  "'; it is damaged");
  }
  double product = 1;
  for (const double n : all) {
    product *= n;
    if (!(n >= 1 && n <= std::numeric_limits<int32_t>::max()) || n != std::floor(n) ||
        product > 1e14) {
      bad(path, "the header gives the sizes '" + sizes + "'; the file is empty or damaged");
    }
  }
  return all;
}

int64_t check_nrrd_text(const std::string& path) {
  const TextHeader header = read_text_header(path, ':', "");
  std::ifstream in(path, std::ios::binary);
  char magic[4] = {};
  in.read(magic, 4);
  if (std::string(magic, 4) != "NRRD") bad(path, "not an NRRD file: it does not start with NRRD");
  checked_sizes(path, header.value("dimension"), header.value("sizes"));
  std::string data = header.value("data file");
  if (data.empty()) data = header.value("datafile");
  const std::string encoding = header.value("encoding");
  const int64_t bytes = data_bytes(path, data, data.empty()) - (data.empty() ? header.bytes : 0);
  const bool raw = encoding == "raw";
  const bool text = encoding == "txt" || encoding == "text" || encoding == "ascii";
  return raw ? bytes : text ? bytes * 8 : bytes * 8192;
}

}  // namespace larch::io
