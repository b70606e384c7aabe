// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The table of apps/reading-images.md of what ITK's own readers do. For each row a file is made and
// given to the reader of the ITK that is installed, and to Larch. If a later ITK mends it, the row
// fails.
#include <algorithm>
#include <functional>
#include <map>

#include <fcntl.h>
#include <itkVersion.h>

#include "tests/io/dicom/dicom_check_util.h"
#include "tests/io/itk/itk_reference.h"
#include "tests/io/nifti_damage.h"
#include "tests/io/tiff_maker.h"

using namespace larch;
using namespace larch::test;

namespace {

using Image = Volume<float>;
using Look = std::function<bool(const Image&)>;

Image read_by_larch(const std::string& path) {
  Image image = read_volume<float>(path);
  CHECK_THAT(describe_difference(probe_image(path).grid, image.grid(), 1e-6), Catch::Equals(""));
  return image;
}

Image read_by_itk(const std::string& path) {
  const auto read = read_file_by_itk<itk::Image<float, 3>>(path);
  Image image(grid_of_itk(*read));
  std::copy_n(read->GetBufferPointer(), image.voxels(), image.begin());
  return image;
}

Volume<int16_t> noise() {
  return random_volume<int16_t>(oblique_grid({16, 16, 16}), -30000, 30000);
}

/// How an action ends, in the words of the page: "refused" by an exception, "the process ends",
/// "never ends", or `done`. It runs in a process of its own, which may take two seconds of a
/// processor; on a full disk, where no file becomes longer than 1000 bytes, if it is to be
/// "written".
std::string end_of(const std::function<void()>& action, const std::string& done) {
  constexpr int kDone = 40, kRefused = 41;
  const int status = status_of_child([&] {
    const rlimit none{0, 0}, seconds{2, 3}, bytes{1000, 1000};
    ::setrlimit(RLIMIT_CORE, &none);
    ::setrlimit(RLIMIT_CPU, &seconds);
    const int null = ::open("/dev/null", O_WRONLY);
    for (const int stream : {1, 2}) ::dup2(null, stream);
    for (const int number : {SIGXCPU, SIGABRT, SIGSEGV}) ::signal(number, SIG_DFL);
    ::signal(SIGXFSZ, SIG_IGN);
    if (done == "written") ::setrlimit(RLIMIT_FSIZE, &bytes);
    try {
      action();
    } catch (const std::exception&) {
      return kRefused;
    }
    return kDone;
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kDone) return done;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kRefused) return "refused";
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU ? "never ends" : "the process ends";
}

struct Row {
  std::string found;  ///< the first column of the page
  std::vector<std::string> paths;
  Look by_itk = {}, by_larch = {};  ///< whether the image is as the page says, where one is read
};

bool by_qform(const Image& image) {
  return image.grid().origin_mm.x == 11;
}

bool by_sform(const Image& image) {
  return image.grid().origin_mm.x == 22;
}

bool is_sheared(const Image& image) {
  return std::abs(determinant(image.grid().direction)) < 0.99;
}

bool is_upright(const Image& image) {
  return !is_sheared(image);
}

Look starts(const std::vector<float>& values) {
  return [=](const Image& image) { return std::equal(values.begin(), values.end(), &image[0]); };
}

std::vector<Row> transform_rows(const TemporaryFolder& folder) {
  const std::string sound = sound_nifti(folder);
  // The first voxel is at x = 11 mm by the qform, at 22 mm by the sform.
  const auto coded = [&](int16_t qform, int16_t sform, bool sheared = false) {
    std::string bytes = with(with(sound, 252, qform), 254, sform);
    bytes = with(with(bytes, 268, -11.0F), 292, -22.0F);
    const std::string codes = std::to_string(qform) + std::to_string(sform);
    std::string path = folder / (codes + (sheared ? "sheared.nii" : ".nii"));
    write_file(path, sheared ? with(bytes, 284, 1.0F) : bytes);
    return path;
  };
  write_file(folder / "two.nii", sound_nifti2());
  return {{"an sform of code 2 or more (a template) and a qform, at different places",
           {coded(1, 2), coded(2, 2), coded(1, 4), coded(4, 4), coded(1, 5)},
           by_qform,
           by_sform},
          {"an sform of code 1 (scanner) and a qform, at different places",
           {coded(1, 1), coded(2, 1)},
           by_sform,
           by_sform},
          {"a sheared sform, no qform", {coded(0, 1, true), coded(0, 2, true)}, {}, is_sheared},
          {"a sheared sform and a qform",
           {coded(1, 1, true), coded(1, 2, true)},
           [](const Image& image) { return by_qform(image) && is_upright(image); },
           [](const Image& image) { return by_sform(image) && is_sheared(image); }},
          {"NIfTI-2", {folder / "two.nii"}, {}, starts({0, 1, 2, 3})}};
}

std::vector<Row> nifti_rows(const TemporaryFolder& folder) {
  write_volume(folder / "nan.nii", Image(oblique_grid({4, 3, 2}), 7));
  const std::string sevens = read_file(folder / "nan.nii");
  write_file(folder / "nan.nii", with(sevens, 352, NAN));
  write_file(folder / "infinite.nii", with(sevens, 352, INFINITY));
  for (const char* name : {"cut.nii", "torn.nii.gz", "a.nii", "b.nii.gz", "both.nii.gz"}) {
    write_volume(folder / name, noise());
  }
  for (const char* name : {"cut.nii", "torn.nii.gz"}) fs::resize_file(folder / name, 4000);
  write_volume(folder / "both.nii", Volume<int16_t>(noise().grid(), 7));
  const float first = noise()[0];
  const Look ends_in_0 = [first](const Image& image) {
    return image[0] == first && image[image.voxels() - 1] == 0;
  };
  return {{"NaN or infinity in a NIfTI file",
           {folder / "nan.nii", folder / "infinite.nii"},
           starts({0, 7})},
          {"a NIfTI file that is cut off, compressed or not",
           {folder / "cut.nii", folder / "torn.nii.gz"},
           ends_in_0},
          {"a NIfTI file that is not there, and one with another ending beside it",
           {folder / "a.nii.gz", folder / "b.nii", folder / "a.hdr"},
           starts({first})},
          {"`x.nii.gz` with an `x.nii` beside it",
           {folder / "both.nii.gz"},
           starts({7, 7}),
           starts({first})},
          {"NIfTI on a full disk", {folder / "full.nii", folder / "full.nii.gz"}}};
}

std::vector<Row> other_rows(const TemporaryFolder& folder) {
  const std::string nrrd = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 2 2 2\nencoding: raw\n";
  for (const std::string field : {"space", "spacings"}) {
    write_file(folder / (field + ".nrrd"),
               nrrd + field + ": " + std::string(1000, 'x') + "\n\n12345678");
  }
  TiffMaker ring;
  ring.next = ring.directory_offset();
  write_file(folder / "ring.tif", ring.bytes());
  write_file(folder / "cut.mha",
             "ObjectType = Image\nNDims = 3\nBinaryData = True\nDimSize = 2 2 2\n"
             "ElementType = MET_UCHAR\nElementDataFile = LOCAL\n1234");
  return {{"a MetaImage file that is cut off", {folder / "cut.mha"}, starts({'1', '2', '3', '4'})},
          {"a word of 1000 characters in a header of NRRD",
           {folder / "space.nrrd", folder / "spacings.nrrd"}},
          {"TIFF directories in a ring", {folder / "ring.tif"}},
          {"MetaImage on a full disk", {folder / "full.mha"}}};
}

std::vector<Row> dicom_rows(const TemporaryFolder& folder, const TemporaryFolder& gap,
                            const TemporaryFolder& tilted) {
  const auto put = [&](const std::string& name, const MadeSlice& slice) {
    write_file(folder / name, made_dicom(slice));
    return folder / name;
  };
  std::vector<MadeSlice> slices = stack(5, {0, 0, 2});
  slices.erase(slices.begin() + 2);
  write_stack(gap, slices);
  slices = stack(3, {0, 0, 2});
  for (MadeSlice& slice : slices) slice.position.y = slice.position.z;
  write_stack(tilted, slices);
  MadeSlice table = stored_as(16, 16, 15, 0), half, word, comma;
  const std::string first_three("\3\0\0\0\x10\0", 6), entries("\7\0\x8\0\x9\0", 6);
  table.groups = dicom_sequence(0x28, 0x3000,
                                {dicom_element(0x28, 0x3002, "US", first_three) +
                                 dicom_element(0x28, 0x3006, "OW", entries)});
  half.raw_pixels = std::string("\1\0\2\0\3\0\4\0\5\0\6\0", 12);
  word.slope = "abc";
  comma.slope = "1,5";
  const Look stretched = [](const Image& image) {
    return image.size().z == 4 && std::abs(image.grid().spacing_mm.z - 8.0 / 3) < 1e-5;
  };
  return {{"a missing slice", {gap.string()}, stretched},
          {"a tilted gantry", {tilted.string()}, is_upright, is_sheared},
          {"a Modality LUT", {put("table.dcm", table)}, starts({0, 1, 2}), starts({7, 8, 9})},
          {"DICOM with half of its pixel data",
           {put("half.dcm", half)},
           starts({-998, -996, -994, -992, -990, -988})},
          {"a RescaleSlope that is no number",
           {put("word.dcm", word), put("comma.dcm", comma)},
           starts({-1000, -999, -998})}};
}

/// The rows of the page: the second and third column by the first.
std::map<std::string, std::pair<std::string, std::string>> rows_of_page() {
  std::map<std::string, std::pair<std::string, std::string>> rows;
  for (const std::string& line : lines_of_page([](const std::string& heading) {
         return heading == "## What ITK's own readers do with such files";
       })) {
    const size_t second = line.find(" | "), third = line.find(" | ", second + 1);
    if (!line.starts_with("| ") || third == std::string::npos) continue;
    rows[line.substr(2, second - 2)] = {line.substr(second + 3, third - second - 3),
                                        line.substr(third + 3)};
  }
  rows.erase("what is found");
  rows.erase("---");
  return rows;
}

void check(const Row& row, const std::string& path, const std::string& says_itk,
           const std::string& says_larch) {
  INFO(path);
  const std::string done = says_itk.starts_with("written") ? "written" : "read";
  const auto by_itk = [&] {
    done == "read" ? void(read_by_itk(path)) : write_file_by_itk(path, noise());
  };
  const std::string end = end_of(by_itk, done);
  CHECK_THAT(says_itk, Catch::StartsWith(end));
  if (end == "read" && row.by_itk) CHECK(row.by_itk(read_by_itk(path)));
  const size_t begin = says_larch.find('`') + 1, length = says_larch.find('`', begin) - begin;
  if (done == "written") {
    CHECK_THAT(says_larch, Catch::StartsWith(end_of([&] { write_volume(path, noise()); }, done)));
  } else if (says_larch.starts_with("refused")) {
    CHECK_THAT(message_of<InputError>([&] { read_by_larch(path); }),
               Catch::Contains(says_larch.substr(begin, length)));
  } else {
    CHECK((row.by_larch && row.by_larch(read_by_larch(path))));
  }
}

}  // namespace

TEST_CASE("ITK's own readers, and Larch, do what the page says of each row") {
  itk::Object::SetGlobalWarningDisplay(false);
  const TemporaryFolder folder, gap, tilted;
  auto page = rows_of_page();
  for (const auto& rows : {transform_rows(folder), nifti_rows(folder), other_rows(folder),
                           dicom_rows(folder, gap, tilted)}) {
    for (const Row& row : rows) {
      INFO("the row '" << row.found << "' of apps/reading-images.md is not what ITK "
                       << itk::Version::GetITKVersion() << " or Larch does: mend the row");
      const auto columns = page.extract(row.found);
      CHECK_FALSE(columns.empty());
      if (columns.empty()) continue;
      for (const std::string& path : row.paths) {
        check(row, path, columns.mapped().first, columns.mapped().second);
      }
    }
  }
  for (const auto& [found, columns] : page) FAIL_CHECK("'" << found << "' has no test");
}
