// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// A kind of model costs its declaration alone: file, JSON, description and protection from damage
// come with it. The tables of lib/larch/models/README.md are those of the declarations.
#include <array>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/models/binary_layout.h"
#include "larch/models/boundary_layout.h"
#include "larch/models/hdn_layout.h"
#include "larch/models/json_layout.h"
#include "larch/models/text_layout.h"
#include "larch/models/voxels_layout.h"
#include "tests/unit/models/field_tables.h"
#include "tests/unit/models/model_fixtures.h"

// The declaration of a kind whose trees are sections of their own.
namespace toy {

enum class Side : uint8_t { kLeft, kRight };
constexpr auto enum_names(Side*) {
  return std::to_array<larch::EnumName<Side>>({{Side::kLeft, "left"}, {Side::kRight, "right"}});
}
struct Split {
  Side side = Side::kLeft;
  double threshold_mm = 0;
  std::vector<int16_t> features;
};
template <class V>
void layout(V& v, Split& split) {
  auto& [side, threshold_mm, features] = split;
  v("side", side, "where larger values go");
  v("threshold_mm", threshold_mm, "the largest value of the other side");
  v("features", features, "indices of the features whose sum is compared");
}
struct Forest {
  std::string name;
  std::array<std::vector<Split>, 2> trees;
};
template <class V>
void sections(V& v, Forest& forest) {
  v.kind({"toy-forest", 2, "trees of splits"});
  v.section("name", forest.name, {"what it finds"});
  v.section("trees/0", forest.trees[0], {"one tree"});
  v.section("trees/1", forest.trees[1], {"one tree"});
}

}  // namespace toy

namespace {

using namespace larch;
using namespace larch::models;

toy::Forest toy_forest() {
  return {"heart", {{{{toy::Side::kRight, 0.1, {1, -2}}, {toy::Side::kLeft, 3, {}}}, {}}}};
}

std::string file_of(const toy::Forest& model) {
  return encode_container(to_container(model));
}
toy::Forest forest_of(const std::string& bytes) {
  return from_container<toy::Forest>(decode_container(bytes));
}

}  // namespace

TEST_CASE(
    "A kind of two trees in sections of their own comes back from its file, and is shown as JSON") {
  const std::string bytes = file_of(toy_forest());
  const Container container = decode_container(bytes);
  CHECK(container.kind == "toy-forest");
  REQUIRE(container.sections.size() == 3);
  CHECK(container.sections.count("trees/1") == 1);
  const toy::Forest back = forest_of(bytes);
  CHECK(back.name == "heart");
  CHECK(back.trees[0].at(0).threshold_mm == 0.1);
  CHECK(back.trees[0][0].features == std::vector<int16_t>{1, -2});
  CHECK(back.trees[1].empty());
  CHECK(file_of(back) == bytes);

  const Json json = model_to_json(toy_forest());
  CHECK(json.dump() ==
        R"({"format":"larch-toy-forest","version":2,"name":"heart",)"
        R"("trees/0":[{"side":"right","threshold_mm":"0x1.999999999999ap-4","features":[1,-2]},)"
        R"({"side":"left","threshold_mm":"0x1.8p+1","features":[]}],"trees/1":[]})");

  CHECK(description(toy_forest()) ==
        "trees of splits, kind toy-forest 2, format 1.0\n"
        "\n"
        "name: what it finds\n"
        "  heart\n"
        "\n"
        "trees: 0 (2), 1 []\n");
}

TEST_CASE("Names in the description of a model command no terminal") {
  toy::Forest forest = toy_forest();
  forest.name = "liver\x1b[2J\n";
  CHECK_THAT(description(forest),
             Catch::Contains("  liver\\x1b[2J\\x0a\n") && !Catch::Contains("\x1b"));
}

namespace toy {

/// A kind with what the description has rules for.
struct Zoo {
  std::vector<Split> splits;
  std::vector<std::pair<std::string, double>> pairs;
  std::string training;
};
template <class V>
void layout(V& v, Zoo& zoo) {
  auto& [splits, pairs, training] = zoo;
  v("splits", splits, "a list of structs");
  v("pairs", pairs, "a list of pairs");
  v("training", larch::models::JsonText{training}, "text that is JSON");
}
template <class V>
void sections(V& v, Zoo& zoo) {
  v.kind({"zoo", 1, "a zoo"});
  v.section("zoo", zoo, {"all at once"});
  v.section("splits", zoo.splits, {"the same"});
}

}  // namespace toy

TEST_CASE("The description shows values with their paths, tables, and the first of many") {
  toy::Zoo zoo;
  zoo.splits.resize(3, {toy::Side::kLeft, 0.25, {1, 2, 3}});
  zoo.splits[1].features.resize(40);
  zoo.pairs = {{"dice", 0.9}, {"auc", 1.0 / 3}};
  zoo.training =
      R"({"tree":{"depth":6,"long":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22]}})";
  CHECK(description(zoo) ==
        "a zoo, kind zoo 1, format 1.0\n"
        "\n"
        "zoo: all at once\n"
        "  training/tree: depth 6\n"
        "  splits (3):\n"
        "    side threshold_mm  features\n"
        "    left         0.25 [1, 2, 3]\n"
        "    left         0.25      (40)\n"
        "    left         0.25 [1, 2, 3]\n"
        "  pairs (2): dice 0.9, auc 0.333333\n"
        "  training/tree/long (22): 1, 2, 3, 4, ...\n"
        "\n"
        "splits (3): the same\n"
        "  side threshold_mm  features\n"
        "  left         0.25 [1, 2, 3]\n"
        "  left         0.25      (40)\n"
        "  left         0.25 [1, 2, 3]\n");
  zoo.splits.resize(1000);
  zoo.pairs.resize(300);
  const std::string text = description(zoo);
  CHECK_THAT(text, Catch::Contains("splits (1000)") && Catch::Contains("    ...\n") &&
                       Catch::Contains("pairs (300)") && Catch::Contains(", ...\n"));
  CHECK(text.size() < 3000);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() < 100);
}

TEST_CASE("The tables of README.md are those of the declarations") {
  const char* source = std::getenv("LARCH_SOURCE_DIR");
  const std::string path =
      (source == nullptr ? std::string(".") : source) + "/lib/larch/models/README.md";
  const std::string page = fixtures::read_bytes(path);
  const size_t start = page.find("## Kinds\n");
  REQUIRE(start != std::string::npos);
  const size_t tables = std::min(page.find("### `", start), page.size());
  hdn::Model network;
  network.structures.resize(1);
  network.structures[0].detectors.resize(1);
  boundary::Models surfaces;
  surfaces.structures.resize(1);
  const boundary::Model& surface = surfaces.structures[0];
  surfaces.structures[0].stages.resize(1);
  const std::string expected =
      FieldTables::of(pbt::Model{}, Checkpoint<pbt::PartialModel>{}, network,
                      Checkpoint<hdn::PartialTraining>{"", {network, {}, {}, {}}}, surfaces,
                      Checkpoint<boundary::PartialTraining>{"", {surface, {}, {}, {}}},
                      forest::Model{}, Checkpoint<forest::PartialForest>{});
  if (page.substr(tables) == expected) return;
  if (std::getenv("LARCH_WRITE_README") != nullptr) {
    fixtures::write_bytes(path, page.substr(0, tables) + expected);
  } else {
    FAIL(
        "lib/larch/models/README.md is out of date; run models_layout_test with "
        "LARCH_WRITE_README=1");
  }
}
