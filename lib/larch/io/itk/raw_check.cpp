// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/itk/raw_check.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/text_header.h"
#include "larch/io/image/zstream.h"

namespace larch::io {
namespace {

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw InputError("'" + path + "': " + what);
}

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

int64_t check_vtk(const std::string& path) {
  constexpr size_t kMostLine = 200;
  constexpr int kMostLines = 64;
  std::ifstream in(path, std::ios::binary);
  std::string line;
  for (int number = 0; number < kMostLines; ++number) {
    line.clear();
    for (int c = in.get(); c != '\n' && c != std::char_traits<char>::eof(); c = in.get()) {
      if (line.size() == kMostLine) bad(path, "a line of its header is longer than 200 characters");
      line += static_cast<char>(c);
    }
    if (!in) bad(path, "not a VTK image, or its header is truncated");
    const std::vector<std::string> words = words_of(lower_case(line));
    const std::string word = words.empty() ? "" : words[0];
    if (number == 0 && lower_case(line).find("vtk datafile") == std::string::npos) {
      bad(path, "not a VTK file: it does not start with '# vtk DataFile'");
    }
    if (number == 2 && word == "ascii") {
      bad(path, "the voxels are stored as text (ASCII); write them as binary data");
    }
    if (word == "dataset" && (words.size() != 2 || words[1] != "structured_points")) {
      bad(path, "a VTK file of other things than an image (DATASET STRUCTURED_POINTS)");
    }
    const bool scalars = word == "scalars";
    if (!scalars && word != "color_scalars" && word != "vectors") continue;
    const std::streamoff start = in.tellg();
    if (scalars && std::getline(in, line) && lower_case(line).starts_with("lookup_table")) {
      return file_bytes(path) - in.tellg();
    }
    return file_bytes(path) - start;
  }
  bad(path, "its header does not come to the voxels within 64 lines");
}

int64_t check_gipl(const std::string& path) {
  constexpr int64_t kHeader = 256;
  ZReader in(path);
  if (!in.compressed()) return behind(path, kHeader, "GIPL");
  std::vector<char> block(1 << 16);
  int64_t bytes = 0;
  while (const int64_t got = in.read(block.data(), static_cast<int64_t>(block.size())))
    bytes += got;
  if (bytes < kHeader) too_short(path, "GIPL");
  return bytes - kHeader;
}

int64_t check_mrc(const std::string& path) {
  constexpr int64_t kHeader = 1024;
  const int64_t rest = behind(path, kHeader, "MRC");
  const auto bytes = first_bytes<kHeader>(path);
  // The stamp of the machine says in which order the bytes are; old files have none.
  const bool big = static_cast<unsigned char>(bytes[212]) == 17;
  const FieldReader in{bytes.data(), big};
  const int64_t extended = in.get<int32_t>(92);
  if (extended < 0 || extended > rest) {
    bad(path, "its extended header of " + std::to_string(extended) +
                  " bytes is not in the file; it is truncated or damaged");
  }
  return rest - extended;
}

int64_t check_bio_rad(const std::string& path) {
  return behind(path, 76, "BioRad");
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
