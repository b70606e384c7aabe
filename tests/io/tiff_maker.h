// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/io/nifti_damage.h"

namespace larch::test {

/// A TIFF file of one uncompressed grey picture of 16x12 pixels with the values 0 to 191, whose
/// directory can be damaged. `data` stands at byte kData, the directory behind it.
struct TiffMaker {
  struct Field {
    int type = 4;  ///< 3: uint16, 4: uint32
    uint64_t count = 1, value = 0;
  };
  static constexpr uint64_t kData = 16;

  bool big = false;
  uint64_t next = 0;
  std::string data = counted(192);
  std::map<int, Field> fields{{256, {4, 1, 16}}, {257, {4, 1, 12}}, {258, {3, 1, 8}},
                              {259, {3, 1, 1}},  {262, {3, 1, 1}},  {273, {4, 1, kData}},
                              {277, {3, 1, 1}},  {278, {4, 1, 12}}, {279, {4, 1, 192}}};

  uint64_t directory_offset() const { return kData + data.size(); }

  std::string bytes() const {
    std::string out = big ? number(0x4949, 2) + number(43, 2) + number(8, 2) + number(0, 2)
                          : number(0x4949, 2) + number(42, 2);
    out += number(directory_offset(), big ? 8 : 4);
    out.resize(kData, '\0');
    return out + data + directory(next);
  }

  /// The directory alone; the one after it stands at byte `after` of the file.
  std::string directory(uint64_t after) const {
    std::string out = number(fields.size(), big ? 8 : 2);
    for (const auto& [tag, field] : fields) {
      out += number(static_cast<uint64_t>(tag), 2) + number(static_cast<uint64_t>(field.type), 2) +
             number(field.count, big ? 8 : 4) + number(field.value, big ? 8 : 4);
    }
    return out + number(after, big ? 8 : 4);
  }

  /// The picture stored otherwise: one strip of `stored` in the given compression.
  void store(const std::string& stored, uint64_t compression, uint64_t width, uint64_t length) {
    data = stored;
    fields[259].value = compression;
    fields[256].value = width;
    fields[257].value = fields[278].value = length;
    fields[279].value = stored.size();
  }

  static std::string number(uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
    return out;
  }
};

/// A file of `pages` directories, each of a picture of one column whose rows are strips of their
/// own; all share the two tables of strips.
inline std::string pages_of_one_table(uint64_t pages, uint64_t strips) {
  TiffMaker page;
  page.data = std::string(8, '\1');
  for (uint64_t i = 0; i < strips; ++i) page.data += TiffMaker::number(TiffMaker::kData, 4);
  for (uint64_t i = 0; i < strips; ++i) page.data += TiffMaker::number(1, 4);
  page.fields[256].value = 1;
  page.fields[257].value = strips;
  page.fields[278].value = 1;
  page.fields[273] = {4, strips, TiffMaker::kData + 8};
  page.fields[279] = {4, strips, TiffMaker::kData + 8 + 4 * strips};
  page.fields[259].value = 8;  // deflate, so that the strips may grow
  std::string bytes = page.bytes();
  const uint64_t length = bytes.size() - page.directory_offset();
  bytes.resize(page.directory_offset());
  for (uint64_t i = 0; i < pages; ++i) {
    const uint64_t after = page.directory_offset() + (i + 1) * length;
    bytes += page.directory(i + 1 < pages ? after : 0);
  }
  return bytes;
}

}  // namespace larch::test
