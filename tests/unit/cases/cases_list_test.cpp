// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/case_list.h"
#include "larch/cases/dataset_json.h"
#include "tests/io/io_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

using Texts = std::vector<std::string>;

/// Empty files stand for images: lists only look whether they are there.
struct ImagesFolder : TemporaryFolder {
  ImagesFolder() {
    for (const char* name : {"images", "labels", "imagesTr", "labelsTr"}) {
      fs::create_directory(*this / name);
      for (const char* file : {"a.nii.gz", "b.v2.nii.gz", "a_0000.nii.gz", "b_0000.nii.gz",
                               "b.nii.gz", "with space, and comma.nii"}) {
        write_file(*this / (std::string(name) + "/" + file), "");
      }
    }
  }

  /// A path below the folder; nothing for an empty one.
  std::string below(const std::string& path) const {
    return path.empty() ? "" : fs::path(path).lexically_relative(string()).string();
  }

  /// "id|image|label" of each case.
  template <class Cases>
  Texts shown(const Cases& cases) const {
    Texts out;
    for (const auto& one : cases) {
      out.push_back(one.id + "|" + below(one.image) + "|" + below(one.label));
    }
    return out;
  }
  Texts listed(const std::string& name, const std::string& text,
               const CaseColumns& columns = {}) const {
    write_file(*this / name, text);
    return shown(read_case_list(*this / name, columns));
  }
};

/// The message for a list of this text; `tsv` names the file.
std::string list_error(const TemporaryFolder& folder, const std::string& text,
                       const CaseColumns& columns = {}, const std::string& tsv = "bad.tsv") {
  write_file(folder / tsv, text);
  std::string message = message_of<InputError>([&] { read_case_list(folder / tsv, columns); });
  CHECK_THAT(message, Catch::Contains(tsv));
  return message;
}

Dataset dataset_of(const TemporaryFolder& folder, const std::string& text,
                   DatasetPart part = DatasetPart::kTraining) {
  write_file(folder / "dataset.json", text);
  return read_dataset(folder / "dataset.json", part);
}

std::string json_error(const TemporaryFolder& folder, const std::string& text,
                       DatasetPart part = DatasetPart::kTraining) {
  std::string message = message_of<InputError>([&] { dataset_of(folder, text, part); });
  CHECK_THAT(message, Catch::Contains("dataset.json"));
  return message;
}

}  // namespace

TEST_CASE("lists in TSV and CSV") {
  const ImagesFolder folder;
  CHECK(folder.listed("a.tsv",
                      "\xef\xbb\xbfimage\tlabel\tage\r\nimages/a.nii.gz\tlabels/a.nii.gz\t60\r\n"
                      "\r\n./images/b.v2.nii.gz\t\t70") ==
        Texts{"a|images/a.nii.gz|labels/a.nii.gz", "b.v2|images/b.v2.nii.gz|"});
  CHECK(folder.listed("a.csv",
                      "label,id,image\nlabels/a.nii.gz,\"the \"\"first\"\"\",images/a.nii.gz\n"
                      "labels/a.nii.gz, second ,\"images/with space, and comma.nii\"\n") ==
        Texts{"the \"first\"|images/a.nii.gz|labels/a.nii.gz",
              "second|images/with space, and comma.nii|labels/a.nii.gz"});
  const std::string paths = (folder / "images/a.nii.gz") + "\n" + (folder / "images") + "\n";
  CHECK(folder.listed("abs.tsv", "image\n" + paths) ==
        Texts{"a|images/a.nii.gz|", "images|images|"});  // the second a DICOM folder
}

TEST_CASE("lists of pairs name their columns, and files from the folder of the list") {
  const ImagesFolder folder;
  const CaseColumns pair{"prediction", "reference", true};
  CHECK(folder.listed("images/pairs.tsv",
                      "\xef\xbb\xbfreference\tnote\tprediction\r\n"
                      "../labels/a.nii.gz\tx\ta.nii.gz\r\n\n" +
                          (folder / "labels/b.nii.gz") + "\t\t../imagesTr/b.nii.gz\n",
                      pair) ==
        Texts{"a|images/a.nii.gz|labels/a.nii.gz", "b|imagesTr/b.nii.gz|labels/b.nii.gz"});
  CHECK(folder.listed("pairs.csv", "id,prediction,reference\nA,images/a.nii.gz,labels/a.nii.gz\n",
                      pair) == Texts{"A|images/a.nii.gz|labels/a.nii.gz"});
  const std::string head = "prediction\treference\n", row = "images/a.nii.gz\tlabels/a.nii.gz";
  check_refusals([&](const std::string& text) { return list_error(folder, text, pair); },
                 {{"image\tlabel\na\tb\n", "no column 'prediction'"},
                  {"prediction\nimages/a.nii.gz\n", "no column 'reference'"},
                  {head + "images/a.nii.gz\t\n", "line 2: the reference is empty"},
                  {head + row + "\tc\n", "3 fields"},
                  {head + row + "\n" + row + "\n", "line 3"}});
}

TEST_CASE("lists that cannot be used say why and where") {
  const ImagesFolder folder;
  CHECK_THAT(message_of<InputError>([&] { read_case_list(folder / "no.tsv"); }),
             Catch::Contains("no.tsv"));
  check_refusals([&](const std::string& text) { return list_error(folder, text); },
                 {{"", "empty"},
                  {"\n\n", "empty"},
                  {"image\tlabel\n", "no cases"},
                  {"picture\tlabel\na\tb\n", "line 1: no column 'image'"},
                  {"image,label\na,b\n", "tabs"},
                  {"image\timage\na\tb\n", "twice"},
                  {std::string("image\n\0\n", 8), "not a text file"}});
  const auto says = [&](const std::string& text, const std::vector<const char*>& parts) {
    const std::string message = list_error(folder, text);
    for (const char* part : parts) CHECK_THAT(message, Catch::Contains(part));
  };
  says("image\n\nimages/a.nii.gz\nimages/none.nii\n", {"line 4", "images/none.nii"});
  says("image\tlabel\nimages/a.nii.gz\tlabels/none.nii\n", {"line 2", "label"});
  says("image\tlabel\nimages/a.nii.gz\n", {"line 2", "1 fields"});
  says("image\nimages/a.nii.gz\nlabels/a.nii.gz\n", {"line 3", "'a'", "line 2"});
  CHECK_THAT(list_error(folder, "image,label\n\"images/a.nii.gz,b\n", {}, "bad.csv"),
             Catch::Contains("quote"));
}

TEST_CASE("dataset.json of the Decathlon and of nnU-Net") {
  const ImagesFolder folder;
  const auto cases_of = [&](const std::string& text) {
    return folder.shown(one_channel(dataset_of(folder, text), "").cases);
  };
  CHECK(cases_of(R"({"modality": {"0": "MRI"}, "labels": {"0": "background"},
                     "training": [{"image": "./images/a.nii.gz", "label": "./labels/a.nii.gz"},
                                  {"image": "./images/b.nii.gz", "label": "./labels/b.nii.gz"}]})") ==
        Texts{"a|images/a.nii.gz|labels/a.nii.gz", "b|images/b.nii.gz|labels/b.nii.gz"});
  CHECK(cases_of(R"({"channel_names": {"0": "CT"}, "numTraining": 2, "file_ending": ".nii.gz"})") ==
        Texts{"a|imagesTr/a_0000.nii.gz|labelsTr/a.nii.gz",
              "b|imagesTr/b_0000.nii.gz|labelsTr/b.nii.gz"});
  check_refusals([&](const std::string& text) { return json_error(folder, text); },
                 {{"{", "not valid JSON"},
                  {"[1]", "object"},
                  {"{}", "training"},
                  {R"({"training": []})", "no training cases"},
                  {R"({"training": [{"image": 3}]})", "/training/0"},
                  {R"({"training": [{"image": "x", "label": "y"}]})", "does not exist"},
                  {R"({"training": [{"image": ".", "label": "y"}]})",
                   "has no name that a case could be called by"},
                  {R"({"file_ending": 3})", "file_ending"},
                  {R"({"file_ending": ".mha"})", "no training cases"}});
}

TEST_CASE("dataset.json: files of macOS are no cases, and a wrong number of cases is told") {
  const ImagesFolder folder;
  write_file(folder / "imagesTr/._a_0000.nii.gz", "");
  const std::string named = R"({"images": ["imagesTr/a_0000.nii.gz"], "label": "labels/a.nii.gz"})";
  const std::string listed = R"([{"image": "images/a.nii.gz", "label": "labels/a.nii.gz"},
                                 {"image": "./images/._a.nii.gz", "label": "labels/._a.nii.gz"}])";
  for (const auto& [text, cases] :
       {std::pair(std::string(R"("file_ending": ".nii.gz")"), 2),
        std::pair(R"("dataset": {"a": )" + named + R"(, "._a": )" + named + "}", 1),
        std::pair(R"("training": )" + listed, 1)}) {
    const Dataset dataset = dataset_of(folder, R"({"numTraining": 7, )" + text + "}");
    CHECK(dataset.cases.size() == static_cast<size_t>(cases));
    REQUIRE(dataset.warnings.size() == 2);
    CHECK_THAT(dataset.warnings[0], Catch::Contains("1 files that macOS made, such as"));
    CHECK_THAT(dataset.warnings[1],
               Catch::Contains("numTraining is 7, and there are " + std::to_string(cases)));
  }
}

TEST_CASE("dataset.json: the test part is the list 'test' or the folder imagesTs") {
  const ImagesFolder folder;
  const std::string training =
      R"("training": [{"image": "./images/a.nii.gz", "label": "./labels/a.nii.gz"}])";
  const std::string nnunet = R"("channel_names": {"0": "CT"}, "file_ending": ".nii.gz")";
  check_refusals(
      [&](const std::string& text) { return json_error(folder, text, DatasetPart::kTest); },
      {{"{" + nnunet + "}", "imagesTs"},
       {"{" + training + "}", "--dataset-part training"},
       {"{" + training + R"(, "test": []})", "--dataset-part training"},
       {R"({"test": [3]})", "/test/0"},
       {R"({"test": ["none.nii"]})", "does not exist"}});
  const auto cases_of = [&](const std::string& text) {
    Texts out;
    for (const auto& one : dataset_of(folder, "{" + text + "}", DatasetPart::kTest).cases) {
      CHECK(one.images.size() == 1);
      out.push_back(one.id + "|" + folder.below(one.images[0]) + "|" + one.label);
    }
    return out;
  };
  CHECK(cases_of(training +
                 R"(, "test": ["./images/b.nii.gz", {"image": "./images/b.v2.nii.gz"}])") ==
        Texts{"b|images/b.nii.gz|", "b.v2|images/b.v2.nii.gz|"});
  fs::create_directory(folder / "imagesTs");
  write_file(folder / "imagesTs/c_0000.nii.gz", "");
  for (const std::string further : {"", R"(, "test": [])", R"(, "dataset": {})"}) {
    CHECK(cases_of(nnunet + further) == Texts{"c|imagesTs/c_0000.nii.gz|"});
  }
}

TEST_CASE("columns that a program knows, requires or has never heard of") {
  const ImagesFolder folder;
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
  check_refusals([&](const std::string& text) { return list_error(folder, text, columns); },
                 {{"image\nimages/a.nii.gz\n", "no column 'side'"},
                  {"image\nimages/a.nii.gz\n", "(image, label, mask, side, id)"},
                  {"image\tside\nimages/a.nii.gz\t\n", "line 2: the side is empty"},
                  {"image\tside\tmask\nimages/a.nii.gz\tx\tnone.nii\n", "line 2: the mask"}});
}

TEST_CASE("dataset.json with several channels: one is chosen by name or number") {
  const ImagesFolder folder;
  for (const char* name : {"imagesTr/a_0001.nii.gz", "imagesTr/b_0001.nii.gz"}) {
    write_file(folder / name, "");
  }
  const auto read = [&](const std::string& text) { return dataset_of(folder, "{" + text + "}"); };
  const auto first = [&](const Dataset& dataset, const std::string& channel) {
    return folder.shown(one_channel(dataset, channel).cases)[0];
  };
  // nnU-Net version 2.
  const std::string two = R"("channel_names": {"1": "ADC", "0": "T2"}, )";
  Dataset dataset = read(two + R"("file_ending": ".nii.gz")");
  CHECK(dataset.channels == Texts{"T2", "ADC"});
  REQUIRE(dataset.cases.size() == 2);
  CHECK(dataset.cases[1].images ==
        Texts{folder / "imagesTr/b_0000.nii.gz", folder / "imagesTr/b_0001.nii.gz"});
  const std::string t2 = "a|imagesTr/a_0000.nii.gz|labelsTr/a.nii.gz";
  const std::string adc = "a|imagesTr/a_0001.nii.gz|labelsTr/a.nii.gz";
  for (const char* channel : {"ADC", "1"}) CHECK(first(dataset, channel) == adc);
  CHECK_FALSE(one_channel(dataset, "1").frame);
  for (const std::string channel : {"", "2", "-1", "t2", "0x1"}) {
    CHECK_THAT(message_of<UsageError>([&] { one_channel(dataset, channel); }),
               Catch::Contains("2 channels (0 T2, 1 ADC)") && Catch::Contains("--channel"));
  }
  // Two of one name; a number that is a name.
  dataset.channels = {"MRI", "MRI"};
  CHECK_THAT(message_of<UsageError>([&] { one_channel(dataset, "MRI"); }),
             Catch::Contains("give the number"));
  CHECK(first(dataset, "1") == adc);
  dataset.channels = {"1", "0"};
  CHECK(first(dataset, "1") == t2);
  // The files by name.
  dataset = read(two + R"("dataset": {"x": {"images": ["images/a.nii.gz", "labels/a.nii.gz"],
                                            "label": "labels/b.nii.gz"}})");
  CHECK(first(dataset, "ADC") == "x|labels/a.nii.gz|labels/b.nii.gz");
  // nnU-Net version 1 names the case, and stores a file per modality, also of one.
  const std::string listed =
      R"("training": [{"image": "./imagesTr/a.nii.gz", "label": "./labelsTr/a.nii.gz"}])";
  fs::remove(folder / "imagesTr/a.nii.gz");
  CHECK(first(read(R"("modality": {"0": "T2", "1": "ADC"}, )" + listed), "ADC") == adc);
  CHECK(first(read(R"("modality": {"0": "T2"}, )" + listed), "") == t2);
  // The Decathlon stores the modalities as volumes of one file.
  write_file(folder / "imagesTr/a.nii.gz", "");
  dataset = read(R"("modality": ["T2", "ADC"], )" + listed);
  CHECK(first(dataset, "ADC") == "a|imagesTr/a.nii.gz|labelsTr/a.nii.gz");
  CHECK(one_channel(dataset, "ADC").frame == 2);
}

TEST_CASE("dataset.json: labels by name, by number and as regions; what is neither is refused") {
  const ImagesFolder folder;
  const auto read = [&](const std::string& text) {
    return dataset_of(folder, R"({"file_ending": ".nii.gz", )" + text + "}");
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
  check_refusals(
      [&](const std::string& text) { return json_error(folder, R"({"dataset": )" + text + "}"); },
      {{"{}", "no training cases"},
       {R"({"x": 3})", "/dataset/x"},
       {R"({"x": {"images": [3], "label": "labels/a.nii.gz"}})", "/dataset/x/images"},
       {R"({"x": {"images": [], "label": "labels/a.nii.gz"}})", "one image per channel"}});
}

TEST_CASE("a table of labels has names, colours and codes, and says which line is wrong") {
  const TemporaryFolder folder;
  const std::string path = folder / "names.tsv";
  const auto read = [&](const std::string& text) {
    write_file(path, text);
    return read_label_table(path);
  };
  const LabelTable table = read(
      "color\tindex\tcode_scheme\tcode_value\tcode_meaning\tname\tnote\n"
      "#dd8265\t5\tSCT\t10200004\tLiver\tLeber\t?\nn/a\t-3\tn/a\tn/a\tn/a\tn/a\tn/a\n");
  REQUIRE(table.size() == 2);
  CHECK((table[0].value == 5 && table[0].name == "Leber" && table[0].rgb[1] == 0x82));
  CHECK((table[0].code.scheme == "SCT" && table[0].code.meaning == "Liver"));
  CHECK((table[1].value == -3 && table[1].name.empty() && table[1].code.value.empty()));
  const std::string codes = "index\tcode_scheme\tcode_value\tcode_meaning\n";
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"name\nx\n", "line 1: no column 'index'"},
      {"index\n1.5\n", "line 2: the index '1.5' is no whole number"},
      {"index\n1\n1\n", "line 3: the index '1' stands twice"},
      {"index\tcolor\n1\t#dd826\n", "line 2: the color '#dd826' is not of the form #rrggbb"},
      {"index\tcolor\n1\t#gg8265\n", "is not of the form #rrggbb"},
      {codes + "1\tSCT\t\tLiver\n", "line 2: give code_scheme and code_value"},
      {codes + "1\tSCT\t12345678901234567\tLiver\n", "of 16 characters at most"}};
  for (const auto& [text, message] : wrong) {
    CHECK_THAT(message_of<InputError>([&, text = text] { read(text); }), Catch::Contains(message));
  }
}
