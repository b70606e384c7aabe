// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/config/config.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/config/flags.h"
#include "larch/config/text.h"
#include "larch/core/error.h"

namespace larch {
namespace {

enum class Routing { kSoft, kCopy };
constexpr auto enum_names(Routing*) {
  return std::to_array<EnumName<Routing>>({{Routing::kSoft, "soft"}, {Routing::kCopy, "copy"}});
}

struct TreeConfig {
  int depth = 16;
  double bag_fraction = 0.5;
  Routing routing = Routing::kSoft;
  template <class F>
  void fields(F&& f) {
    f(Field{"depth", depth, "maximum tree depth", 1, 32},
      Field{"bag_fraction", bag_fraction, "share of the samples each tree sees", 0.0, 1.0},
      Field{"routing", routing, "where samples near the threshold go"});
  }
};

struct AllTypes {
  bool on = true;
  int8_t small = 1;
  int64_t large = 2;
  uint64_t unsigned_large = 3;
  float single = 0.1f;
  std::string name = "n";
  std::vector<int> list{1, 2};
  std::array<double, 3> spacing_mm{1, 2, 3};
  std::vector<TreeConfig> trees;
  std::optional<double> sigma_mm;
  std::optional<TreeConfig> extra;
  std::vector<std::optional<int>> holes;
  TreeConfig tree;
  template <class F>
  void fields(F&& f) {
    f(Field{"on", on, "a switch"}, Field{"small", small, "8 bits"},
      Field{"large", large, "64 bits"},
      Field{"unsigned_large", unsigned_large, "64 bits without sign"},
      Field{"single", single, "4 bytes"}, Field{"name", name, "text"},
      Field{"list", list, "numbers", 0, 9},
      Field{"spacing_mm", spacing_mm, "three numbers", 0, 100}, Field{"trees", trees, "structs"},
      Field{"sigma_mm", sigma_mm, "maybe", 0.0, 10.0}, Field{"extra", extra, "maybe a struct"},
      Field{"holes", holes, "maybes", 0, 5}, Field{"tree", tree, "a struct"});
  }
};

struct WithExample {
  std::vector<TreeConfig> trees;
  template <class F>
  void fields(F&& f) {
    f(Field{"trees", trees, "structs"}.example(R"([{"depth": 3}])"));
  }
};

std::string message_of(const std::string& json) {
  AllTypes value;
  try {
    config::from_json(value, config::parse(json, "a.json"), "a.json");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

AllTypes read(const std::string& json) {
  AllTypes value;
  config::from_json(value, config::parse(json, "a.json"), "a.json");
  return value;
}

TEST_CASE("a configuration survives writing and reading, every type") {
  AllTypes value;
  value.on = false;
  value.small = -128;
  value.large = std::numeric_limits<int64_t>::min();
  value.unsigned_large = std::numeric_limits<uint64_t>::max();
  value.single = 1.0f / 3;
  value.name = "a\"b\\\n\xc3\xa9";
  value.list = {};
  value.spacing_mm = {0.1, 1e-300, 99.5};
  value.trees.resize(2);
  value.trees[1].routing = Routing::kCopy;
  value.sigma_mm = 2.5;
  value.extra.emplace().depth = 3;
  value.holes = {1, std::nullopt};
  const AllTypes& constant = value;  // writing takes const objects
  const std::string text = config::to_json(constant).dump();
  const AllTypes again = read(text);
  CHECK(config::to_json(again).dump() == text);
  CHECK(again.large == value.large);
  CHECK(again.unsigned_large == value.unsigned_large);
  CHECK(again.single == value.single);
  CHECK(again.spacing_mm == value.spacing_mm);
  CHECK(again.trees[1].routing == Routing::kCopy);
  CHECK(again.extra->depth == 3);
  CHECK_FALSE(again.holes[1].has_value());
}

TEST_CASE(
    "what a file does not mention keeps its value, and the order of keys is that of the struct") {
  AllTypes value;
  value.tree.depth = 7;
  config::from_json(value, config::parse(R"({"tree": {"bag_fraction": 1}, "list": [5]})", "x"),
                    "x");
  CHECK(value.tree.depth == 7);
  CHECK(value.tree.bag_fraction == 1.0);
  CHECK(value.list == std::vector<int>{5});
  CHECK(config::to_json(TreeConfig{}).dump() ==
        R"({"depth":16,"bag_fraction":0.5,"routing":"soft"})");
  CHECK(config::to_json(AllTypes{})["single"].dump() == "0.1");
}

TEST_CASE("comments are allowed, whole floats are integers, null empties an optional") {
  CHECK(read("{\n// why\n\"large\": 5e3, /* so */ \"small\": -3.0}").large == 5000);
  CHECK(read(R"({"small": -3.0})").small == -3);
  CHECK_FALSE(read(R"({"sigma_mm": null})").sigma_mm.has_value());
  CHECK(read(R"({"extra": {}})").extra->depth == 16);
}

TEST_CASE("errors name the file, the path, the fault and what is allowed") {
  CHECK(message_of(R"({"tree": {"depth": 99}})") ==
        "a.json/tree/depth: 99 is out of range [1, 32]");
  CHECK(message_of(R"({"tree": {"dpeth": 9}})") ==
        "a.json/tree/dpeth: unknown key; did you mean 'depth'? allowed: depth, bag_fraction, "
        "routing");
  CHECK(message_of(R"({"tree": {"zzzzzz": 9}})") ==
        "a.json/tree/zzzzzz: unknown key; allowed: depth, bag_fraction, routing");
  CHECK(
      message_of(R"({"trees": [{}, {"routing": "sofd"}]})") ==
      "a.json/trees/1/routing: \"sofd\" is not a choice; did you mean 'soft'? allowed: soft, copy");
  CHECK(message_of(R"({"list": [1, 2, 10]})") == "a.json/list/2: 10 is out of range [0, 9]");
  CHECK(message_of(R"({"spacing_mm": [1, 2]})") ==
        "a.json/spacing_mm: expected 3 elements, found 2");
  CHECK(message_of(R"({"spacing_mm": [1, 2, -1]})") ==
        "a.json/spacing_mm/2: -1 is out of range [0, 100]");
  CHECK(message_of(R"({"sigma_mm": 11})") == "a.json/sigma_mm: 11 is out of range [0, 10]");
  CHECK(message_of(R"({"holes": [null, 6]})") == "a.json/holes/1: 6 is out of range [0, 5]");
  CHECK(message_of("[]") == "a.json: expected an object {...}, found []");
}

TEST_CASE("wrong types are errors") {
  CHECK(message_of(R"({"on": 1})") == "a.json/on: expected true or false, found 1");
  CHECK(message_of(R"({"large": "5"})") == "a.json/large: expected an integer, found \"5\"");
  CHECK(message_of(R"({"large": 0.5})") == "a.json/large: expected an integer, found 0.5");
  CHECK(message_of(R"({"large": true})") == "a.json/large: expected an integer, found true");
  CHECK(message_of(R"({"single": null})") == "a.json/single: expected a number, found null");
  CHECK(message_of(R"({"name": 5})") == "a.json/name: expected a string, found 5");
  CHECK(message_of(R"({"list": 5})") == "a.json/list: expected a list [...], found 5");
  CHECK(message_of(R"({"tree": 5})") == "a.json/tree: expected an object {...}, found 5");
  CHECK(message_of(R"({"name": "a\u0000b"})") == "a.json/name: a string with a zero byte");
}

TEST_CASE("numbers outside of the type's range are errors, at the last value that fits") {
  CHECK(read(R"({"small": 127})").small == 127);
  CHECK(message_of(R"({"small": 128})") == "a.json/small: 128 is out of range [-128, 127]");
  CHECK(read(R"({"small": -128})").small == -128);
  CHECK(message_of(R"({"small": -129})") == "a.json/small: -129 is out of range [-128, 127]");
  CHECK(read(R"({"unsigned_large": 18446744073709551615})").unsigned_large == UINT64_MAX);
  CHECK_FALSE(message_of(R"({"unsigned_large": 18446744073709551616})").empty());
  CHECK_FALSE(message_of(R"({"unsigned_large": -1})").empty());
  CHECK(read(R"({"large": -9223372036854775808})").large == INT64_MIN);
  CHECK_FALSE(message_of(R"({"large": 9223372036854775808})").empty());
  CHECK_FALSE(message_of(R"({"single": 1e39})").empty());
  CHECK_FALSE(message_of(R"({"single": 1e999})").empty());
}

TEST_CASE("broken JSON, keys that stand twice and deep nesting are errors") {
  CHECK(message_of("{\"large\": 1,}").rfind("a.json: parse error at line 1", 0) == 0);
  CHECK_FALSE(message_of("").empty());
  CHECK_FALSE(message_of(R"({"large": NaN})").empty());
  CHECK(message_of(R"({"large": 1, "large": 1})") == "a.json/large: the key stands twice");
  CHECK(message_of(std::string(100000, '[')) == "a.json: nested deeper than 64 levels");
  CHECK_THROWS_AS(config::parse_file("/no/such/file.json"), UsageError);
  CHECK_THROWS_AS(config::parse_file("/"), UsageError);
  TreeConfig bad;
  bad.bag_fraction = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(config::to_json(bad), std::logic_error);
}

TEST_CASE("the schema holds types, bounds, defaults and choices") {
  const config::Json schema = config::schema(AllTypes{}, "All");
  CHECK(schema["$schema"] == "http://json-schema.org/draft-07/schema#");
  CHECK(schema["additionalProperties"] == false);
  const config::Json& depth = schema["properties"]["tree"]["properties"]["depth"];
  CHECK(
      depth.dump() ==
      R"({"description":"maximum tree depth","type":"integer","minimum":1,"maximum":32,"default":16})");
  CHECK(schema["properties"]["tree"]["properties"]["routing"]["enum"].dump() ==
        R"(["soft","copy"])");
  CHECK(schema["properties"]["list"]["items"].dump() ==
        R"({"type":"integer","minimum":0,"maximum":9})");
  CHECK(schema["properties"]["spacing_mm"]["minItems"] == 3);
  CHECK(schema["properties"]["sigma_mm"]["anyOf"][1]["type"] == "null");
  CHECK(schema["properties"]["sigma_mm"]["anyOf"][0]["maximum"] == 10);
  CHECK(schema["properties"]["trees"]["items"]["additionalProperties"] == false);
}

struct Rules {
  int neighbours = 26;
  int window = 17;
  std::vector<double> tile{};
  std::vector<int> rounds{4};
  template <class F>
  void fields(F&& f) {
    f(Field{"neighbours", neighbours, "6 or 26"}.one_of({6, 26}),
      Field{"window", window, "odd", 3, 65}.odd(),
      Field{"tile", tile, "three or none", 1, 256}.lengths({0, 3}),
      Field{"rounds", rounds, "some", 1, 9}.not_empty());
  }
};

TEST_CASE("allowed values and lengths are rules of files, flags, schema and help alike") {
  const auto message = [](const std::string& json) -> std::string {
    Rules value;
    try {
      config::from_json(value, config::parse(json, "a.json"), "a.json");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message(R"({"neighbours": 6, "window": 5, "tile": [1, 2, 3], "rounds": [1]})").empty());
  CHECK(message(R"({"tile": []})").empty());
  CHECK(message(R"({"neighbours": 7})") == "a.json/neighbours: 7 is not one of 6, 26");
  CHECK(message(R"({"neighbours": 100})") == "a.json/neighbours: 100 is not one of 6, 26");
  CHECK(message(R"({"window": 16})") == "a.json/window: 16 is not odd");
  CHECK(message(R"({"tile": [1, 2]})") == "a.json/tile: expected 0 or 3 elements, found 2");
  CHECK(message(R"({"rounds": []})") == "a.json/rounds: expected at least one element, found none");

  Rules value;
  const config::Json properties = config::schema(value)["properties"];
  CHECK(properties["neighbours"]["enum"].dump() == "[6,26]");
  CHECK(properties["window"]["not"].dump() == R"({"multipleOf":2})");
  CHECK(properties["tile"]["anyOf"].dump() ==
        R"([{"minItems":0,"maxItems":0},{"minItems":3,"maxItems":3}])");
  CHECK(properties["rounds"]["minItems"] == 1);

  std::vector<config::Leaf> flags = config::leaves(config::describe(value));
  CHECK(config::value_text(flags[0].node) == "6|26");
  CHECK(config::value_text(flags[1].node) == "INT in [3, 65], odd");
  CHECK(config::value_text(flags[2].node) == "list of 0 or 3, each NUMBER in [1, 256]");
  CHECK(config::value_text(flags[3].node) == "list of at least one, each INT in [1, 9]");
  flags[0].given = {"7"};
  CHECK_THROWS_WITH(config::apply_flags(flags), "--neighbours: 7 is not one of 6, 26");
}

TEST_CASE("keys without effect have to be as they are by default: all, or those that are named") {
  AllTypes value;
  value.list = {1, 2};
  CHECK_NOTHROW(config::require_default(value, "all.", "another kind"));
  value.list = {1};
  CHECK_NOTHROW(config::require_default(value, "all.", "another kind", {"on", "tree"}));
  CHECK_THROWS_WITH(config::require_default(value, "all.", "another kind"),
                    "--all.list is of another kind");
  CHECK_THROWS_AS(config::require_default(value, "", "another kind", {"on", "list"}), UsageError);
}

TEST_CASE("lists of structs name their keys; an example is a value of the schema") {
  AllTypes value;
  CHECK(config::value_text(config::describe(value).members[8]) ==
        "list of {depth, bag_fraction, routing}");
  WithExample trees;
  CHECK(config::schema(trees)["properties"]["trees"]["examples"].dump() == R"([[{"depth":3}]])");
}

TEST_CASE("flags follow the rules of files") {
  AllTypes value;
  std::vector<config::Leaf> flags = config::leaves(config::describe(value));
  const auto give = [&](const std::string& flag, const std::string& text) {
    for (config::Leaf& leaf : flags) {
      leaf.given.clear();
      if (leaf.flag == flag) leaf.given = {text};
    }
    config::apply_flags(flags);
  };
  give("--tree.depth", "5");
  give("--list", "7,8");
  give("--sigma_mm", ".5");
  give("--trees", R"([{"depth": 2}])");
  give("--name", "12");
  give("--extra", R"({"depth": 4})");
  CHECK(value.tree.depth == 5);
  CHECK(value.list == std::vector<int>{7, 8});
  CHECK(value.sigma_mm == 0.5);
  CHECK(value.trees[0].depth == 2);
  CHECK(value.name == "12");
  CHECK(value.extra->depth == 4);
  give("--list", "");
  CHECK(value.list.empty());
  give("--sigma_mm", "null");
  CHECK_FALSE(value.sigma_mm.has_value());
  CHECK_THROWS_WITH(give("--tree.depth", "99"), "--tree.depth: 99 is out of range [1, 32]");
  CHECK_THROWS_WITH(give("--list", "1,x"), "--list/1: expected an integer, found \"x\"");
  CHECK_THROWS_WITH(give("--tree.bag_fraction", "nan"),
                    "--tree.bag_fraction: expected a number, found \"nan\"");
}

struct Seeds {
  std::vector<std::array<double, 2>> points;
  double edge_scale_mm = 1;
  template <class F>
  void fields(F&& f) {
    f(Field{"points", points, "x,y"}, Field{"edge_scale_mm", edge_scale_mm, "a number"});
  }
};

TEST_CASE("a list of lists is one list per repetition of its flag, or JSON") {
  Seeds value;
  std::vector<config::Leaf> flags = config::leaves(config::describe(value));
  flags[0].given = {"1,2", "-3,4.5"};
  config::apply_flags(flags);
  CHECK(value.points == std::vector<std::array<double, 2>>{{1, 2}, {-3, 4.5}});
  flags[0].given = {"[[5, 6], [7, 8]]"};
  config::apply_flags(flags);
  CHECK(value.points == std::vector<std::array<double, 2>>{{5, 6}, {7, 8}});
  flags[0].given = {"1,2,3"};
  CHECK_THROWS_WITH(config::apply_flags(flags), Catch::Contains("--points"));
  CHECK_THAT(config::value_text(flags[0].node), Catch::Contains("may be repeated"));
}

TEST_CASE("numbers of bytes") {
  const int64_t kibi = 1024;
  CHECK(parse_bytes("--memory", "4G") == 4 * kibi * kibi * kibi);
  CHECK(parse_bytes("--memory", "500M") == 500 * kibi * kibi);
  CHECK(parse_bytes("--memory", "2GiB") == 2 * kibi * kibi * kibi);
  CHECK(parse_bytes("--memory", "2gb") == 2'000'000'000);
  CHECK(parse_bytes("--memory", "1.5k") == 1536);
  CHECK(parse_bytes("--memory", "12345") == 12345);
  for (const std::string text :
       {"", "G", "4X", "4GG", "-4G", "0", "0.1", "4 G", "nan", "1e400", "9999999T"}) {
    CHECK_THROWS_WITH(parse_bytes("--memory", text), Catch::Contains("--memory: '" + text + "'"));
  }
}

struct Limits {
  Bytes memory{};
  std::vector<Bytes> each{};
  template <class F>
  void fields(F&& f) {
    f(Field{"memory", memory, "most memory"}, Field{"each", each, "of each"});
  }
};

TEST_CASE("numbers of bytes are a type of parameters: files, flags, schema and help") {
  const auto read = [](const std::string& json) {
    Limits value;
    config::from_json(value, config::parse(json, "a.json"), "a.json");
    return value;
  };
  CHECK(config::to_json(Limits{}).dump() == R"({"memory":"","each":[]})");
  CHECK(read(R"({"memory": "1.5k"})").memory.count == 1536);
  CHECK(read(R"({"memory": 1536})").memory.count == 1536);
  CHECK(read(R"({"memory": ""})").memory.count == 0);
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{1000}, int64_t{1536},
                              int64_t{1} << 20, int64_t{3} << 40, (int64_t{1} << 53) - 1}) {
    Limits value{{bytes}, {{bytes}, {bytes}}};
    const Limits again = read(config::to_json(value).dump());
    CHECK(again.memory.count == bytes);
    CHECK(again.each.size() == 2);
  }
  CHECK(config::to_json(Limits{{int64_t{4} << 30}, {}})["memory"] == "4GiB");
  CHECK_THROWS_WITH(read(R"({"memory": "4X"})"),
                    "a.json/memory: '4X' is not a number of bytes such as 4G, 500M or 2GiB");
  for (const char* bad : {"-1", "0.5", "true", "null", "1e19", "[]", R"("-4G")", R"(" 4G")"}) {
    CHECK_THROWS_AS(read(std::string(R"({"memory": )") + bad + "}"), UsageError);
  }
  const config::Json schema = config::schema(Limits{}, "Limits");
  CHECK(schema["properties"]["memory"]["type"].dump() == R"(["string","integer"])");
  Limits value;
  std::vector<config::Leaf> leaves = config::leaves(config::describe(value));
  leaves[0].given = {"2gb"};
  leaves[1].given = {"1K,2K"};
  config::apply_flags(leaves);
  CHECK(value.memory.count == 2'000'000'000);
  REQUIRE(value.each.size() == 2);
  CHECK(value.each[1].count == 2048);
  leaves[0].given = {"much"};
  CHECK_THROWS_WITH(config::apply_flags(leaves), Catch::Contains("--memory: 'much' is not"));
  CHECK(config::value_text(leaves[0].node) == "BYTES");
}

TEST_CASE("suggestions are at most two edits away") {
  const std::vector<std::string> words{"depth", "trees", "loss"};
  CHECK(config::nearest("dpeth", words) == "depth");
  CHECK(config::nearest("treees", words) == "trees");
  CHECK(config::nearest("lo", words) == "loss");
  CHECK(config::nearest("xxpth", words) == "depth");
  CHECK(config::nearest("xxxth", words).empty());
  CHECK(config::nearest("", words).empty());
  CHECK(config::nearest("ab", {"cd"}).empty());
}

}  // namespace
}  // namespace larch
