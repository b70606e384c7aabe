// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/formats/nrrd.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>

#include "larch/core/error.h"
#include "larch/core/guard.h"
#include "larch/files/file.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/shown_text.h"
#include "larch/io/image/zstream.h"

namespace larch::io {
namespace {
namespace fs = std::filesystem;

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw InputError("'" + path + "': " + what);
}

[[noreturn]] void truncated(const std::string& path) {
  bad(path, "truncated: voxels are missing at the end; copy or export the file again");
}

int64_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) throw InputError("cannot read '" + path + "': " + error.message());
  return static_cast<int64_t>(size);
}

/// The most bytes of voxels that the data files can hold.
int64_t most_bytes(const NrrdHeader& nrrd) {
  int64_t stored = 0;
  for (const std::string& path : nrrd.data) stored += size_of(path);
  stored = std::max<int64_t>(stored - nrrd.data_offset, 0);
  switch (nrrd.encoding) {
    case NrrdEncoding::kRaw:
      return stored;
    case NrrdEncoding::kHex:
      return stored / 2;
    case NrrdEncoding::kGzip:
      return stored * kMostDeflate;
    case NrrdEncoding::kText:  // a digit and a space for each value
      return (stored + 1) / 2 * bytes_of(nrrd.header.component);
  }
  return 0;
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

void read_raw_share(const NrrdHeader& nrrd, const std::string& path, std::byte* to, int64_t bytes) {
  const int64_t size = size_of(path);
  const int64_t at = nrrd.byte_skip < 0 ? size - bytes : start_of(nrrd, path) + nrrd.byte_skip;
  if (at < nrrd.data_offset || at > size || bytes > size - at) truncated(path);
  std::ifstream in(path, std::ios::binary);
  in.seekg(at);
  in.read(reinterpret_cast<char*>(to), bytes);
  if (in.gcount() != bytes) truncated(path);
}

void read_gzip_share(const NrrdHeader& nrrd, const std::string& path, std::byte* to,
                     int64_t bytes) {
  ZReader in(path, start_of(nrrd, path));
  if (!in.compressed())
    bad(path, "the voxels should be compressed with gzip and are not; damaged?");
  in.skip(nrrd.byte_skip);
  if (in.read(to, bytes) < bytes) truncated(path);
  in.finish();
}

void read_hex_share(std::string_view text, const std::string& path, std::byte* to, int64_t bytes) {
  int64_t digits = 0;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c))) continue;
    const int value = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (value < 0) bad(path, "a character of the voxels is no hexadecimal digit; damaged?");
    if (digits == 2 * bytes) break;
    std::byte& byte = to[digits / 2];
    byte =
        digits % 2 == 0 ? static_cast<std::byte>(value << 4) : byte | static_cast<std::byte>(value);
    ++digits;
  }
  if (digits < 2 * bytes) truncated(path);
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
void read_numbers(std::string_view text, const std::string& path, std::byte* to, int64_t bytes) {
  constexpr std::string_view kBetween = " \t\r\n\v\f,";
  int64_t made = 0;
  for (size_t at = text.find_first_not_of(kBetween); made < bytes;) {
    if (at == std::string_view::npos) truncated(path);
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    T value{};
    if (!parse(text.substr(at, end - at), value)) {
      bad(path, shown(text.substr(at, end - at)) +
                    " is no voxel of the type that the header gives; damaged?");
    }
    std::memcpy(to + made, &value, sizeof value);
    made += static_cast<int64_t>(sizeof value);
    at = text.find_first_not_of(kBetween, end);
  }
}

void read_text_share(std::string_view text, Component component, const std::string& path,
                     std::byte* to, int64_t bytes) {
  switch (component) {
    case Component::kUint8:
      return read_numbers<uint8_t>(text, path, to, bytes);
    case Component::kInt8:
      return read_numbers<int8_t>(text, path, to, bytes);
    case Component::kUint16:
      return read_numbers<uint16_t>(text, path, to, bytes);
    case Component::kInt16:
      return read_numbers<int16_t>(text, path, to, bytes);
    case Component::kUint32:
      return read_numbers<uint32_t>(text, path, to, bytes);
    case Component::kInt32:
      return read_numbers<int32_t>(text, path, to, bytes);
    case Component::kUint64:
      return read_numbers<uint64_t>(text, path, to, bytes);
    case Component::kInt64:
      return read_numbers<int64_t>(text, path, to, bytes);
    case Component::kFloat32:
      return read_numbers<float>(text, path, to, bytes);
    case Component::kFloat64:
      return read_numbers<double>(text, path, to, bytes);
  }
}

void read_share(const NrrdHeader& nrrd, const std::string& path, std::byte* to, int64_t bytes) {
  if (nrrd.encoding == NrrdEncoding::kRaw) return read_raw_share(nrrd, path, to, bytes);
  if (nrrd.encoding == NrrdEncoding::kGzip) return read_gzip_share(nrrd, path, to, bytes);
  const std::string all = read_file(path);
  const int64_t start = start_of(nrrd, path);
  const auto size = static_cast<int64_t>(all.size());
  if (start > size || nrrd.byte_skip > size - start) truncated(path);
  const std::string_view text =
      std::string_view(all).substr(static_cast<size_t>(start + nrrd.byte_skip));
  if (nrrd.encoding == NrrdEncoding::kHex) return read_hex_share(text, path, to, bytes);
  read_text_share(text, nrrd.header.component, path, to, bytes);
}

/// Puts the channels of each pixel side by side: [rest][channel][between] to
/// [rest][between][channel].
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

RawImage read_nrrd(const std::string& path) {
  const NrrdHeader nrrd = read_nrrd_header(path);
  const Header& header = nrrd.header;
  if (nrrd.frames > 1) {
    bad(path, std::to_string(nrrd.frames) +
                  " frames (4-D or more); write one of them to a file of its own");
  }
  if (header.channels > 1 && !header.colour) {
    bad(path, std::to_string(header.channels) +
                  " components per voxel; write one of them to a file of its own");
  }
  const bool limited = guarded(Guard::kNrrdClaims);
  const int64_t bytes =
      checked_bytes(header, limited ? most_bytes(nrrd) : std::numeric_limits<int64_t>::max(), path);
  const auto files = static_cast<int64_t>(nrrd.data.size());
  const int64_t share = bytes / files;
  const int width = bytes_of(header.component);
  if (bytes % files != 0 || share % width != 0) {
    bad(path,
        "the voxels do not divide into the " + std::to_string(files) + " files that it names");
  }
  RawImage raw{header, allocate_voxels(bytes, path)};
  for (int64_t i = 0; i < files; ++i) {
    read_share(nrrd, nrrd.data[static_cast<size_t>(i)], raw.voxels.data() + i * share, share);
  }
  if (nrrd.swapped) swap_all(raw.voxels, width);
  if (header.channels > 1 && nrrd.values_between > 1) {
    raw.voxels = interleaved(raw.voxels, static_cast<size_t>(header.channels),
                             static_cast<size_t>(nrrd.values_between), static_cast<size_t>(width));
  }
  return raw;
}

}  // namespace larch::io
