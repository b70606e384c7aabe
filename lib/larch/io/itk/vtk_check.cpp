// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/itk/vtk_check.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <vector>

#include "larch/files/file.h"
#include "larch/io/image/message.h"
#include "larch/io/image/text_header.h"

namespace larch::io {
namespace {

constexpr const char* kRemedy = "; write a VTK image of binary scalars, or convert it to NIfTI";

/// The lines of the header in lower case, without empty ones, which ITK's reader passes over too.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path), in_(path, std::ios::binary) {}

  /// The words of the next line.
  std::vector<std::string> next() {
    do {
      read_line();
    } while (line_.empty());
    line_ = lower_case(line_);
    if (line_.back() == '\r') line_.pop_back();
    return words_of(line_);
  }
  const std::string& text() const { return line_; }
  /// Where the line after the last one begins.
  int64_t bytes() const { return bytes_; }

 private:
  void read_line() {
    constexpr size_t kMostLine = 200;
    constexpr int kMostLines = 64;
    if (++number_ > kMostLines) bad(path_, "its header does not come to the voxels in 64 lines");
    line_.clear();
    for (char c = 0; in_.get(c);) {
      ++bytes_;
      if (c == '\n') return;
      if (line_.size() == kMostLine) {
        bad(path_, "a line of its header is longer than 200 characters");
      }
      line_ += c;
    }
    bad(path_, "not a VTK image, or its header is truncated");
  }

  std::string path_;
  std::ifstream in_;
  std::string line_;
  int number_ = 0;
  int64_t bytes_ = 0;
};

[[noreturn]] void bad_line(const std::string& path, const std::string& line) {
  bad(path, "the header line " + shown(line) + " is damaged or not supported" + kRemedy);
}

std::optional<int64_t> whole_number(const std::string& word) {
  int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [last, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || last != end) return std::nullopt;
  return value;
}

/// The number of points. `slices`: the last of the three sizes.
int64_t check_dimensions(const std::string& path, const std::vector<std::string>& words,
                         const std::string& line, int64_t& slices) {
  if (words.size() != 4 || words[0] != "dimensions") bad_line(path, line);
  int64_t points = 1;
  for (size_t i = 1; i < 4; ++i) {
    const auto size = whole_number(words[i]);
    if (!size || *size < 1 || *size > INT32_MAX) {
      bad(path, "the header gives a size of " + shown(words[i]) + "; the file is empty or damaged");
    }
    if (__builtin_mul_overflow(points, *size, &points)) points = INT64_MAX;
    slices = *size;
  }
  return points;
}

/// The last of the three numbers of a line of positions.
double third_number(const std::string& path, const std::vector<std::string>& words,
                    const std::string& line) {
  if (words.size() != 4) bad_line(path, line);
  double last = 0;
  for (size_t i = 1; i < 4; ++i) {
    const auto value = number_of_word(words[i]);
    if (!value || !std::isfinite(*value)) bad_line(path, line);
    last = *value;
  }
  return last;
}

/// Lines that name the array of voxels. A name with a keyword in it would be taken for that line.
void check_array(const std::string& path, const std::vector<std::string>& words,
                 const std::string& line) {
  const bool scalars = words[0] == "scalars";
  const size_t most = scalars ? 4 : 3;
  if (words.size() < 3 || words.size() > most) bad_line(path, line);
  const auto components = whole_number(words.back());
  const bool counted = words[0] == "color_scalars" || words.size() == 4;
  if (counted && !(components && *components >= 1 && *components <= 4096)) bad_line(path, line);
  for (const char* keyword : {"spacing", "aspect_ratio", "origin", "vector", "color_scalars"}) {
    const std::string& kind = words[0];
    if (kind == "vectors" && std::string(keyword) == "vector") continue;
    if (kind == "color_scalars" && std::string(keyword) == "color_scalars") continue;
    if (line.find(keyword) == std::string::npos) continue;
    bad(path, "the name in the header line " + shown(line) +
                  " holds a keyword of the format, for " +
                  "which ITK's reader takes it; rename the array");
  }
}

void check_start(const std::string& path, Lines& lines) {
  lines.next();
  if (!lines.text().starts_with("# vtk datafile")) {
    bad(path, "not a VTK file: it does not start with '# vtk DataFile'");
  }
  lines.next();  // the title
  const std::vector<std::string> kind = lines.next();
  if (kind == std::vector<std::string>{"ascii"}) {
    bad(path, "the voxels are stored as text (ASCII); write them as binary data");
  }
  if (kind != std::vector<std::string>{"binary"}) bad_line(path, lines.text());
  if (lines.next() != std::vector<std::string>{"dataset", "structured_points"}) {
    bad(path, "a VTK file of other things than an image (DATASET STRUCTURED_POINTS)");
  }
}

}  // namespace

RawCheck check_vtk(const std::string& path) {
  Lines lines(path);
  check_start(path, lines);
  const std::vector<std::string> sizes = lines.next();
  int64_t slices = 0;
  const int64_t points = check_dimensions(path, sizes, lines.text(), slices);
  double spacing = 1, origin = 0;
  bool points_follow = false;
  for (;;) {
    const std::vector<std::string> words = lines.next();
    const std::string word = words.empty() ? "" : words[0];
    if (word == "spacing" || word == "aspect_ratio") {
      spacing = third_number(path, words, lines.text());
    } else if (word == "origin") {
      origin = third_number(path, words, lines.text());
    } else if (word == "point_data") {
      if (words.size() != 2 || whole_number(words[1]) != points) bad_line(path, lines.text());
      points_follow = true;
    } else if (points_follow &&
               (word == "scalars" || word == "color_scalars" || word == "vectors")) {
      check_array(path, words, lines.text());
      if (word == "scalars") {
        const std::vector<std::string> table = lines.next();
        if (table.size() != 2 || table[0] != "lookup_table") bad_line(path, lines.text());
      }
      break;
    } else {
      bad_line(path, lines.text());
    }
  }
  RawCheck check{file_bytes(path) - lines.bytes(), {}, {}};
  if (slices == 1) {
    check.third_spacing_mm = spacing;
    check.third_origin_mm = origin;
  }
  return check;
}

}  // namespace larch::io
