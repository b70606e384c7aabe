// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace larch {

/// A number of bytes as people write it: "4G", "500M", "1.5GiB", "2000000". K, M, G and T, also
/// followed by iB, are powers of 1024, as schedulers count; KB, MB, GB and TB are powers of 1000.
/// Throws UsageError that names `flag` for anything else, and for less than one byte.
int64_t parse_bytes(const std::string& flag, const std::string& text);

/// The reverse, for messages: "3.2 GiB", "470 MiB", "12 KiB".
std::string bytes_text(int64_t bytes);

}  // namespace larch
