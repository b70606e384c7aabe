// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/formats/text_header.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"

namespace larch::io {
namespace {

constexpr size_t kLongestHeader = 16 << 20;
constexpr size_t kMaximumPlainLines = 200000;  // far more than a header has
constexpr size_t kMaximumNumbers = 64;

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string exact_number(double value) {
  return number_text(value + 0.0, 17);
}

}  // namespace

std::string TextHeader::value(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() ? std::string() : found->second;
}

void TextHeader::bad_line(const char* key) const {
  bad(path, std::string("the header line '") + key + "' is damaged or not supported");
}

TextHeader read_text_header(const std::string& path, char separator, const std::string& last_key) {
  if (!is_file(path)) bad(path, "no such file; check the path");
  std::ifstream in(path, std::ios::binary);
  TextHeader header;
  header.path = path;
  for (std::string line; static_cast<size_t>(header.bytes) < kLongestHeader;) {
    line.clear();
    for (char c = 0; line.size() < kLongestHeader && in.get(c) && c != '\n';) line.push_back(c);
    header.bytes += static_cast<int64_t>(line.size()) + 1;
    if (line.find('\0') != std::string::npos) bad(path, "the header is damaged (not text)");
    if (trimmed(line).empty() && last_key.empty()) return header;
    const size_t at = line.find(separator);
    const bool comment = line.starts_with('#') ||
                         (at != std::string::npos && separator == ':' && line[at + 1] == '=');
    if (comment && line.starts_with("Segment")) {
      header.segments[line.substr(7, at - 7)] = trimmed(line.substr(at + 2));
    }
    if (!comment && at == std::string::npos) {
      if (header.plain.size() >= kMaximumPlainLines) bad(path, "the header is damaged");
      header.plain.push_back(trimmed(line));
    } else if (!comment) {
      const std::string key = lower_case(trimmed(line.substr(0, at)));
      const std::string value = trimmed(line.substr(at + 1));
      const auto [place, added] = header.values.insert({key, value});
      if (!added && place->second != value) {
        bad(path, "the header says twice, and differently, what " + shown(key) + " is");
      }
      if (key == last_key) return header;
    }
    if (!in) return header;
  }
  bad(path, "the header is longer than 16 MiB; write the image without its metadata");
}

std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> all;
  for (const std::string& word : words_of(text)) {
    const auto value = number_of_word(word);
    if (!value || all.size() == kMaximumNumbers) return {};
    all.push_back(*value);
  }
  return all;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  constexpr const char* kSpace = " \t";
  for (size_t at = text.find_first_not_of(kSpace); at != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kSpace, end);
  }
  return words;
}

std::vector<std::string> quoted_words(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = text.find('"'); at != std::string::npos;) {
    const size_t end = text.find('"', at + 1);
    if (end == std::string::npos) break;
    words.push_back(text.substr(at + 1, end - at - 1));
    at = text.find('"', end + 1);
  }
  return words;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

std::optional<double> number_of_word(const std::string& word) {
  char* end = nullptr;
  const double value = parsed_number(word.c_str(), &end);
  if (word.empty() || *end != '\0') return std::nullopt;
  return value;
}

std::vector<double> checked_sizes(const TextHeader& text, const char* dimension,
                                  const char* sizes) {
  const std::string axes = text.value(dimension), counts = text.value(sizes);
  const std::vector<double> count = numbers_of(axes);
  std::vector<double> all = numbers_of(counts);
  if (count.size() != 1 || !(count[0] >= 1) || count[0] != std::floor(count[0])) {
    bad(text.path, "the header gives " + shown(axes) + " dimensions; it is damaged");
  }
  if (count[0] > kMaximumDimensions) {
    bad(text.path, "the header gives " + axes + " dimensions; 1 to " +
                       std::to_string(kMaximumDimensions) +
                       " are supported, with one frame: write the image to a file of its own");
  }
  if (all.size() != static_cast<size_t>(count[0])) {
    bad(text.path, "the header gives " + axes + " dimensions and the sizes " + shown(counts) +
                       "; it is damaged");
  }
  double product = 1;
  for (const double n : all) {
    product *= n;
    if (!(n >= 1 && n <= INT32_MAX) || n != std::floor(n) || product > 1e14) {
      bad(text.path,
          "the header gives the sizes " + shown(counts) + "; the file is empty or damaged");
    }
  }
  return all;
}

std::string voxel_file(const std::string& path, const std::string& name, const char* line) {
  const std::filesystem::path file = std::filesystem::path(path).parent_path() / name;
  if (!is_file(file.string())) {
    bad(path, "the voxels should stand in '" + file.string() + "', which is missing");
  }
  refuse_placeholder(file.string(), read_file(file.string(), kBeginning));
  std::error_code error;
  if (std::filesystem::equivalent(file, path, error)) {
    bad(path,
        std::string("the header names itself as the file of the voxels; repair the line ") + line);
  }
  return file.string();
}

std::string vector_text(const Vec3d& v, const char* open, const char* between, const char* close) {
  return open + exact_number(v.x) + between + exact_number(v.y) + between + exact_number(v.z) +
         close;
}

Grid grid_of_frames(const std::string& path, const Pixels& pixels) {
  Grid grid = pixels.grid;
  if (pixels.frames == 1) return grid;
  require_one_slice(path, grid.size);
  grid.size.z = static_cast<int32_t>(pixels.frames);
  const double unit_ms = pixels.times.unit_ms > 0 ? pixels.times.unit_ms : 1;
  grid.spacing_mm.z = pixels.times.step > 0 ? pixels.times.step * unit_ms : 1;
  return grid;
}

std::string packed_voxels(const std::string& path, const Pixels& pixels, Packing packing) {
  return packed({static_cast<const char*>(pixels.voxels), static_cast<size_t>(pixels.bytes())},
                packing, path);
}

}  // namespace larch::io
