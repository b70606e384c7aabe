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

struct TextHeader {
  std::map<std::string, std::string> values;  // keys in lower case
  int64_t bytes = 0;                          // where the lines end
};

// "key = value" or "key: value" lines until `last_key` or an empty line.
TextHeader read_lines(const std::string& path, char separator, const std::string& last_key) {
  if (!fs::is_regular_file(path)) bad(path, "no such file; check the path");
  std::ifstream in(path, std::ios::binary);
  TextHeader header;
  for (std::string line; static_cast<size_t>(header.bytes) < kLongestHeader;) {
    line.clear();
    for (char c = 0; line.size() < kLongestHeader && in.get(c) && c != '\n';) line.push_back(c);
    header.bytes += static_cast<int64_t>(line.size()) + 1;
    if (line.find('\0') != std::string::npos) bad(path, "the header is damaged (not text)");
    if (!in || (trimmed(line).empty() && last_key.empty())) break;
    const size_t at = line.find(separator);
    if (at == std::string::npos || line[0] == '#') continue;
    std::string key = trimmed(line.substr(0, at));
    for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    header.values[key] = trimmed(line.substr(at + 1));
    if (key == last_key) break;
  }
  return header;
}

std::vector<double> numbers(const std::string& text) {
  std::vector<double> all;
  const char* at = text.c_str();
  for (char* end = nullptr; all.size() < 64; at = end) {
    const double value = std::strtod(at, &end);
    if (end == at) break;
    all.push_back(value);
  }
  return all;
}

void check_sizes(const std::string& path, const std::string& dimension, const std::string& sizes) {
  const std::vector<double> count = numbers(dimension);
  if (count.size() != 1 || !(count[0] >= 1 && count[0] <= 5) || count[0] != std::floor(count[0])) {
    bad(path, "the header gives '" + dimension + "' dimensions; it is damaged");
  }
  const std::vector<double> all = numbers(sizes);
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

void check_numbers(const std::string& path, const TextHeader& header, const char* key, size_t least,
                   size_t most) {
  const auto found = header.values.find(key);
  if (found == header.values.end()) return;
  const std::vector<double> all = numbers(found->second);
  bool finite = all.size() >= least && all.size() <= most;
  for (const double value : all) finite = finite && std::isfinite(value);
  if (!finite) bad(path, std::string("the header line '") + key + "' is damaged");
}

std::string value_of(const TextHeader& header, const char* key) {
  const auto found = header.values.find(key);
  return found == header.values.end() ? std::string() : found->second;
}

}  // namespace

int64_t check_meta_text(const std::string& path) {
  const TextHeader header = read_lines(path, '=', "elementdatafile");
  const std::string data = value_of(header, "elementdatafile");
  if (data.empty()) bad(path, "not a MetaImage: the header has no line 'ElementDataFile'");
  check_sizes(path, value_of(header, "ndims"), value_of(header, "dimsize"));
  const auto n = static_cast<size_t>(numbers(value_of(header, "ndims"))[0]);
  for (const char* key : {"offset", "origin", "position", "elementspacing", "elementsize"}) {
    check_numbers(path, header, key, n, n);
  }
  for (const char* key : {"transformmatrix", "rotation", "orientation"}) {
    check_numbers(path, header, key, n * n, n * n);
  }
  for (const char* key : {"elementnumberofchannels", "headersize", "compresseddatasize"}) {
    check_numbers(path, header, key, 1, 1);
  }
  const std::string channels = value_of(header, "elementnumberofchannels");
  if (!channels.empty() && !(numbers(channels)[0] >= 1 && numbers(channels)[0] <= 64)) {
    bad(path, "the header gives " + channels + " components a voxel; give one");
  }
  const std::string compressed = value_of(header, "compresseddata");
  const bool attached = data == "LOCAL" || data == "local";
  const int64_t bytes = data_bytes(path, data, attached) - (attached ? header.bytes : 0);
  const bool deflated = !compressed.empty() && (compressed[0] == 'T' || compressed[0] == 't');
  return deflated ? bytes * kMostDeflate : bytes;
}

int64_t check_nrrd_text(const std::string& path) {
  const TextHeader header = read_lines(path, ':', "");
  std::ifstream in(path, std::ios::binary);
  char magic[4] = {};
  in.read(magic, 4);
  if (std::string(magic, 4) != "NRRD") bad(path, "not an NRRD file: it does not start with NRRD");
  check_sizes(path, value_of(header, "dimension"), value_of(header, "sizes"));
  std::string data = value_of(header, "data file");
  if (data.empty()) data = value_of(header, "datafile");
  const std::string encoding = value_of(header, "encoding");
  const int64_t bytes = data_bytes(path, data, data.empty()) - (data.empty() ? header.bytes : 0);
  const bool raw = encoding == "raw";
  const bool text = encoding == "txt" || encoding == "text" || encoding == "ascii";
  return raw ? bytes : text ? bytes * 8 : bytes * 8192;
}

void check_picture(const std::string& path) {
  const std::string bytes = read_file(path);
  const std::string ending = file_extension(path);
  const bool png = ending == ".png", jpeg = ending == ".jpg" || ending == ".jpeg";
  const bool truncated = (png && bytes.find("IEND") == std::string::npos) ||
                         (jpeg && bytes.find("\xff\xd9") == std::string::npos);
  if (bytes.empty() || truncated) bad(path, "the picture is truncated; copy or export it again");
}

}  // namespace larch::io
