// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace larch::test {

/// A TIFF file of one uncompressed grey picture of 16x12 pixels with the values 0 to 191, whose
/// directory can be damaged.
struct TiffMaker {
  struct Field {
    int type = 4;  ///< 3: uint16, 4: uint32
    uint64_t count = 1, value = 0;
  };
  bool big = false;
  uint64_t next = 0;
  std::map<int, Field> fields{{256, {4, 1, 16}}, {257, {4, 1, 12}}, {258, {3, 1, 8}},
                              {259, {3, 1, 1}},  {262, {3, 1, 1}},  {273, {4, 1, 16}},
                              {277, {3, 1, 1}},  {278, {4, 1, 12}}, {279, {4, 1, 192}}};

  uint64_t directory_offset() const { return 16 + 192; }

  std::string bytes() const {
    std::string out = big ? number(0x4949, 2) + number(43, 2) + number(8, 2) + number(0, 2)
                          : number(0x4949, 2) + number(42, 2);
    out += number(directory_offset(), big ? 8 : 4);
    out.resize(16, '\0');
    for (int i = 0; i < 192; ++i) out += static_cast<char>(i);
    out += number(fields.size(), big ? 8 : 2);
    for (const auto& [tag, field] : fields) {
      out += number(static_cast<uint64_t>(tag), 2) + number(static_cast<uint64_t>(field.type), 2) +
             number(field.count, big ? 8 : 4) + number(field.value, big ? 8 : 4);
    }
    return out + number(next, big ? 8 : 4);
  }

 private:
  static std::string number(uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
    return out;
  }
};

}  // namespace larch::test
