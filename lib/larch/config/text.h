// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace larch {

/// A parameter that is a number of bytes. In files and flags it is a text as parse_bytes takes it,
/// in files also a number; 0 is written "" and means that it is not given.
struct Bytes {
  int64_t count = 0;
  explicit operator bool() const { return count > 0; }
};

/// Returns a number of bytes as people write it: "4G", "500M", "1.5GiB", "2000000". K, M, G and T,
/// also followed by iB, are powers of 1024, as schedulers count; KB, MB, GB and TB are powers of
/// 1000. Throws UsageError that names `flag` for anything else, and for less than one byte.
int64_t parse_bytes(const std::string& flag, const std::string& text);

/// Returns the reverse, exactly: the largest unit of which it is a whole number, such as "4GiB".
/// core/text.h has one for messages.
std::string exact_bytes_text(int64_t bytes);

}  // namespace larch

namespace larch::config {

/// The word nearest to `word` by insertions, deletions, replacements and swaps of neighbours, if it
/// is at most 2 of them (and fewer than the word has letters) away; else empty. The first wins a
/// tie.
std::string nearest(const std::string& word, const std::vector<std::string>& allowed);

/// "; did you mean 'depth'?" or nothing.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& allowed);

/// "; did you mean 'depth'? allowed: depth, bag".
std::string not_allowed(const std::string& word, const std::vector<std::string>& allowed);

/// "a, b, c".
std::string join(const std::vector<std::string>& words, const std::string& separator = ", ");

}  // namespace larch::config
