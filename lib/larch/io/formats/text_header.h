// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "larch/io/formats/image_file.h"

namespace larch::io {

/// Text headers of image files, checked before anything is believed. All throw InputError.
struct TextHeader {
  std::string path;                           ///< of the file
  std::map<std::string, std::string> values;  ///< keys in lower case, both without outer spaces
  std::vector<std::string> plain;             ///< lines without a separator
  int64_t bytes = 0;                          ///< where the lines end
  /// Of a segmentation of 3D Slicer: "0_Name" and what follows it in "Segment0_Name:=liver".
  std::map<std::string, std::string> segments{};
  /// Empty if the key is absent.
  std::string value(const std::string& key) const;
  [[noreturn]] void bad_line(const char* key) const;
};

/// Lines "key<separator>value" up to and with `last_key`, or up to an empty line if that is "".
/// Comments (#) and lines "key:=value", which say nothing about the voxels, are left out but for
/// those of segments. A key that has two different values is an error, and so is a header of more
/// than 16 MiB.
TextHeader read_text_header(const std::string& path, char separator, const std::string& last_key);

/// Returns the numbers of a text, at most 64; none if one of its words is no number as a whole.
std::vector<double> numbers_of(const std::string& text);

/// Returns the words of a line, and those in quotation marks, as of labels and units.
std::vector<std::string> words_of(const std::string& text);
std::vector<std::string> quoted_words(const std::string& text);
std::string lower_case(std::string text);

/// Returns the number that a word is as a whole; nothing if it is none.
std::optional<double> number_of_word(const std::string& word);

/// The axes of space, one of time and one of components.
constexpr int kMaximumDimensions = 5;

/// As many positive sizes as the line `dimension` (1 to kMaximumDimensions) says, whose product is
/// no absurd number.
std::vector<double> checked_sizes(const TextHeader& text, const char* dimension, const char* sizes);

/// Returns the file beside the header at `path` that its line `line` names as the one of the
/// voxels.
std::string voxel_file(const std::string& path, const std::string& name, const char* line);

/// Three numbers that are read back as they are.
std::string vector_text(const Vec3d& v, const char* open, const char* between, const char* close);

/// Returns the lattice of all frames: those of pictures follow along the third axis. Throws
/// UsageError for frames of volumes.
Grid grid_of_frames(const std::string& path, const Pixels& pixels);

std::string packed_voxels(const std::string& path, const Pixels& pixels, Packing packing);

}  // namespace larch::io
