// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The tables of apps/reading-images.md, but for DICOM: every message that they promise is given,
// for a file made here, and is in the page.
#include <algorithm>
#include <set>
#include <sstream>

#include "larch/io/image/zstream.h"
#include "tests/io/jpeg_maker.h"
#include "tests/io/nifti_damage.h"
#include "tests/io/tiff_maker.h"

using namespace larch;
using namespace larch::test;

namespace {

struct Row {
  std::string message;  ///< as the page has it
  std::string name, bytes;
};

std::string nrrd(const std::string& lines) {
  return "NRRD0004\n" + lines + "\n" + std::string(8, '\1');
}

std::string mha(const std::string& lines) {
  return "ObjectType = Image\nNDims = 3\n" + lines + "ElementDataFile = LOCAL\n" +
         std::string(8, '\1');
}

std::vector<Row> general_rows(const std::string& nifti) {
  const std::string sizes = "DimSize = 2 2 2\n", type = "ElementType = MET_UCHAR\n";
  std::string not_numbers = nifti;
  not_numbers = with(with(with(not_numbers, 70, int16_t{16}), 72, int16_t{32}), 42, int16_t{2});
  not_numbers = with(not_numbers, 352, NAN);
  std::string frames = with(with(nifti, 40, int16_t{4}), 48, int16_t{2});
  return {{"more than the file can hold", "a.mha", mha("DimSize = 900 900 900\n" + type)},
          {"truncated", "a.nii", nifti.substr(0, nifti.size() - 1)},
          {"is not to be believed", "a.mha", mha(sizes + type + "ElementSpacing = 1 1 1e5\n")},
          {"is not to be believed", "a.mha", mha(sizes + type + "ElementSpacing = 1e-8 1 1\n")},
          {"the header places a corner of the image at", "a.mha",
           mha(sizes + type + "Offset = 0 2e7 0\n")},
          {"the geometry in the header is not finite", "a.nii", with(nifti, 292, INFINITY)},
          {"two axes of the direction matrix are parallel", "a.mha",
           mha(sizes + type + "TransformMatrix = 1 0 0 1 0 0 0 0 1\n")},
          {"which one is needed here; choose it with --frame", "a.nii", frames + nifti.substr(352)},
          {"write one of them to a file of its own", "a.nrrd",
           nrrd("type: uint8\ndimension: 3\nsizes: 2 2 2\nkinds: vector domain domain\nencoding: "
                "raw\n")},
          {"voxels are NaN or infinite", "a.nii", not_numbers}};
}

std::vector<Row> nifti_rows(const std::string& nifti) {
  std::string extension(16, '\0');
  extension = with(with(extension, 0, int32_t{16}), 4, int32_t{4});
  std::string extended = with(nifti, 348, char{1});
  extended.insert(352, extension);
  std::string singular = nifti;
  for (size_t i = 0; i < 12; ++i) singular = with(singular, 280 + 4 * i, 0.0F);
  return {
      {"the quaternion of the qform is longer than 1", "a.nii",
       with(with(nifti, 254, int16_t{0}), 256, 1.5F)},
      {"the sform of the header cannot be inverted", "a.nii", singular},
      {"so that it is not known which counts", "a.nii",
       with(with(nifti, 254, int16_t{7}), 268, 99.0F)},
      {"inside the header itself", "a.nii", with(nifti, 108, 348.0F)},
      {"inside the header itself", "a.nii", with(sound_nifti2(), 168, int64_t{352})},
      {"inside a header extension", "a.nii", extended},
      {"impossible offset", "a.nii", with(nifti, 108, NAN)},
      {"scl_slope or scl_inter of the header is not finite", "a.nii", with(nifti, 112, INFINITY)},
      {"the header contradicts itself", "a.nii", with(nifti, 72, int16_t{64})},
      {"a damaged NIfTI header", "a.nii", with(nifti, 344, 0)}};
}

/// With a.img beside them.
std::vector<Row> analyze_rows(const std::string& nifti) {
  std::string header = nifti.substr(0, 348);
  for (const size_t unlike : {size_t{252}, size_t{254}}) header = with(header, unlike, int16_t{0});
  header = with(with(header, 108, 0.0F), 344, 0);
  return {
      {"this is ANALYZE 7.5, which does not say which side is left", "a.hdr", header},
      {"it does not store axial slices", "a.hdr", with(header, 252, char{1})},
      {"spacing in the header is negative", "a.hdr", with(header, 80, -1.0F)},
      {", which some programs apply and some do not", "a.hdr", with(header, 112, 0.5F)},
      {"instead of mm", "a.hdr", with(header, 56, 'c')},
      {"the colours of ANALYZE", "a.hdr", with(with(header, 70, int16_t{128}), 72, int16_t{24})}};
}

std::vector<Row> text_rows() {
  const std::string base = "type: uint8\ndimension: 3\nsizes: 2 2 2\nencoding: raw\n";
  const std::string axes = "space: LPS\nspace directions: (1,0,0) (0,1,0) (0,0,1)\n";
  const std::string sizes = "DimSize = 2 2 2\n", type = "ElementType = MET_UCHAR\n";
  return {{"names a space and no directions", "a.nrrd", nrrd(base + "space: RAS\n")},
          {"are not supported; write them in mm", "a.nrrd",
           nrrd(base + axes + "space units: \"ell\" \"ell\" \"ell\"\n")},
          {"are not supported; write them in mm", "a.nrrd",
           nrrd(base + "spacings: 1 1 1\nunits: \"ell\" \"ell\" \"ell\"\n")},
          {"is damaged or not supported", "a.nrrd", nrrd(base + axes + "space units: \"mm\"\n")},
          {"longer than 16 MiB; write the image without its metadata", "a.nrrd",
           nrrd(base + "# " + std::string(17 << 20, 'c') + "\n")},
          {"which NRRD does not know", "a.nrrd", nrrd(base + "colour: red\n")},
          {"says twice, and differently", "a.nrrd", nrrd(base + "type: int8\n")},
          {"says twice, and differently", "a.mha", mha(sizes + type + "DimSize = 2 2 1\n")},
          {"is damaged or not supported", "a.nrrd",
           nrrd(base + "spacings: 1 1 " + std::string(5000, '1') + "x\n")},
          {"names itself as the file of the voxels", "a.nhdr", nrrd(base + "data file: a.nhdr\n")},
          {"in which order bytes are", "a.nrrd",
           nrrd("type: int16\ndimension: 1\nsizes: 4\nencoding: raw\n")},
          {"write raw or gzip", "a.nrrd",
           nrrd("type: uint8\ndimension: 1\nsizes: 8\nencoding: bzip2\n")},
          {"twice as a file of voxels", "a.nhdr", nrrd(base + "data file: LIST\na.raw\na.raw\n")},
          {"dimensions; 1 to 5 are supported", "a.nrrd",
           nrrd("type: uint8\ndimension: 6\nsizes: 2 2 2 1 1 1\nencoding: raw\n")},
          {"dimensions; 1 to 5 are supported", "a.mha",
           "NDims = 6\n" + sizes + type + "ElementDataFile = LOCAL\n"},
          {"spread over several files", "a.mhd",
           "NDims = 3\n" + sizes + type + "ElementDataFile = LIST\n"},
          {"stored as text", "a.mha", mha(sizes + type + "BinaryData = False\n")},
          {"is damaged", "a.mha", mha(sizes + type + "ElementSpacing = 1 1\n")}};
}

std::vector<Row> picture_rows() {
  TiffMaker ring, away, strips;
  ring.next = ring.directory_offset();
  away.next = 1 << 20;
  strips.fields[257].value = INT32_MAX;
  TiffMaker date, text;
  date.fields[306] = {2, 1, 0};
  text.fields[42113] = {2, 4, 0x34333231};
  const auto first = static_cast<uint32_t>(ring.directory_offset());
  TiffMaker marked;
  marked.fields[254] = {4, 1, 1};
  std::string pages = marked.bytes();
  const std::string directory = pages.substr(first);
  pages = with(pages, pages.size() - 4, static_cast<uint32_t>(pages.size())) + directory;
  const std::string one = TiffMaker{}.bytes();
  std::string two = with(one, one.size() - 4, static_cast<uint32_t>(one.size()));
  two += with(one.substr(first), 2 + 8, uint32_t{8});
  return {
      {"in a ring", "a.tif", ring.bytes()},
      {"beyond the end of the file", "a.tif", away.bytes()},
      {"fewer strips or tiles", "a.tif", strips.bytes()},
      {"bytes instead of 20; remove the field", "a.tif", date.bytes()},
      {"does not end in a zero; remove the field", "a.tif", text.bytes()},
      {"its first page is", "a.tif", pages},
      {"pages are of different sizes or kinds", "a.tif", two},
      {"more tables than the file can hold", "a.tif", pages_of_one_table(100, 300)},
      {"the picture is damaged or truncated", "a.png", "\x89PNG\r\n\x1a\n" + std::string(40, 'x')},
      {"the picture is damaged or truncated", "a.jpg", "\xff\xd8\xff" + std::string(40, 'x')},
      {"more than 500 scans", "a.jpg", progressive_jpeg(32, 8)}};
}

/// More than 2 GiB of zeros: members of gzip, one behind the other.
std::string packed_zeros() {
  const TemporaryFolder folder;
  const std::string zeros(size_t{64} << 20, '\0');
  io::ZWriter out(folder / "zeros.gz", true);
  out.write(zeros.data(), static_cast<int64_t>(zeros.size()));
  out.close();
  const std::string member = read_file(folder / "zeros.gz");
  std::string all;
  for (int i = 0; i < 33; ++i) all += member;
  return all;
}

/// What stands before ITK's readers.
std::vector<Row> itk_rows() {
  const std::string vtk = "# vtk DataFile Version 3.0\ntitle\n", some(600, '\1');
  std::string mrc(1024, '\0');
  std::string mrc_of_bytes = mrc, fei = mrc;
  for (size_t i = 0; i < 3; ++i) {
    mrc_of_bytes = with(mrc_of_bytes, 64 + 4 * i, static_cast<int32_t>(i + 1));
  }
  fei.replace(92, 4, std::string("\0\2\0\0", 4));
  fei[212] = '\x11';
  mrc.replace(92, 4, "\xff\xff\xff\x7f");
  return {{"stored as text (ASCII)", "a.vtk", vtk + "ASCII\n"},
          {"of other things than an image", "a.vtk", vtk + "BINARY\nDATASET POLYDATA\n"},
          {"longer than 200 characters", "a.vtk", vtk + some},
          {"shorter than the header", "a.gipl", "short"},
          {"is not in the file", "a.mrc", mrc},
          {"write a VTK image of binary scalars", "a.vtk", vtk + "neither\n"},
          {"holds a keyword of the format", "a.vtk",
           vtk + "BINARY\nDATASET STRUCTURED_POINTS\nDIMENSIONS 1 1 1\nPOINT_DATA 1\nSCALARS "
                 "color_scalars float 1\nLOOKUP_TABLE default\n1234"},
          {"is not supported by ITK's reader of MRC", "a.mrc", with(mrc_of_bytes, 64, int32_t{2})},
          {"its bytes are signed", "a.mrc", with(mrc_of_bytes, 76, -1.0F)},
          {"extended header of FEI", "a.mrc", fei + std::string(128 * 1024, '\0')},
          {"more than 2^32 voxels", "a.gipl", std::string(256, '\xff')},
          {"which ITK's reader takes for zeros", "a.gipl.gz", packed_zeros()},
          {"MINC is not read", "a.mnc", some},
          {"HDF5 is not read", "a.h5", some},
          {"Bruker's files are not read", "2dseq", some},
          {"Stimulate is not read", "a.spr", some},
          {"VoxBo is not read", "a.cub", some},
          {"LSM is not read", "a.lsm", some},
          {"BMP is not read", "a.bmp", some},
          {"JPEG 2000 files are not read", "a.jp2", some}};
}

/// The messages of the page: the code in the third column of its tables, without those of DICOM
/// and of sequences, which have tests of their own.
std::set<std::string> promised() {
  const char* source = std::getenv("LARCH_SOURCE_DIR");
  std::istringstream page(
      read_file(std::string(source != nullptr ? source : ".") + "/apps/reading-images.md"));
  std::set<std::string> messages;
  bool dicom = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## "))
      dicom = line == "## DICOM" || line.starts_with("## Parsers") || line == "## Sequences";
    const size_t end = line.rfind("` |"), begin = line.rfind('`', end - 1);
    if (dicom || end == std::string::npos || end + 3 != line.size()) continue;
    if (line.rfind('|', begin) + 2 == begin)
      messages.insert(line.substr(begin + 1, end - begin - 1));
  }
  return messages;
}

}  // namespace

TEST_CASE("every message of the reader's page is given, and no other is promised") {
  const TemporaryFolder folder;
  const std::string nifti = sound_nifti(folder);
  std::set<std::string> page = promised();
  CHECK(page.size() > 30);
  const std::string missing =
      message_of<InputError>([&] { read_volume<float>(folder / "missing.nii"); });
  CHECK_THAT(missing, Catch::Contains("no such file or folder"));
  ReadOptions ninth;
  ninth.frame = 9;
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "sound.nii", ninth); }),
             Catch::Contains("there is no frame"));
  std::set<std::string> given{"no such file or folder", "there is no frame"};
  write_file(folder / "a.img", nifti.substr(352));
  for (const auto& rows : {general_rows(nifti), nifti_rows(nifti), analyze_rows(nifti), text_rows(),
                           picture_rows(), itk_rows()}) {
    for (const Row& row : rows) {
      INFO(row.message);
      CHECK_THAT(reading_error(folder, row.bytes, row.name), Catch::Contains(row.message));
      CHECK(page.contains(row.message));
      given.insert(row.message);
    }
  }
  for (const std::string& message : page) {
    INFO(message);
    CHECK(given.contains(message));
  }
}
