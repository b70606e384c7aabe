// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/formats/nrrd.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

#include "larch/files/file.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"
#include "larch/io/image/zstream.h"

namespace larch::io {
namespace {

[[noreturn]] void truncated(const std::string& path) {
  bad(path, "truncated: voxels are missing at the end; copy or export the file again");
}

/// Where the data of a file begin.
int64_t start_of(const NrrdHeader& nrrd, const std::string& path) {
  int64_t at = nrrd.data_offset;
  if (nrrd.line_skip == 0) return at;
  std::ifstream in(path, std::ios::binary);
  in.seekg(at);
  for (int64_t lines = nrrd.line_skip; lines > 0; ++at) {
    const int c = in.get();
    if (c == std::char_traits<char>::eof()) truncated(path);
    if (c == '\n') --lines;
  }
  return at;
}

/// The values of a file of which some are read: `skipped` of its `whole` bytes are passed over, and
/// the next `bytes` are read.
struct Share {
  int64_t whole = 0, skipped = 0, bytes = 0;
};

/// Where `whole` bytes of raw values begin.
int64_t raw_start(const NrrdHeader& nrrd, const std::string& path, int64_t whole) {
  const int64_t size = file_bytes(path);
  const int64_t at = nrrd.byte_skip < 0 ? size - whole : start_of(nrrd, path) + nrrd.byte_skip;
  if (at < nrrd.data_offset || at > size || whole > size - at) truncated(path);
  return at;
}

void read_raw_share(const NrrdHeader& nrrd, const std::string& path, std::byte* to,
                    const Share& share) {
  const int64_t at = raw_start(nrrd, path, share.whole);
  std::ifstream in(path, std::ios::binary);
  in.seekg(at + share.skipped);
  in.read(reinterpret_cast<char*>(to), share.bytes);
  if (in.gcount() != share.bytes) truncated(path);
}

void read_gzip_share(const NrrdHeader& nrrd, const std::string& path, std::byte* to,
                     const Share& share) {
  ZReader in(path, start_of(nrrd, path));
  if (!in.compressed())
    bad(path, "the voxels should be compressed with gzip and are not; damaged?");
  in.skip(nrrd.byte_skip + share.skipped);
  if (in.read(to, share.bytes) < share.bytes) truncated(path);
  in.finish();
}

void read_hex_share(std::string_view text, const std::string& path, std::byte* to,
                    const Share& share) {
  int64_t digits = -2 * share.skipped;  // below 0: passed over
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c))) continue;
    const int value = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (value < 0) bad(path, "a character of the voxels is no hexadecimal digit; damaged?");
    if (digits == 2 * share.bytes) break;
    if (digits >= 0) {
      std::byte& byte = to[digits / 2];
      byte = digits % 2 == 0 ? static_cast<std::byte>(value << 4)
                             : byte | static_cast<std::byte>(value);
    }
    ++digits;
  }
  if (digits < 2 * share.bytes) truncated(path);
}

template <class T>
bool parse(std::string_view word, T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    const std::string copy(word);  // strtod wants an end; it knows "nan" and "inf"
    char* end = nullptr;
    const double wide = std::strtod(copy.c_str(), &end);
    value = static_cast<T>(wide);
    return *end == '\0' && (std::isfinite(value) || !std::isfinite(wide));
  } else {
    if (word.starts_with('+')) word.remove_prefix(1);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size();
  }
}

template <class T>
void read_numbers(std::string_view text, const std::string& path, std::byte* to,
                  const Share& share) {
  constexpr std::string_view kBetween = " \t\r\n\v\f,";
  int64_t made = -share.skipped;  // below 0: passed over
  for (size_t at = text.find_first_not_of(kBetween); made < share.bytes;) {
    if (at == std::string_view::npos) truncated(path);
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    T value{};
    if (!parse(text.substr(at, end - at), value)) {
      bad(path, shown(text.substr(at, end - at)) +
                    " is no voxel of the type that the header gives; damaged?");
    }
    if (made >= 0) std::memcpy(to + made, &value, sizeof value);
    made += static_cast<int64_t>(sizeof value);
    at = text.find_first_not_of(kBetween, end);
  }
}

void read_share(const NrrdHeader& nrrd, const std::string& path, std::byte* to,
                const Share& share) {
  if (nrrd.encoding == NrrdEncoding::kRaw) return read_raw_share(nrrd, path, to, share);
  if (nrrd.encoding == NrrdEncoding::kGzip) return read_gzip_share(nrrd, path, to, share);
  const std::string all = read_file(path);
  const int64_t start = start_of(nrrd, path);
  const auto size = static_cast<int64_t>(all.size());
  if (start > size || nrrd.byte_skip > size - start) truncated(path);
  const std::string_view text =
      std::string_view(all).substr(static_cast<size_t>(start + nrrd.byte_skip));
  if (nrrd.encoding == NrrdEncoding::kHex) return read_hex_share(text, path, to, share);
  with_type(nrrd.header.component,
            [&](auto value) { read_numbers<decltype(value)>(text, path, to, share); });
}

/// Bytes `from` to `from` + to.size() - 1 of all values, which the files hold in equal shares.
void read_values(const NrrdHeader& nrrd, int64_t share, int64_t from, std::vector<std::byte>& to) {
  const auto end = from + static_cast<int64_t>(to.size());
  for (size_t i = 0; i < nrrd.data.size(); ++i) {
    const int64_t start = static_cast<int64_t>(i) * share;
    const int64_t first = std::max(from, start), last = std::min(end, start + share);
    if (first >= last) continue;
    read_share(nrrd, nrrd.data[i], to.data() + (first - from),
               {share, first - start, last - first});
  }
}

/// Puts the channels of each pixel side by side: [rest][channel][between] to
/// [rest][between][channel]. `width`: bytes of a number.
std::vector<std::byte> interleaved(const std::vector<std::byte>& planes, size_t channels,
                                   size_t between, size_t width) {
  std::vector<std::byte> out(planes.size());
  const size_t block = channels * between;
  for (size_t i = 0; i * width < planes.size(); ++i) {
    const size_t rest = i / block, channel = i % block / between, at = i % between;
    const size_t place = rest * block + at * channels + channel;
    std::memcpy(out.data() + place * width, planes.data() + i * width, width);
  }
  return out;
}

}  // namespace

int64_t most_bytes(const NrrdHeader& nrrd) {
  int64_t stored = -nrrd.data_offset, least = INT64_MAX;
  for (const std::string& path : nrrd.data) {
    const int64_t size = file_bytes(path);
    stored += size;
    if (nrrd.encoding != NrrdEncoding::kRaw) continue;
    const bool at_end = nrrd.byte_skip < 0;
    least =
        std::min(least, size - (at_end ? nrrd.data_offset : start_of(nrrd, path) + nrrd.byte_skip));
  }
  switch (nrrd.encoding) {
    case NrrdEncoding::kRaw:  // the files have equal shares
      return least * static_cast<int64_t>(nrrd.data.size());
    case NrrdEncoding::kHex:
      return stored / 2;
    case NrrdEncoding::kGzip:
      return stored * kMostDeflate;
    case NrrdEncoding::kText:  // a digit and a space for each value
      return (stored + 1) / 2 * bytes_of(nrrd.header.component);
  }
  return 0;
}

NrrdStart start_of_values(const NrrdHeader& nrrd, int64_t bytes) {
  const std::string& path = nrrd.data.front();
  if (nrrd.encoding == NrrdEncoding::kRaw) return {raw_start(nrrd, path, bytes), 0};
  return {start_of(nrrd, path), nrrd.byte_skip};
}

RawImage read_nrrd(const std::string& path, const Selection& selection) {
  const NrrdHeader nrrd = read_nrrd_header(path);
  const Header& header = nrrd.header;
  const FrameRange range = chosen_frames(path, nrrd.frames, selection);
  require_components(path, header);
  const int64_t frame_bytes = checked_bytes(header, path, nrrd.frames);
  if (nrrd.frames > 1 && nrrd.values_between > header.grid.voxels()) {
    bad(path,
        "the axis of its components comes after the one of its frames; write the frames last");
  }
  const auto files = static_cast<int64_t>(nrrd.data.size());
  const int64_t all_bytes = frame_bytes * nrrd.frames, share = all_bytes / files;
  const int width = bytes_of(header.component);
  if (all_bytes % files != 0 || share % width != 0) {
    bad(path,
        "the voxels do not divide into the " + std::to_string(files) + " files that it names");
  }
  RawImage raw{header, allocate_voxels(frame_bytes * range.count, path)};
  read_values(nrrd, share, frame_bytes * range.first, raw.voxels);
  if (nrrd.swapped) swap_all(raw.voxels, width);
  if (header.channels > 1 && nrrd.values_between > 1) {
    raw.voxels = interleaved(raw.voxels, static_cast<size_t>(header.channels),
                             static_cast<size_t>(nrrd.values_between), static_cast<size_t>(width));
  }
  return raw;
}

}  // namespace larch::io
