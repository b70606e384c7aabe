// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The tables of apps/reading-images.md, but for DICOM: every message that they promise is given,
// for a file made here, and is in the page.
#include <algorithm>

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

/// A message and the lines of the header that it is about.
using Lines = std::vector<std::pair<std::string, std::string>>;

const std::string kVoxels(8, '\1');

std::string mha(const std::string& lines) {
  return mha_of("2 2 2", lines, kVoxels);
}

/// What stands in the place of a file.
std::vector<Row> placeholder_rows() {
  const std::string lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
  std::vector<Row> rows;
  for (const char* name : {"a.nii", "a.nii.gz", "a.hdr", "a.nhdr", "a.mha", "a.PNG", "a.tif",
                           "a.jpeg", "a.dcm", "IM0001"}) {
    for (const auto& [message, bytes] :
         Lines{{"is a Git LFS pointer, not the file itself", lfs},
               {"is a git-annex pointer, not the file itself", "/annex/objects/MD5E-s9--0.nii"},
               {"is a git-annex pointer, not the file itself", "../.git/annex/objects/a/b/c"},
               {"is an HTML page", "\xef\xbb\xbf\n<!-- gone -->\n<HTML lang='en'>"},
               {"is an HTML page", "<!doctype html><title>404</title>"},
               {"is empty (0 bytes)", ""}}) {
      rows.push_back({message, name, bytes});
    }
  }
  return rows;
}

std::vector<Row> general_rows(const std::string& nifti) {
  const std::string of_floats = with_shorts(nifti, {{42, 2}, {70, 16}, {72, 32}});
  const std::string of_frames = with_shorts(nifti, {{40, 4}, {48, 2}});
  return {
      {"more than the file can hold", "a.mha", mha_of("900 900 900", "", kVoxels)},
      {"truncated", "a.nii", nifti.substr(0, nifti.size() - 1)},
      {"is not to be believed", "a.mha", mha("ElementSpacing = 1 1 1e5\n")},
      {"is not to be believed", "a.mha", mha("ElementSpacing = 1e-8 1 1\n")},
      {"the header places a corner of the image at", "a.mha", mha("Offset = 0 2e7 0\n")},
      {"the geometry in the header is not finite", "a.nii", with(nifti, 292, INFINITY)},
      {"two axes of the direction matrix are parallel", "a.mha",
       mha("TransformMatrix = 1 0 0 1 0 0 0 0 1\n")},
      {"which one is needed here; choose it with --frame", "a.nii", of_frames + nifti.substr(352)},
      {"write one of them to a file of its own", "a.nrrd",
       nrrd_of("2 2 2", "kinds: vector domain domain\n", kVoxels)},
      {"voxels are NaN or infinite", "a.nii", with(of_floats, 352, NAN)}};
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

std::vector<Row> nrrd_rows() {
  const std::string ell = "units: \"ell\" \"ell\" \"ell\"\n";
  const std::string axes = "space: LPS\nspace directions: (1,0,0) (0,1,0) (0,0,1)\n";
  const std::string segments = "kinds: list domain domain\nSegment0_ID:=a\nSegment0_";
  const std::string unu = "; convert it with 'unu save -e gzip' of Teem";
  const std::string several_files =
      "its voxels stand in several files, which is not supported" + unu;
  std::vector<Row> rows{
      {"in which order bytes are", "a.nrrd",
       "NRRD0004\ntype: int16\ndimension: 1\nsizes: 4\nencoding: raw\n\n" + kVoxels},
      {"dimensions; 1 to 5 are supported", "a.nrrd", nrrd_of("2 2 2 1 1 1", "", kVoxels)}};
  for (const char* encoding : {"text", "ascii", "hex", "bzip2"}) {
    rows.push_back(
        {"is not supported or damaged" + unu, "a.nrrd", nrrd_of("2 2 2", "", kVoxels, encoding)});
  }
  for (const auto& [message, lines] :
       Lines{{"names a space and no directions", "space: RAS\n"},
             {"are not supported; write them in mm", axes + "space " + ell},
             {"are not supported; write them in mm", "spacings: 1 1 1\n" + ell},
             {"is damaged or not supported", axes + "space units: \"mm\"\n"},
             {"is damaged or not supported", "spacings: 1 1 " + std::string(5000, '1') + "x\n"},
             {"longer than 16 MiB; write the image without its metadata",
              "# " + std::string(17 << 20, 'c') + "\n"},
             {"which NRRD does not know", "colour: red\n"},
             {"says twice, and differently", "type: int8\n"},
             {"which is that of no segment", segments + "LabelValue:=99\n"},
             {"where it cannot be, or another one is", segments + "Layer:=2\n"},
             {"export it there as binary label map",
              segments + "Layer:=0\nSegmentation_MasterRepresentation:=Closed surface\n"},
             {"overlap, the first time at index",
              segments + "LabelValue:=1\nSegment1_ID:=b\nSegment1_LabelValue:=1\n"},
             {"names itself as the file of the voxels", "data file: a.nhdr\n"},
             {several_files, "data file: LIST\na.raw\nb.raw\n"},
             {several_files, "data file: %03d.raw 1 2 1\n"}}) {
    rows.push_back({message, "a.nhdr", nrrd_of("2 2 2", lines, kVoxels)});
  }
  return rows;
}

std::vector<Row> meta_rows() {
  return {{"says twice, and differently", "a.mha", mha("DimSize = 2 2 1\n")},
          {"dimensions; 1 to 5 are supported", "a.mha", mha_of("2 2 2 1 1 1", "", kVoxels)},
          {"spread over several files", "a.mhd", mha_of("2 2 2", "", "", "LIST")},
          {"stored as text", "a.mha", mha("BinaryData = False\n")},
          {"is damaged", "a.mha", mha("ElementSpacing = 1 1\n")}};
}

std::vector<Row> picture_rows() {
  TiffMaker ring, away, strips, half, turned, unknown, marked;
  ring.next = ring.directory_offset();
  away.next = 1 << 20;
  strips.fields[257].value = INT32_MAX;
  half.fields[258].value = 16;
  half.fields[257].value = half.fields[278].value = 6;
  turned = half;
  turned.fields[274] = {3, 1, 3};
  half.fields[339] = {3, 1, 3};
  unknown.fields[277].value = 2;
  unknown.fields[257].value = unknown.fields[278].value = 6;
  unknown.fields.erase(262);
  marked.fields[254] = {4, 1, 1};
  /// Another page behind the one of a file.
  const auto paged = [](const std::string& one, const std::string& directory) {
    return with(one, one.size() - 4, static_cast<uint32_t>(one.size())) + directory;
  };
  /// A page that a text describes.
  const auto described = [](const std::string& text) {
    TiffMaker maker;
    maker.fields[270] = {2, text.size() + 1, TiffMaker::kData + maker.data.size()};
    maker.data += text + std::string(2 - text.size() % 2, '\0');
    return maker.bytes();
  };
  const std::string one = TiffMaker{}.bytes();
  const std::string ome = "<OME xmlns='http://www.openmicroscopy.org/'><Pixels SizeC=\"1\" ";
  std::vector<Row> rows;
  for (const std::string& text :
       {std::string("ImageJ=1.53\nchannels=2\n"), std::string("ImageJ=1.53\nframes=6\n"),
        std::string("ImageJ=1.53\nimages=6\n"), ome + "SizeZ=\"1\" SizeT=\"3\"/>",
        ome + "SizeT=\"1\" SizeZ=\"2\"/>", ome}) {
    rows.push_back({"write one channel and time", "a.tif", described(text)});
  }
  const std::string narrow = with(TiffMaker{}.directory(0), 2 + 8, uint32_t{8});
  const std::vector<Row> others{
      {"in a ring", "a.tif", ring.bytes()},
      {"its component type is not supported", "a.tif", half.bytes()},
      {"write it in rows", "a.tif", turned.bytes()},
      {"does not say what its values are", "a.tif", unknown.bytes()},
      {"beyond the end of the file", "a.tif", away.bytes()},
      {"fewer strips or tiles", "a.tif", strips.bytes()},
      {"its first page is", "a.tif", paged(marked.bytes(), marked.directory(0))},
      {"pages are of different sizes or kinds", "a.tif", paged(one, narrow)},
      {"more tables than the file can hold", "a.tif", pages_of_one_table(100, 300)},
      {"the picture is damaged or truncated", "a.png", "\x89PNG\r\n\x1a\n" + std::string(40, 'x')},
      {"the picture is damaged or truncated", "a.jpg", "\xff\xd8\xff" + std::string(40, 'x')},
      {"more than 500 scans", "a.jpg", progressive_jpeg(32, 8)}};
  rows.insert(rows.end(), others.begin(), others.end());
  return rows;
}

/// Formats that are not read, by their endings or what they begin with.
std::vector<Row> refused_rows(const std::string& nifti) {
  std::vector<Row> rows{{"with SPM or FSL, to NIfTI", "a.hdr", with(nifti, 344, 0)},
                        {"a surface, not an image", "a.vtk",
                         "# vtk DataFile Version 4.2\nx\nASCII\nDATASET POLYDATA\n"}};
  for (const auto& [names, message] : std::vector<std::pair<std::vector<const char*>, const char*>>{
           {{"a.stl", "a.PLY", "a.obj", "a.gii", "a.vtp"}, "a surface, not an image"},
           {{"a.fcsv"}, "points of 3D Slicer"},
           {{"a.vtk", "a.VTI"}, "convert it with 3D Slicer to NRRD"},
           {{"a.gipl", "a.gipl.gz"}, "convert it with c3d (Convert3D) to NIfTI"},
           {{"a.mrc", "a.rec"}, "convert it with mrc2tif of IMOD to TIFF"},
           {{"a.pic"}, "BioRad is not read; convert it with bfconvert of Bio-Formats to TIFF"},
           {{"a.lsm"}, "LSM is not read; convert it with bfconvert of Bio-Formats to TIFF"},
           {{"a.mnc", "a.mnc2"}, "convert it with mnc2nii to NIfTI"},
           {{"a.h5", "a.hdf5", "a.he5"}, "convert it with h5py and nibabel to NIfTI"},
           {{"a.mgz", "a.mgh"}, "convert it with mri_convert to NIfTI"},
           {{"2dseq"}, "convert it with bruker2nifti to NIfTI"},
           {{"a.bmp"}, "convert it with ImageMagick to PNG"},
           {{"a.jp2", "a.j2k", "a.jpx"}, "convert it with opj_decompress to PNG"}}) {
    for (const char* name : names) rows.push_back({message, name, nifti});
  }
  return rows;
}

}  // namespace

TEST_CASE("every message of the reader's page is given, and no other is promised") {
  const TemporaryFolder folder;
  const std::string nifti = sound_nifti(folder);
  // DICOM and sequences have tests of their own.
  const std::set<std::string> page = promised_messages(lines_of_page([](const std::string& line) {
    return !line.starts_with("## DICOM") && !line.starts_with("## Parsers") &&
           line != "## Sequences";
  }));
  CHECK(page.size() > 30);
  CHECK_THAT(refusal(folder / "missing.nii"), Catch::Contains("no such file or folder"));
  ReadOptions ninth;
  ninth.frame = 9;
  CHECK_THAT(refusal(folder / "sound.nii", ninth), Catch::Contains("there is no frame"));
  fs::create_symlink(".git/annex/objects/a/b/c", folder / "annexed.nii.gz");
  CHECK_THAT(refusal(folder / "annexed.nii.gz"),
             Catch::Contains("is a link to a file that is not there"));
  write_file(folder / "labels.jpg", progressive_jpeg(32));
  CHECK_THAT(message_of<InputError>([&] { read_labels(folder / "labels.jpg"); }),
             Catch::Contains("JPEG is lossy"));
  std::set<std::string> given{"JPEG is lossy", "no such file or folder", "there is no frame",
                              "is a link to a file that is not there"};
  for (const auto& rows : {placeholder_rows(), general_rows(nifti), nifti_rows(nifti), nrrd_rows(),
                           meta_rows(), picture_rows(), refused_rows(nifti)}) {
    for (const Row& row : rows) {
      INFO(row.message);
      CHECK_THAT(reading_error(folder, row.bytes, row.name), Catch::Contains(row.message));
      given.insert(row.message);
    }
  }
  CHECK(given == page);
}
