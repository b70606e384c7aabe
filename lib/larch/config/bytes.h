// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace larch {

/// A parameter that is a number of bytes. In files and flags it is a text as parse_bytes takes it,
/// in files also a number; 0 is written "" and means that it is not given.
struct Bytes {
  int64_t count = 0;
  explicit operator bool() const { return count > 0; }
};

/// A number of bytes as people write it: "4G", "500M", "1.5GiB", "2000000". K, M, G and T, also
/// followed by iB, are powers of 1024, as schedulers count; KB, MB, GB and TB are powers of 1000.
/// Throws UsageError that names `flag` for anything else, and for less than one byte.
int64_t parse_bytes(const std::string& flag, const std::string& text);

/// The reverse, exactly: the largest unit of which it is a whole number, such as "4GiB".
/// core/text.h has one for messages.
std::string exact_bytes_text(int64_t bytes);

}  // namespace larch
