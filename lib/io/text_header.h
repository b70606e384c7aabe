// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace larch::io {

/// Text headers of image files, checked before anything is believed. All throw InputError.
struct TextHeader {
  std::map<std::string, std::string> values;  ///< keys in lower case, both without outer spaces
  int64_t bytes = 0;                          ///< where the lines end
  /// Empty if the key is absent.
  std::string value(const std::string& key) const;
};

/// Lines "key<separator>value" up to and with `last_key`, or up to an empty line if that is "".
TextHeader read_text_header(const std::string& path, char separator, const std::string& last_key);

/// The numbers that a text starts with, at most 64.
std::vector<double> numbers_of(const std::string& text);

/// As many positive sizes as `dimension` (1 to 5) says, whose product is no absurd number.
std::vector<double> checked_sizes(const std::string& path, const std::string& dimension,
                                  const std::string& sizes);

/// Checks the header of a .nrrd or .nhdr file before ITK parses it; returns the most bytes of
/// voxels.
int64_t check_nrrd_text(const std::string& path);

}  // namespace larch::io
