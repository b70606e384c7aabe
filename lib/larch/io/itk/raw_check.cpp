// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/itk/raw_check.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "larch/files/file.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"
#include "larch/io/image/zstream.h"

namespace larch::io {
namespace {

[[noreturn]] void too_short(const std::string& path, const char* format) {
  bad(path, std::string("shorter than the header of a ") + format + " file; truncated?");
}

/// What behind `header` bytes is left of the file.
int64_t behind(const std::string& path, int64_t header, const char* format) {
  const int64_t size = file_bytes(path);
  if (size < header) too_short(path, format);
  return size - header;
}

template <size_t N>
std::array<char, N> first_bytes(const std::string& path) {
  std::array<char, N> bytes{};
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), N);
  return bytes;
}

}  // namespace

RawCheck check_gipl(const std::string& path) {
  constexpr int64_t kHeader = 256;
  if (file_extension(path) == ".gipl") {  // the ending alone tells ITK's reader
    const int64_t rest = behind(path, kHeader, "GIPL");
    const auto bytes = first_bytes<kHeader>(path);
    const FieldReader in{bytes.data(), /*swapped=*/true};
    uint64_t voxels = 1;
    for (int axis = 0; axis < 3; ++axis) {
      voxels *= std::max<uint64_t>(1, in.get<uint16_t>(int64_t{2} * axis));
    }
    if (voxels > UINT32_MAX) {
      bad(path,
          "more than 2^32 voxels, which ITK's reader does not read right; convert it to NIfTI");
    }
    return {rest, {}, {}};
  }
  ZReader in(path);
  std::vector<char> block(1 << 16);
  int64_t bytes = 0;
  while (const int64_t got = in.read(block.data(), static_cast<int64_t>(block.size()))) {
    bytes += got;
    if (bytes - kHeader > INT32_MAX) {
      bad(path,
          "more than 2 GiB of compressed voxels, which ITK's reader takes for zeros; unpack it");
    }
  }
  if (bytes < kHeader) too_short(path, "GIPL");
  return {bytes - kHeader, {}, {}};
}

namespace {

constexpr int kMrcHeader = 1024, kMrcAxes = 64;

/// In which order the bytes of an MRC file are, as its stamp says; where it has none, in the order
/// in which the numbers of the axes are 1 to 3.
bool mrc_is_swapped(const std::array<char, kMrcHeader>& bytes) {
  const auto stamp = static_cast<unsigned char>(bytes[212]);
  if (stamp == 17 || stamp == 68) return stamp == 17;
  const FieldReader in{bytes.data(), false};
  for (int axis = 0; axis < 3; ++axis) {
    const auto number = in.get<int32_t>(kMrcAxes + 4 * axis);
    if (number < 1 || number > 3) return true;
  }
  return false;
}

/// What ITK's reader does not look at has to be as it takes it to be.
void check_mrc_geometry(const std::string& path, const FieldReader& in) {
  const auto unsupported = [&](const char* what) {
    bad(path,
        std::string(what) + ", which is not supported by ITK's reader of MRC; convert it to NIfTI");
  };
  for (int axis = 0; axis < 3; ++axis) {
    if (in.get<int32_t>(kMrcAxes + 4 * axis) != axis + 1) {
      unsupported("its axes are not stored in the order x, y, z");
    }
    const auto angle = in.get<float>(52 + 4 * axis);
    if (angle != 0 && angle != 90) unsupported("its axes are not perpendicular");
    if (in.get<int32_t>(16 + 4 * axis) != 0) {
      unsupported("it is a part of a larger grid (NXSTART, NYSTART, NZSTART)");
    }
  }
}

}  // namespace

RawCheck check_mrc(const std::string& path) {
  const int64_t rest = behind(path, kMrcHeader, "MRC");
  const auto bytes = first_bytes<kMrcHeader>(path);
  const bool swapped = mrc_is_swapped(bytes);
  const FieldReader in{bytes.data(), swapped};
  const int64_t extended = in.get<int32_t>(92);
  if (extended < 0 || extended > rest) {
    bad(path, "its extended header of " + std::to_string(extended) +
                  " bytes is not in the file; it is truncated or damaged");
  }
  if (swapped && extended == 128 * 1024) {
    bad(path,
        "a big-endian extended header of FEI, which ITK's reader cannot bear; convert it to "
        "NIfTI");
  }
  check_mrc_geometry(path, in);
  const bool is_bytes = in.get<int32_t>(12) == 0;
  if (is_bytes && in.get<float>(76) < 0) {
    bad(path, "its bytes are signed, for which ITK's reader has no eye; write int16 instead");
  }
  return {rest - extended, {}, {}};
}

RawCheck check_bio_rad(const std::string& path) {
  return {behind(path, 76, "BioRad"), {}, {}};
}

std::string why_refused(const std::string& path) {
  struct Row {
    std::vector<const char*> endings;
    const char* why;
  };
  static const std::vector<Row> kRows{
      {{".mnc", ".mnc2"},
       "MINC is not read: ITK 5.2 takes its RAS positions for LPS, and its reader needs forty more "
       "libraries, clients of networks among them; convert it with mnc2nii"},
      {{".h5", ".hdf5", ".he5"},
       "HDF5 is not read: no check can stand before libhdf5; convert it to NIfTI"},
      {{".lsm"}, "LSM is not read: its private fields are not checked; save it as TIFF"},
      {{".bmp"}, "BMP is not read: its reader takes damaged pixels for complete; save it as PNG"},
      {{".jp2", ".j2k", ".jpx"}, "JPEG 2000 files are not read outside DICOM; save it as PNG"},
      {{".spr", ".sdt"},
       "Stimulate is not read: its reader looks for as many sizes as the header says, beyond the "
       "four that it has room for; convert it to NIfTI"},
      {{".cub"}, "VoxBo is not read: its reader is not checked; convert it to NIfTI"}};
  const std::string ending = file_extension(path);
  for (const Row& row : kRows) {
    for (const char* refused : row.endings) {
      if (ending == refused) return row.why;
    }
  }
  if (std::filesystem::path(path).filename() == "2dseq") {
    return "Bruker's files are not read: of a parameter file beside it that is cut off ITK's "
           "reader never finds the end; convert it to NIfTI";
  }
  return "";
}

}  // namespace larch::io
