// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "larch/cases/case_folder.h"
#include "larch/cases/dataset_json.h"
#include "larch/io/image/image.h"
#include "tests/io/io_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

using Ids = std::set<std::string>;

/// A folder of files that stand for images.
struct Images : TemporaryFolder {
  std::string warning{};

  explicit Images(const std::vector<std::string>& files) {
    for (const std::string& file : files) make(file);
  }
  void make(const std::string& file) const {
    fs::create_directories((path / file).parent_path());
    write_file(*this / file, "text");
  }
  /// A series of the UID 1.2.<name>.
  void make_series(const std::string& folder, const std::string& name, int slices) const {
    fs::create_directories(path / folder);
    Grid grid;
    grid.size = {4, 4, slices};
    for (int i = 0; i < slices; ++i) {
      write_dicom_slice(*this / (folder + "/" + name + std::to_string(i) + ".dcm"),
                        Volume<int16_t>(grid), i,
                        {"A^B", "1", "", "1.2.3", "1.2." + name, "1.2.9"});
    }
  }
  std::map<std::string, Case> cases(CaseColumns columns = {}, bool with_labels = false) {
    std::map<std::string, Case> cases;
    columns.more.push_back({kSeriesColumn});
    for (const Case& c : read_case_folder(string(), columns, with_labels,
                                          [&](const std::string& text) { warning += text; })) {
      CHECK(cases.emplace(c.id, c).second);
    }
    return cases;
  }
  Ids ids() {
    Ids ids;
    for (const auto& [id, one] : cases()) ids.insert(id);
    return ids;
  }
  std::string label_of(const std::string& id) {
    const Case c = cases({.label_required = true}, true).at(id);
    return fs::path(c.label).lexically_relative(path).string();
  }
};

}  // namespace

TEST_CASE("images of a folder at any depth are cases, whose ids are their paths") {
  Images folder({"b.nii.gz", "s01/ses-1/ct.nrrd", "s01/ses-1/t1.mha", "x.mhd", "x.raw", "y.hdr",
                 "y.img", ".hidden.nii", "s01/notes.txt", "out/a.nii", "out/a.larch.json"});
  fs::create_directory_symlink(folder.path, folder.path / "s01" / "round");
  CHECK(folder.ids() == Ids{"b", "s01__ses-1__ct", "s01__ses-1__t1", "x", "y"});
  CHECK_THAT(folder.warning, Catch::Contains("2 files and folders are no images") &&
                                 Catch::Contains("notes.txt") && Catch::Contains("/out'"));
  CHECK(folder.cases()["s01__ses-1__ct"].image == folder / "s01/ses-1/ct.nrrd");
}

TEST_CASE("an id is unique and can be a file name, and others do not change it") {
  Images folder(
      {"a/b.nii", "a__b.nii", "c.nii", "c.mha", std::string(200, 'n') + ".nii", "line\nfeed.nii"});
  Ids ids = folder.ids();
  CHECK(ids.size() == 6);
  for (const std::string& id : ids) CHECK((id.size() < 180 && id.find('\n') == id.npos));
  folder.make("d.nii");
  ids.insert("d");
  CHECK(folder.ids() == ids);
}

TEST_CASE("DICOM series of one folder are told apart, and name their files") {
  Images folder({"study/readme", "cut/a.dcm", "study/cut.dcm"});
  folder.make_series("study", "1", 3);
  folder.make_series("study", "2", 2);
  folder.make_series("alone", "1", 2);
  // A damaged file is a case that fails, unless the reading of a series tells of it.
  CHECK(folder.ids() == Ids{"alone__1.2.1", "cut__a", "study__1.2.1", "study__1.2.2"});
  fs::remove(folder.path / "study/cut.dcm");
  const Case second = folder.cases()["study__1.2.2"];
  CHECK(second.files.size() == 2);
  CHECK(folder.cases()["alone__1.2.1"].files.empty());  // the folder is the series
  ReadOptions read;
  read.series_uid = second.further.at(kSeriesColumn);
  CHECK(read_volume<float>(second.image, read).size().z == 2);
  CHECK(read_case_folder(folder.string(), {}, false, {}).size() == 8);  // of sequences each file
}

TEST_CASE("a folder without an image says what is looked for") {
  Images folder({"notes.txt", "labels/a.nii.gz"});
  CHECK_THAT(message_of<InputError>([&] { folder.cases(); }),
             Catch::Contains("no image") && Catch::Contains("NIfTI") && Catch::Contains("DICOM") &&
                 Catch::Contains("notes.txt"));
}

TEST_CASE("labels of a training lie in a folder beside the images") {
  Images folder({"s1/ct.nii.gz", "s1/segmentations/liver.nii.gz", "images/c.nii.gz",
                 "labels/c.nii.gz", "d.mha", "labels/d.stl", "p/segmentations/liver.nii.gz"});
  folder.make_series("p/dicom", "1", 1);
  CHECK(folder.label_of("s1__ct") == "s1/segmentations");
  CHECK(folder.label_of("images__c") == "labels/c.nii.gz");
  CHECK(folder.label_of("d") == "labels/d.stl");
  CHECK(folder.label_of("p__dicom__1.2.1") == "p/segmentations");
  folder.make("f.nii");
  CHECK(folder.cases({}, true).size() == 5);  // where labels may be missing
  CHECK_THAT(message_of<InputError>([&] { folder.label_of("f"); }),
             Catch::Contains("f.nii' has no labels") && Catch::Contains("segmentations"));
  folder.make("labels/d.nii");
  CHECK_THAT(message_of<InputError>([&] { folder.label_of("d"); }), Catch::Contains("several"));
}
