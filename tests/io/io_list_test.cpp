// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/table/case_list.h"
#include "larch/io/table/dataset_json.h"
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
  std::string message = message_of<InputError>([&] { read_dataset(folder / "dataset.json"); });
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
  auto cases = one_channel(read_dataset(folder / "dataset.json"), "").cases;
  REQUIRE(cases.size() == 2);
  CHECK(cases[1].id == "b");
  CHECK(cases[1].image == folder / "images/b.nii.gz");
  write_file(folder / "dataset.json",
             R"({"channel_names": {"0": "CT"}, "numTraining": 2, "file_ending": ".nii.gz"})");
  cases = one_channel(read_dataset(folder / "dataset.json"), "").cases;
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
  CHECK_THAT(json_error(folder, R"({"file_ending": 3})"), Catch::Contains("file_ending"));
  CHECK_THAT(json_error(folder, R"({"file_ending": ".mha"})"),
             Catch::Contains("no training cases"));
}

TEST_CASE("dataset.json: the test part is the list 'test' or the folder imagesTs") {
  const TemporaryFolder folder;
  make_images(folder);
  const auto read = [&](const std::string& text) {
    write_file(folder / "dataset.json", text);
    return read_dataset(folder / "dataset.json", DatasetPart::kTest);
  };
  const auto error_of = [&](const std::string& text) {
    return message_of<InputError>([&] { read(text); });
  };
  const std::string training =
      R"("training": [{"image": "./images/a.nii.gz", "label": "./labels/a.nii.gz"}])";
  auto cases = read("{" + training + R"(, "test": ["./images/b.nii.gz",
                                                   {"image": "./images/b.v2.nii.gz"}]})")
                   .cases;
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].id == "b");
  CHECK(cases[0].images == std::vector<std::string>{folder / "images/b.nii.gz"});
  CHECK(cases[0].label.empty());
  CHECK(cases[1].id == "b.v2");
  const std::string nnunet = R"("channel_names": {"0": "CT"}, "file_ending": ".nii.gz")";
  CHECK_THAT(error_of("{" + nnunet + "}"), Catch::Contains("imagesTs"));
  fs::create_directory(folder / "imagesTs");
  write_file(folder / "imagesTs/c_0000.nii.gz", "");
  for (const std::string further : {"", R"(, "test": [])", R"(, "dataset": {})"}) {
    cases = read("{" + nnunet + further + "}").cases;
    REQUIRE(cases.size() == 1);
    CHECK(cases[0].id == "c");
    CHECK(cases[0].images == std::vector<std::string>{folder / "imagesTs/c_0000.nii.gz"});
  }
  for (const std::string& none : {"{" + training + "}", "{" + training + R"(, "test": []})"}) {
    CHECK_THAT(error_of(none), Catch::Contains("--dataset-part training"));
  }
  CHECK_THAT(error_of(R"({"test": [3]})"), Catch::Contains("/test/0"));
  CHECK_THAT(error_of(R"({"test": ["none.nii"]})"), Catch::Contains("does not exist"));
}

TEST_CASE("columns that a program knows, requires or has never heard of") {
  const TemporaryFolder folder;
  make_images(folder);
  CaseColumns columns;
  columns.more = {{"mask", /*is_file=*/true, /*required=*/false},
                  {"side", /*is_file=*/false, /*required=*/true}};
  write_file(folder / "a.tsv",
             "side\timage\tage\tmask\nleft\timages/a.nii.gz\t60\tlabels/a.nii.gz\n"
             "right\timages/b.nii.gz\t\t\n");
  const auto cases = read_case_list(folder / "a.tsv", columns);
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].further ==
        std::map<std::string, std::string>{
            {"side", "left"}, {"age", "60"}, {"mask", folder / "labels/a.nii.gz"}});
  CHECK(cases[1].further ==
        std::map<std::string, std::string>{{"side", "right"}, {"age", ""}, {"mask", ""}});
  const auto message = [&](const std::string& text) {
    write_file(folder / "bad.tsv", text);
    return message_of<InputError>([&] { read_case_list(folder / "bad.tsv", columns); });
  };
  CHECK_THAT(
      message("image\nimages/a.nii.gz\n"),
      Catch::Contains("no column 'side'") && Catch::Contains("(image, label, mask, side, id)"));
  CHECK_THAT(message("image\tside\nimages/a.nii.gz\t\n"),
             Catch::Contains("line 2") && Catch::Contains("the side is empty"));
  CHECK_THAT(message("image\tside\tmask\nimages/a.nii.gz\tx\tnone.nii\n"),
             Catch::Contains("line 2") && Catch::Contains("the mask"));
}

TEST_CASE("dataset.json with several channels: one is chosen by name or number") {
  const TemporaryFolder folder;
  make_images(folder);
  for (const char* name : {"imagesTr/a_0001.nii.gz", "imagesTr/b_0001.nii.gz"}) {
    write_file(folder / name, "");
  }
  const auto read = [&](const std::string& text) {
    write_file(folder / "dataset.json", text);
    return read_dataset(folder / "dataset.json");
  };
  // nnU-Net version 2.
  const std::string two = R"("channel_names": {"1": "ADC", "0": "T2"}, )";
  Dataset dataset = read("{" + two + R"("file_ending": ".nii.gz"})");
  CHECK(dataset.channels == std::vector<std::string>{"T2", "ADC"});
  REQUIRE(dataset.cases.size() == 2);
  CHECK(dataset.cases[1].images == std::vector<std::string>{folder / "imagesTr/b_0000.nii.gz",
                                                            folder / "imagesTr/b_0001.nii.gz"});
  for (const char* channel : {"ADC", "1"}) {
    const OneChannel one = one_channel(dataset, channel);
    CHECK(one.cases[0].image == folder / "imagesTr/a_0001.nii.gz");
    CHECK(one.cases[0].label == folder / "labelsTr/a.nii.gz");
    CHECK_FALSE(one.frame);
  }
  for (const std::string channel : {"", "2", "-1", "t2", "0x1"}) {
    const std::string message = message_of<UsageError>([&] { one_channel(dataset, channel); });
    CHECK_THAT(message,
               Catch::Contains("2 channels (0 T2, 1 ADC)") && Catch::Contains("--channel"));
  }
  // Two of one name; a number that is a name.
  dataset.channels = {"MRI", "MRI"};
  CHECK_THAT(message_of<UsageError>([&] { one_channel(dataset, "MRI"); }),
             Catch::Contains("give the number"));
  CHECK(one_channel(dataset, "1").cases[0].image == folder / "imagesTr/a_0001.nii.gz");
  dataset.channels = {"1", "0"};
  CHECK(one_channel(dataset, "1").cases[0].image == folder / "imagesTr/a_0000.nii.gz");
  // The files by name.
  dataset = read("{" + two + R"("dataset": {"x": {"images": ["images/a.nii.gz", "labels/a.nii.gz"],
                                                  "label": "labels/b.nii.gz"}}})");
  CHECK(one_channel(dataset, "ADC").cases[0].image == folder / "labels/a.nii.gz");
  CHECK(one_channel(dataset, "ADC").cases[0].id == "x");
  // nnU-Net version 1 names the case, and stores a file per modality, also of one.
  const std::string listed =
      R"("training": [{"image": "./imagesTr/a.nii.gz", "label": "./labelsTr/a.nii.gz"}]})";
  std::filesystem::remove(folder / "imagesTr/a.nii.gz");
  dataset = read(R"({"modality": {"0": "T2", "1": "ADC"}, )" + listed);
  CHECK(one_channel(dataset, "ADC").cases[0].image == folder / "imagesTr/a_0001.nii.gz");
  CHECK(one_channel(dataset, "ADC").cases[0].id == "a");
  dataset = read(R"({"modality": {"0": "T2"}, )" + listed);
  CHECK(one_channel(dataset, "").cases[0].image == folder / "imagesTr/a_0000.nii.gz");
  // The Decathlon stores the modalities as volumes of one file.
  write_file(folder / "imagesTr/a.nii.gz", "");
  dataset = read(R"({"modality": ["T2", "ADC"], )" + listed);
  const OneChannel one = one_channel(dataset, "ADC");
  CHECK(one.cases[0].image == folder / "imagesTr/a.nii.gz");
  CHECK(one.frame == 2);
}

TEST_CASE("dataset.json: labels by name, by number and as regions; what is neither is refused") {
  const TemporaryFolder folder;
  make_images(folder);
  const auto read = [&](const std::string& text) {
    write_file(folder / "dataset.json", R"({"file_ending": ".nii.gz", )" + text + "}");
    return read_dataset(folder / "dataset.json");
  };
  CHECK(labels_text(read(R"("labels": {"liver": 1, "background": 0})").labels) ==
        "0 background, 1 liver");
  CHECK(labels_text(read(R"("labels": {"1": "liver", "0": "background"})").labels) ==
        "0 background, 1 liver");
  CHECK(labels_text(read(R"("labels": {"background": 0, "whole": [1, 2], "core": [2]})").labels) ==
        "0 background, 1+2 whole, 2 core");
  CHECK(read(R"("numTraining": 2)").labels.empty());
  for (const std::string labels :
       {"[]", "3", R"({"a": 0.5})", R"({"a": -1})", R"({"a": 4294967296})", R"({"a": null})",
        R"({"a": []})", R"({"a": ["1"]})", R"({"a": [[1]]})", R"({"liver": "1"})",
        R"({"-1": "liver"})", R"({"a": 18446744073709551615})"}) {
    CAPTURE(labels);
    CHECK_THAT(message_of<InputError>([&] { read("\"labels\": " + labels); }),
               Catch::Contains("/labels"));
  }
  for (const std::string channels :
       {"3", R"({"1": "T2"})", R"({"0": "T2", "2": "ADC"})", R"({"0": 1})", R"({"a": "T2"})", "[1]",
        R"({"00": "a", "0": "b"})"}) {
    CAPTURE(channels);
    CHECK_THAT(message_of<InputError>([&] { read("\"channel_names\": " + channels); }),
               Catch::Contains("/channel_names"));
  }
  CHECK_THAT(message_of<InputError>([&] { read(R"("channel_names": {"0": "a", "1": "b"})"); }),
             Catch::Contains("a_0001.nii.gz") && Catch::Contains("does not exist"));
  const auto named = [&](const std::string& text) {
    return json_error(folder, R"({"dataset": )" + text + "}");
  };
  CHECK_THAT(named("{}"), Catch::Contains("no training cases"));
  CHECK_THAT(named(R"({"x": 3})"), Catch::Contains("/dataset/x"));
  CHECK_THAT(named(R"({"x": {"images": [3], "label": "labels/a.nii.gz"}})"),
             Catch::Contains("/dataset/x/images"));
  CHECK_THAT(named(R"({"x": {"images": [], "label": "labels/a.nii.gz"}})"),
             Catch::Contains("one image per channel"));
}
