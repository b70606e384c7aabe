// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Models whose digests are right and whose content is not: what somebody makes on purpose, or
// another program by mistake.
#include <catch2/catch.hpp>

#include "larch/models/binary_layout.h"
#include "larch/models/tree_layout.h"
#include "tests/unit/models/model_fixtures.h"

namespace {

using namespace larch;
using namespace larch::models;
using fixtures::bytes_of;
using fixtures::edited;
using fixtures::full_model;
using fixtures::message_of;
using fixtures::model_of;
using fixtures::put;

std::string& bytes_in(Container& container, const std::string& section) {
  container.at(section);
  return container.sections[section].bytes;
}

}  // namespace

TEST_CASE("Damage under right digests never crashes the reader") {
  const pbt::Model model = full_model();
  const Container original = encode_model(model);
  size_t refused = 0, read = 0;
  for (const auto& [name, section] : original.sections) {
    const size_t size = section.bytes.size();
    for (size_t i = 0; i < size; i += std::max<size_t>(1, size / 250)) {
      for (const int change : {0x01, 0x80, 0xff}) {
        Container damaged = original;
        char& byte = bytes_in(damaged, name)[i];
        byte = static_cast<char>(byte ^ change);
        try {
          const pbt::Model result = decode_model<pbt::Model>(damaged);
          tree::make_self_tests(result, result.features.size(), 1);
          export_json(result);
          ++read;
        } catch (const InputError&) {
          ++refused;
        }
      }
    }
  }
  CHECK(refused > 500);
  CHECK(read > 0);  // a mass or a digest may be anything
}

TEST_CASE("Sections that are cut, longer, missing, renamed or of another section are refused") {
  const Container original = encode_model(full_model());
  REQUIRE(original.sections.size() == 11);
  for (const auto& [name, section] : original.sections) {
    INFO(name);
    for (size_t cut = 0; cut < section.bytes.size(); cut += 1 + section.bytes.size() / 200) {
      Container shorter = original;
      bytes_in(shorter, name).resize(cut);
      CHECK_THROWS_AS(decode_model<pbt::Model>(shorter), InputError);
    }
    Container longer = original;
    bytes_in(longer, name) += '\0';
    CHECK_THROWS_WITH(decode_model<pbt::Model>(longer), Catch::Contains("left over"));
    Container missing = original;
    missing.sections.erase(name);
    const bool may_be_missing = name == "validation" || name == "history";
    CHECK(section.required == !may_be_missing);
    if (may_be_missing) {
      CHECK_NOTHROW(decode_model<pbt::Model>(missing));
    } else {
      CHECK_THROWS_WITH(decode_model<pbt::Model>(missing),
                        Catch::Contains("'" + name + "' is missing"));
    }
    Container renamed = missing;
    renamed.sections["x" + name] = section;
    if (!may_be_missing) CHECK_THROWS_AS(decode_model<pbt::Model>(renamed), InputError);
    for (const auto& [other, its] : original.sections) {
      if (other == name) continue;
      Container exchanged = original;
      bytes_in(exchanged, name) = its.bytes;
      CHECK_THROWS_AS(decode_model<pbt::Model>(exchanged), InputError);
    }
  }
}

TEST_CASE("Impossible counts are refused before memory is asked for") {
  const pbt::Model model = full_model();
  for (const char* name : {"channels", "features", "weak_classifiers", "nodes", "logistic_q30",
                           "validation", "history", "self_tests", "roots"}) {
    for (const uint64_t count :
         {uint64_t{1} << 63, UINT64_MAX, uint64_t{1} << 40, uint64_t{1} << 20}) {
      INFO(name << " " << count);
      const std::string bytes =
          edited(model, [&](Container& c) { put(bytes_in(c, name), 0, count, 8); });
      CHECK_THAT(message_of(bytes), Catch::Contains("it claims " + std::to_string(count)));
    }
    const std::string none = edited(model, [&](Container& c) { put(bytes_in(c, name), 0, 0, 8); });
    CHECK_THAT(message_of(none), Catch::Contains("left over"));
  }
}

TEST_CASE("Sections that are not known, other kinds and other versions") {
  const pbt::Model model = full_model();
  const std::string optional = edited(model, [](Container& c) {
    c.sections["note/1"] = {"hello", false};
  });
  CHECK(bytes_of(model_of(optional)) == bytes_of(model));
  const std::string required = edited(model, [](Container& c) {
    c.sections["note/1"] = {"hello", true};
  });
  CHECK_THAT(message_of(required), Catch::Contains("'note/1'") && Catch::Contains("newer program"));
  const std::string forest = edited(model, [](Container& c) { c.kind = "decision-forest"; });
  CHECK_THAT(message_of(forest), Catch::Contains("of the kind 'decision-forest', not 'pbt'"));
  CHECK_THAT(message_of(edited(model, [](Container& c) { c.kind = "pbt-checkpoint"; })),
             Catch::Contains("--resume"));
  CHECK_THAT(message_of(edited(model, [](Container& c) { c.kind_version = 2; })),
             Catch::Contains("use a newer program"));
  CHECK_THAT(message_of(edited(model, [](Container& c) { c.kind_version = 0; })),
             Catch::Contains("train the model anew"));
  CHECK_NOTHROW(model_of(edited(model, [](Container& c) { c.minor = 9; })));
}

TEST_CASE("Choices that do not exist, texts that are no UTF-8 and settings that are no JSON") {
  const pbt::Model model = full_model();
  const auto with = [&](const std::string& section, const std::string& from,
                        const std::string& to) {
    return edited(model, [&](Container& c) {
      std::string& bytes = bytes_in(c, section);
      const size_t at = bytes.find(from);
      REQUIRE(at != std::string::npos);
      bytes.replace(at, from.size(), to);
    });
  };
  CHECK_NOTHROW(model_of(with("meta", "left", "LEFT")));
  CHECK_THAT(message_of(with("meta", "left", "\xff\xfe\xfd\xfc")), Catch::Contains("UTF-8"));
  CHECK_THAT(message_of(with("validation", "auc",
                             "a\xff"
                             "c")),
             Catch::Contains("UTF-8"));
  CHECK_THAT(message_of(with("meta", R"({"tree")", R"(["tree")")), Catch::Contains("JSON"));
  const std::string settings = model.info.training_config_json;
  CHECK_THROWS_AS(model_of(with("meta", settings, std::string(settings.size(), '['))), InputError);
  CHECK_THAT(
      message_of(edited(model, [](Container& c) { put(bytes_in(c, "channels"), 8, 14, 2); })),
      Catch::Contains("unknown value of 'kind'"));
  CHECK_THAT(
      message_of(edited(model, [](Container& c) { put(bytes_in(c, "features"), 8, 12, 2); })),
      Catch::Contains("unknown value of 'type'"));
  CHECK_THAT(
      message_of(edited(model, [](Container& c) { put(bytes_in(c, "rule"), 4, 0x7ff0, 4); })),
      Catch::Contains("damaged"));
  CHECK_THAT(message_of(edited(
                 model, [](Container& c) { put(bytes_in(c, "rule"), 0, 0x7ffULL << 52, 8); })),
             Catch::Contains("not finite"));
}

TEST_CASE("A feature of more boxes than there can be is refused") {
  const pbt::Model model = full_model();
  // Count of features; type, channel, place in the pool; then the number of boxes.
  CHECK_THAT(
      message_of(edited(model, [](Container& c) { put(bytes_in(c, "features"), 16, 5, 8); })),
      Catch::Contains("more than 4 entries"));
}

TEST_CASE("Nodes that do not make a tree are refused") {
  const pbt::Model model = full_model();
  REQUIRE(model.nodes.size() >= 5);
  REQUIRE_FALSE(model.nodes[1].is_leaf());
  const auto with_node = [&](size_t index, auto&& edit) {
    std::vector<tree::Node> nodes = model.nodes;
    edit(nodes[index]);
    return edited(model, [&](Container& c) {
      Encoder encoder;
      visit(encoder, nodes);
      bytes_in(c, "nodes") = std::move(encoder).take();
    });
  };
  const auto left = [&](size_t index, int32_t child) {
    return with_node(index, [&](tree::Node& node) { node.left = child; });
  };
  const auto right = [&](size_t index, int32_t child) {
    return with_node(index, [&](tree::Node& node) { node.right = child; });
  };
  CHECK_NOTHROW(model_of(left(0, 1)));
  CHECK_THROWS_AS(model_of(left(1, 0)), InputError);  // a cycle
  CHECK_THROWS_AS(model_of(left(1, 1)), InputError);  // its own child
  CHECK_THROWS_AS(model_of(left(0, 2)), InputError);  // one child twice
  CHECK_THROWS_AS(model_of(right(0, 1)), InputError);
  CHECK_THROWS_AS(model_of(right(0, 3)), InputError);  // a grandchild
  CHECK_THROWS_AS(model_of(right(0, -1)), InputError);
  CHECK_THROWS_AS(model_of(right(0, 1 << 30)), InputError);
  CHECK_THROWS_AS(model_of(with_node(0, [](tree::Node& n) { n.first_weak = UINT32_MAX; })),
                  InputError);
  CHECK_THROWS_AS(model_of(with_node(0, [](tree::Node& n) { n.depth = 33; })), InputError);
}

TEST_CASE("Trees that begin beyond the last node are refused") {
  const pbt::Model model = full_model();
  for (const uint32_t root : {7u, 1u, UINT32_MAX}) {
    const std::string bytes =
        edited(model, [&](Container& c) { put(bytes_in(c, "roots"), 8, root, 4); });
    CHECK_THROWS_AS(model_of(bytes), InputError);
  }
}

TEST_CASE("The self-test vectors are evaluated when a model is read") {
  pbt::Model model = full_model();
  model.self_tests.at(9).probability_q32 ^= 1u << 20;
  CHECK(message_of(bytes_of(model)).find("self-test vector 9") != std::string::npos);
  model = full_model();
  model.self_tests.at(3).responses.pop_back();
  CHECK_THROWS_AS(model_of(bytes_of(model)), InputError);
}
