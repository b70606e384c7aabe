// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/table/case_list.h"
#include "tests/io/io_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

// Empty files stand for images: lists only look whether they are there.
void make_images(const TemporaryFolder& folder) {
  for (const char* name : {"images", "labels", "imagesTr", "labelsTr"}) {
    fs::create_directory(folder / name);
    for (const char* file : {"a.nii.gz", "b.v2.nii.gz", "a_0000.nii.gz", "b_0000.nii.gz",
                             "b.nii.gz", "with space, and comma.nii"}) {
      write_file(folder / (std::string(name) + "/" + file), "");
    }
  }
}

std::string list_error(const TemporaryFolder& folder, const std::string& text,
                       const std::string& name = "bad.tsv") {
  write_file(folder / name, text);
  std::string message = message_of<InputError>([&] { read_case_list(folder / name); });
  CHECK_THAT(message, Catch::Contains(name));
  return message;
}

std::string json_error(const TemporaryFolder& folder, const std::string& text) {
  write_file(folder / "dataset.json", text);
  std::string message = message_of<InputError>([&] { read_dataset_json(folder / "dataset.json"); });
  CHECK_THAT(message, Catch::Contains("dataset.json"));
  return message;
}

}  // namespace

TEST_CASE("lists in TSV and CSV") {
  const TemporaryFolder folder;
  make_images(folder);
  write_file(folder / "a.tsv",
             "\xef\xbb\xbfimage\tlabel\tage\r\nimages/a.nii.gz\tlabels/a.nii.gz\t60\r\n\r\n"
             "./images/b.v2.nii.gz\t\t70");
  auto cases = read_case_list(folder / "a.tsv");
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].id == "a");
  CHECK(cases[0].image == folder / "images/a.nii.gz");
  CHECK(cases[0].label == folder / "labels/a.nii.gz");
  CHECK(cases[1].id == "b.v2");
  CHECK(cases[1].label.empty());

  write_file(folder / "a.csv",
             "label,id,image\nlabels/a.nii.gz,\"the \"\"first\"\"\",images/a.nii.gz\n"
             "labels/a.nii.gz, second ,\"images/with space, and comma.nii\"\n");
  cases = read_case_list(folder / "a.csv");
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].id == "the \"first\"");
  CHECK(cases[1].id == "second");
  CHECK(cases[1].image == folder / "images/with space, and comma.nii");

  write_file(folder / "abs.tsv",
             "image\n" + (folder / "images/a.nii.gz") + "\n" + (folder / "images") + "\n");
  cases = read_case_list(folder / "abs.tsv");
  CHECK(cases[0].image == folder / "images/a.nii.gz");
  CHECK(cases[1].id == "images");  // a DICOM folder
}

TEST_CASE("lists of pairs name their columns and need both") {
  const TemporaryFolder folder;
  make_images(folder);
  const CaseColumns pair{"prediction", "reference", true};
  write_file(folder / "pairs.tsv",
             "reference\tnote\tprediction\r\nlabels/a.nii.gz\tx\timages/a.nii.gz\r\n");
  const auto cases = read_case_list(folder / "pairs.tsv", pair);
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].id == "a");
  CHECK(cases[0].image == folder / "images/a.nii.gz");
  CHECK(cases[0].label == folder / "labels/a.nii.gz");
  const auto message = [&](const std::string& text) {
    write_file(folder / "bad.tsv", text);
    return message_of<InputError>([&] { read_case_list(folder / "bad.tsv", pair); });
  };
  CHECK_THAT(message("image\tlabel\na\tb\n"), Catch::Contains("no column 'prediction'"));
  CHECK_THAT(message("prediction\nimages/a.nii.gz\n"), Catch::Contains("no column 'reference'"));
  CHECK_THAT(message("prediction\treference\nimages/a.nii.gz\t\n"),
             Catch::Contains("line 2") && Catch::Contains("the reference is empty"));
  const std::string row = "images/a.nii.gz\tlabels/a.nii.gz";
  CHECK_THAT(message("prediction\treference\n" + row + "\tc\n"), Catch::Contains("3 fields"));
  CHECK_THAT(message("prediction\treference\n" + row + "\n" + row + "\n"),
             Catch::Contains("line 3"));
  CHECK_THAT(message("prediction\treference\n"), Catch::Contains("no cases"));
  CHECK_THAT(message(""), Catch::Contains("empty"));
}

TEST_CASE("lists of pairs resolve names from the folder of the list") {
  const TemporaryFolder folder;
  make_images(folder);
  const CaseColumns pair{"prediction", "reference", true};
  const std::string absolute = folder / "labels/b.nii.gz";
  write_file(folder / "images/pairs.tsv",
             "\xef\xbb\xbfreference\tnote\tprediction\r\n../labels/a.nii.gz\tx\ta.nii.gz\r\n\n" +
                 absolute + "\t\t../imagesTr/b.nii.gz\n");
  const auto cases = read_case_list(folder / "images/pairs.tsv", pair);
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].id == "a");
  CHECK(cases[0].image == folder / "images/a.nii.gz");
  CHECK(cases[0].label == folder / "labels/a.nii.gz");
  CHECK(cases[1].image == folder / "imagesTr/b.nii.gz");
  CHECK(cases[1].label == absolute);
  write_file(folder / "pairs.csv", "id,prediction,reference\nA,images/a.nii.gz,labels/a.nii.gz\n");
  CHECK(read_case_list(folder / "pairs.csv", pair)[0].id == "A");
}

TEST_CASE("lists that cannot be used say why and where") {
  const TemporaryFolder folder;
  make_images(folder);
  CHECK_THAT(message_of<InputError>([&] { read_case_list(folder / "no.tsv"); }),
             Catch::Contains("no.tsv"));
  CHECK_THAT(list_error(folder, ""), Catch::Contains("empty"));
  CHECK_THAT(list_error(folder, "\n\n"), Catch::Contains("empty"));
  CHECK_THAT(list_error(folder, "image\tlabel\n"), Catch::Contains("no cases"));
  CHECK_THAT(
      list_error(folder, "picture\tlabel\na\tb\n"),
      Catch::Contains("line 1") && Catch::Contains("no column 'image'") && Catch::Contains("tabs"));
  CHECK_THAT(list_error(folder, "image,label\na,b\n"), Catch::Contains("tabs"));
  CHECK_THAT(list_error(folder, "image\timage\na\tb\n"), Catch::Contains("twice"));
  CHECK_THAT(list_error(folder, "image\n\nimages/a.nii.gz\nimages/none.nii\n"),
             Catch::Contains("line 4") && Catch::Contains("images/none.nii"));
  CHECK_THAT(list_error(folder, "image\tlabel\nimages/a.nii.gz\tlabels/none.nii\n"),
             Catch::Contains("line 2") && Catch::Contains("label"));
  CHECK_THAT(list_error(folder, "image\tlabel\nimages/a.nii.gz\n"),
             Catch::Contains("line 2") && Catch::Contains("1 fields"));
  CHECK_THAT(list_error(folder, "image\nimages/a.nii.gz\nlabels/a.nii.gz\n"),
             Catch::Contains("line 3") && Catch::Contains("'a'") && Catch::Contains("line 2"));
  CHECK_THAT(list_error(folder, "image,label\n\"images/a.nii.gz,b\n", "bad.csv"),
             Catch::Contains("quote"));
  CHECK_THAT(list_error(folder, std::string("image\n\0\n", 8)), Catch::Contains("not a text file"));
}

TEST_CASE("dataset.json of the Decathlon and of nnU-Net") {
  const TemporaryFolder folder;
  make_images(folder);
  write_file(folder / "dataset.json",
             R"({"modality": {"0": "MRI"}, "labels": {"0": "background"},
                 "training": [{"image": "./images/a.nii.gz", "label": "./labels/a.nii.gz"},
                              {"image": "./images/b.nii.gz", "label": "./labels/b.nii.gz"}]})");
  auto cases = read_dataset_json(folder / "dataset.json");
  REQUIRE(cases.size() == 2);
  CHECK(cases[1].id == "b");
  CHECK(cases[1].image == folder / "images/b.nii.gz");
  write_file(folder / "dataset.json",
             R"({"channel_names": {"0": "CT"}, "numTraining": 2, "file_ending": ".nii.gz"})");
  cases = read_dataset_json(folder / "dataset.json");
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].id == "a");
  CHECK(cases[0].image == folder / "imagesTr/a_0000.nii.gz");
  CHECK(cases[0].label == folder / "labelsTr/a.nii.gz");

  CHECK_THAT(json_error(folder, "{"), Catch::Contains("not valid JSON"));
  CHECK_THAT(json_error(folder, "[1]"), Catch::Contains("object"));
  CHECK_THAT(json_error(folder, "{}"), Catch::Contains("training"));
  CHECK_THAT(json_error(folder, R"({"training": []})"), Catch::Contains("no training cases"));
  CHECK_THAT(json_error(folder, R"({"training": [{"image": 3}]})"), Catch::Contains("/training/0"));
  CHECK_THAT(json_error(folder, R"({"training": [{"image": "x", "label": "y"}]})"),
             Catch::Contains("does not exist"));
  CHECK_THAT(json_error(folder, R"({"training": [{"image": ".", "label": "y"}]})"),
             Catch::Contains("has no name that a case could be called by"));
  CHECK_THAT(json_error(folder, R"({"channel_names": {"0": "T1", "1": "T2"},
                                    "file_ending": ".nii.gz"})"),
             Catch::Contains("2 channels"));
  CHECK_THAT(json_error(folder, R"({"file_ending": 3})"), Catch::Contains("file_ending"));
  CHECK_THAT(json_error(folder, R"({"file_ending": ".mha"})"),
             Catch::Contains("no training cases"));
}
