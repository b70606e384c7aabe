// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "larch/cases/case_folder.h"
#include "larch/cases/dataset_json.h"
#include "larch/io/image/image.h"
#include "tests/io/io_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

const CaseColumns kWithSeries{.more = {{kSeriesColumn}}};
const CaseColumns kOfTraining{.label_required = true, .more = {{kSeriesColumn}}};

/// A folder of empty files, which stand for images.
struct Images : TemporaryFolder {
  std::string warning{};

  explicit Images(const std::vector<std::string>& files = {}) {
    for (const std::string& file : files) make(file);
  }
  void make(const std::string& file) const {
    fs::create_directories((path / file).parent_path());
    write_file(*this / file, "");
  }
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
  std::vector<Case> cases(const CaseColumns& columns = kWithSeries, bool with_labels = false) {
    return read_case_folder(string(), columns, with_labels,
                            [&](const std::string& text) { warning += text; });
  }
  std::set<std::string> ids() {
    std::set<std::string> ids;
    for (const Case& c : cases()) ids.insert(c.id);
    return ids;
  }
  std::string label_of(const std::string& id) {
    for (const Case& c : cases(kOfTraining, true)) {
      if (c.id == id) return fs::path(c.label).lexically_relative(path).string();
    }
    return "no such case";
  }
};

using Ids = std::set<std::string>;

}  // namespace

TEST_CASE("images of a folder at any depth are cases, whose ids are their paths") {
  Images folder({"b.nii.gz", "s01/ses-1/ct.nrrd", "s01/ses-1/t1.mha", "x.mhd", "x.raw", "y.hdr",
                 "y.img", ".hidden.nii", "._b.nii.gz", "s01/notes.txt", "out/a.nii.gz",
                 "out/a.larch.json"});
  CHECK(folder.ids() == Ids{"b", "s01__ses-1__ct", "s01__ses-1__t1", "x", "y"});
  CHECK_THAT(folder.warning, Catch::Contains("2 files and folders are no images") &&
                                 Catch::Contains("notes.txt") && Catch::Contains("/out'"));
  fs::create_directory_symlink(folder.path, folder.path / "s01" / "round");
  CHECK(folder.ids().size() == 5);
  CHECK(fs::path(folder.cases()[1].image) == folder.path / "s01/ses-1/ct.nrrd");
}

TEST_CASE("an id is unique and can be a file name, and others do not change it") {
  Images folder(
      {"a/b.nii", "a__b.nii", "c.nii", "c.mha", std::string(200, 'n') + ".nii", "line\nfeed.nii"});
  const Ids ids = folder.ids();
  CHECK(ids.size() == 6);
  for (const std::string& id : ids) {
    CHECK((id.size() < 180 && id.find('\n') == std::string::npos &&
           id.find('/') == std::string::npos));
  }
  folder.make("d.nii");
  Ids more = ids;
  more.insert("d");
  CHECK(folder.ids() == more);
}

TEST_CASE("DICOM series of one folder are told apart, and name their files") {
  Images folder({"study/readme"});
  folder.make_series("study", "1", 3);
  folder.make_series("study", "2", 2);
  folder.make_series("alone", "1", 2);
  std::map<std::string, Case> cases;
  for (const Case& c : folder.cases()) cases[c.id] = c;
  REQUIRE(cases.size() == 3);
  const Case& second = cases.at("study__1.2.2");
  CHECK(second.further.at(kSeriesColumn) == "1.2.2");
  CHECK(second.files.size() == 2);
  CHECK(cases.at("study__1.2.1").files.size() == 3);
  CHECK(cases.at("alone__1.2.1").files.empty());  // the folder is the series
  ReadOptions read;
  read.series_uid = "1.2.2";
  CHECK(read_volume<float>(second.image, read).size().z == 2);
  CHECK(folder.cases({}).size() == 7);  // of sequences each file
}

TEST_CASE("a damaged DICOM file is a case that fails, unless the reading of a series tells of it") {
  Images folder({"a/cut.dcm", "b/cut.dcm"});
  folder.make_series("b", "1", 2);
  CHECK(folder.ids() == Ids{"a__cut", "b__1.2.1"});
}

TEST_CASE("a folder without an image says what is looked for") {
  Images folder({"notes.txt", "labels/a.nii.gz"});
  CHECK_THAT(message_of<InputError>([&] { folder.cases(); }),
             Catch::Contains("no image") && Catch::Contains("NIfTI") && Catch::Contains("DICOM") &&
                 Catch::Contains("notes.txt"));
  CHECK_THAT(message_of<InputError>([&] { read_dataset(folder.string()); }),
             Catch::Contains("dataset.json"));
}

TEST_CASE("labels of a training lie in a folder beside the images") {
  Images folder({"s1/ct.nii.gz", "s1/segmentations/liver.nii.gz", "images/c.nii.gz",
                 "labels/c.nii.gz", "d.mha", "labels/d.stl"});
  folder.make_series("p/dicom", "1", 1);
  folder.make("p/segmentations/liver.nii.gz");
  CHECK(folder.label_of("s1__ct") == "s1/segmentations");
  CHECK(folder.label_of("images__c") == "labels/c.nii.gz");
  CHECK(folder.label_of("d") == "labels/d.stl");
  CHECK(folder.label_of("p__dicom__1.2.1") == "p/segmentations");
  folder.make("labels/d.nii");
  CHECK_THAT(message_of<InputError>([&] { folder.label_of("d"); }),
             Catch::Contains("several labels"));
  folder.make("labels/e.nii");
  fs::remove(folder.path / "labels/d.nii");
  folder.make("f.nii");
  CHECK_THAT(message_of<InputError>([&] { folder.label_of("f"); }),
             Catch::Contains("f.nii' has no labels") && Catch::Contains("segmentations"));
  CHECK(folder.cases(kWithSeries, true).size() == 5);  // where they may be missing
}
