// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Models of boosting trees and checkpoints: the way to a file and back, and what is
// refused.
#include <cmath>
#include <filesystem>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/unit/models/model_fixtures.h"

namespace {

using namespace larch;
using namespace larch::models;
using fixtures::bytes_of;
using fixtures::full_model;
using fixtures::message_of;
using fixtures::model_of;
using fixtures::read_bytes;
using fixtures::write_bytes;

}  // namespace

TEST_CASE("A model comes back from its file with the same bytes") {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const pbt::Model model = full_model(seed);
    const std::string bytes = bytes_of(model);
    CHECK(bytes.size() % 8 == 0);
    CHECK(bytes.find("/tmp") == std::string::npos);
    const pbt::Model read = model_of(bytes);
    CHECK(bytes_of(read) == bytes);
    CHECK(read.info.class_name == model.info.class_name);
    CHECK(read.info.seed == UINT64_MAX);
    CHECK(read.info.validation == model.info.validation);
    CHECK(read.space.spacing_mm == model.space.spacing_mm);
    CHECK(read.space.intensity.window_low == -1024.125);
    CHECK(read.padding == image::Padding::kZero);
    CHECK(read.prior_value == model.prior_value);
    CHECK(read.e1 == model.e1);
    CHECK(read.history.at(0).errors == model.history.at(0).errors);
    CHECK(read.weaks.at(1).mask == model.weaks.at(1).mask);
    CHECK(read.nodes.at(1).mass_negative == model.nodes.at(1).mass_negative);
    CHECK(read.self_tests.size() == 64);
    CHECK(tree::node_probabilities(read) == tree::node_probabilities(model));

    CHECK(read.info.training_config_json == model.info.training_config_json);
    CHECK(read.info.volume_digests == model.info.volume_digests);

    const std::string text = export_json(model);
    CHECK(export_json(read) == text);
    CHECK(text.find("0x") != std::string::npos);
  }
}

TEST_CASE("A model says what it is for; older models are read, and older programs read it") {
  pbt::Model model = full_model();
  model.info.about = {{"kidneys", "CC-BY-4.0", "research"}, "ab12"};
  CHECK(describe_model(model_of(bytes_of(model))).find("kidneys, licence CC-BY-4.0") !=
        std::string::npos);
  CHECK_FALSE(encode_model(model).at("about").required);
  const pbt::Model older =
      model_of(fixtures::edited(model, [](Container& file) { file.sections.erase("about"); }));
  CHECK(describe_model(older).find("intended_use") == std::string::npos);
}

TEST_CASE("An ensemble comes back from its file, and its summary counts its trees") {
  const pbt::Model ensemble = fixtures::random_ensemble(3, 4);
  const std::string bytes = bytes_of(ensemble);
  const pbt::Model read = model_of(bytes);
  CHECK(read.roots == ensemble.roots);
  CHECK(bytes_of(read) == bytes);
  const std::string text = describe_model(ensemble);
  CHECK(text.find("roots (4)") != std::string::npos);
}

TEST_CASE("Numbers beyond what evaluation can bear are refused") {
  pbt::Model model = full_model();
  model.self_tests.clear();
  CHECK_NOTHROW(bytes_of(model));
  const auto refused = [&](auto&& edit) {
    pbt::Model bad = model;
    edit(bad);
    CHECK_THROWS_AS(bytes_of(bad), InputError);
  };
  refused([](pbt::Model& m) { m.e1 = std::nan(""); });
  refused([](pbt::Model& m) { m.e2 = -0.1; });
  refused([](pbt::Model& m) { m.smoothing = INFINITY; });
  refused([](pbt::Model& m) { m.space.spacing_mm.y = std::nan(""); });
  refused([](pbt::Model& m) { m.space.spacing_mm.z = 0; });
  refused([](pbt::Model& m) { m.space.intensity.headroom = 1e9; });
  refused([](pbt::Model& m) { m.weaks[0].alpha_q20 = -1; });
  refused([](pbt::Model& m) { m.weaks[0].alpha_q20 = (8 << 20) + 1; });
  refused([](pbt::Model& m) { m.weaks[0].bins.shift = 8; });
  refused([](pbt::Model& m) { m.weaks[0].codes.multiplier += 1; });
  refused([](pbt::Model& m) { m.weaks[0].feature = 1u << 31; });
  refused([](pbt::Model& m) { m.features[0].cuboids[0].weight = INT32_MIN; });
  refused([](pbt::Model& m) { m.features[0].cuboids[0].hi.x = 129; });
  refused([](pbt::Model& m) {
    m.features[0].cuboids[0] = {{-100, -100, -100}, {100, 100, 100}, 1};
  });
  refused([](pbt::Model& m) { m.features[0].channel = 2; });
  refused([](pbt::Model& m) { m.logistic[7] = m.logistic[9]; });
  refused([](pbt::Model& m) { m.logistic.pop_back(); });
  refused([](pbt::Model& m) { m.info.validation[0].second = std::nan(""); });
  refused([](pbt::Model& m) { m.history[0].errors[0] = INFINITY; });
  refused([](pbt::Model& m) { m.history[0].errors[0] = 1.5; });
  refused([](pbt::Model& m) { m.history[0].errors.resize(257, 0.25); });
  refused([](pbt::Model& m) { m.history[0].node = -1; });
  refused([](pbt::Model& m) { m.history[1].node = 7; });
  refused([](pbt::Model& m) { m.info.class_value = 0; });  // a label map that never has the class
  refused([](pbt::Model& m) { m.info.class_value = -3; });
  refused([](pbt::Model& m) { m.info.class_value = 65536; });
  refused([](pbt::Model& m) { m.info.class_name = "\xff"; });
  refused([](pbt::Model& m) { m.info.validation[0].first = "\xc3"; });
  refused([](pbt::Model& m) { m.info.training_config_json = "{"; });
  refused([](pbt::Model& m) {  // 257 times the largest alpha does not fit 32 bits
    m.nodes[0].n_weak = 257;
    m.weaks.resize(600, m.weaks[0]);
  });
  refused([](pbt::Model& m) {
    m.weaks.resize(600, m.weaks[0]);
    for (auto& weak : m.weaks) weak.alpha_q20 = 8 << 20;
    m.nodes[0].n_weak = 256;
  });
}

TEST_CASE("Files that are no models") {
  CHECK_THROWS_AS(read_model<pbt::Model>("/nonexistent/x.pbt"), InputError);
  CHECK_THROWS_AS(read_model<pbt::Model>("/"), InputError);
  CHECK_THROWS_AS(read_model<pbt::Model>("/dev/zero"), InputError);
  CHECK(message_of("{\"tree\": 1}").find("not a model of Larch") != std::string::npos);
  CHECK(message_of("PBTREES\n").find("train the model anew") != std::string::npos);
  CHECK_THROWS_AS(model_of(""), InputError);
  CHECK_THROWS_AS(write_model("/nonexistent/x.pbt", full_model()), OutputError);
  std::string damaged = bytes_of(full_model());
  damaged[100] = static_cast<char>(damaged[100] ^ 4);
  CHECK(message_of(damaged).find("cannot read the model '") == 0);
  CHECK(message_of(damaged).find("copy it again") != std::string::npos);
}

TEST_CASE("A large file that is no model is not read as a whole") {
  const test::Folder folder;
  const std::string path = folder / "large";
  write_bytes(path, "not a model");
  std::filesystem::resize_file(path, uint64_t{1} << 40);  // holes, more than any memory
  CHECK_THROWS_WITH(read_model<pbt::Model>(path), Catch::Contains("not a model of Larch"));
  write_bytes(path, bytes_of(full_model()));
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  CHECK_THROWS_WITH(read_model<pbt::Model>(path), Catch::Contains("bytes and has 1099511627776"));
}

TEST_CASE("A checkpoint comes back, for the same settings only") {
  pbt::PartialModel partial;
  partial.model = full_model();
  pbt::Model& model = partial.model;
  model.self_tests.clear();
  REQUIRE(model.nodes.size() == 7);  // two full levels below the root
  // The root and its left child have been grown.
  partial.finished = 2;
  for (size_t n : {size_t{0}, size_t{1}}) model.nodes[n].reason = pbt::NodeReason::kGrown;
  model.nodes.resize(5);
  for (size_t n = 2; n < 5; ++n) {
    pbt::Node& node = model.nodes[n];
    node.left = node.right = -1;
    node.first_weak = node.n_weak = 0;
    node.reason = pbt::NodeReason::kGrown;
  }
  const test::Folder folder;
  const std::string path = folder / "checkpoint";
  write_checkpoint(path, partial, "0123abcd");
  const std::string bytes = read_bytes(path);
  const pbt::PartialModel read = read_checkpoint<pbt::PartialModel>(path, "0123abcd");
  CHECK(read.finished == 2);
  CHECK(read.model.nodes.size() == 5);
  CHECK_THROWS_WITH(read_checkpoint<pbt::PartialModel>(path, "0123abce"),
                    Catch::Contains("other settings"));
  CHECK_THROWS_WITH(read_model<pbt::Model>(path), Catch::Contains("checkpoint"));
  write_checkpoint(path, read, "0123abcd");
  CHECK(read_bytes(path) == bytes);

  partial.finished = 3;  // but node 2 has no children and no reason to be a leaf
  write_checkpoint(path, partial, "0123abcd");
  CHECK_THROWS_AS(read_checkpoint<pbt::PartialModel>(path, "0123abcd"), InputError);
  partial.finished = UINT64_MAX;
  write_checkpoint(path, partial, "0123abcd");
  CHECK_THROWS_AS(read_checkpoint<pbt::PartialModel>(path, "0123abcd"), InputError);
  write_model(path, full_model());
  CHECK_THROWS_WITH(read_checkpoint<pbt::PartialModel>(path, "0123abcd"),
                    Catch::Contains("finished model"));
}

TEST_CASE(
    "A checkpoint of an ensemble: the last tree is checked, the finished count is of all nodes") {
  pbt::PartialModel partial;
  partial.model = fixtures::random_ensemble(3, 3);
  pbt::Model& model = partial.model;
  model.self_tests.clear();
  const size_t root = model.roots.back();
  model.nodes.resize(root + 1);  // the last tree is a root that has not been trained
  model.nodes[root].left = model.nodes[root].right = -1;
  model.nodes[root].first_weak = model.nodes[root].n_weak = 0;
  partial.finished = root;
  const test::Folder folder;
  const std::string path = folder / "checkpoint";
  const auto refused = [&](const pbt::PartialModel& written) {
    write_checkpoint(path, written, "0123abcd");
    CHECK_THROWS_AS(read_checkpoint<pbt::PartialModel>(path, "0123abcd"), InputError);
  };
  write_checkpoint(path, partial, "0123abcd");
  CHECK(read_checkpoint<pbt::PartialModel>(path, "0123abcd").model.roots == model.roots);
  partial.finished = root - 1;  // a tree before the last one is not finished
  refused(partial);
  partial.finished = root + 2;  // more nodes than there are
  refused(partial);
  partial.finished = root + 1;  // the root has been trained, but has no children and no reason
  model.nodes[root].reason = pbt::NodeReason::kGrown;
  refused(partial);
}

TEST_CASE("The description is readable and narrow") {
  const pbt::Model model = full_model();
  const std::string text = describe_model(model);
  std::istringstream lines(text);
  size_t nodes = 0;
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() < 100);
    nodes += line.find("maximum depth") != std::string::npos;
  }
  CHECK(nodes == 4);
  for (const char* expected :
       {"probabilistic boosting trees, kind pbt 1", "class: name left kidney", "value 7",
        "tool_version 0.1.0", "training/tree: depth 6", "log_loss 0.1", "intensity level 1",
        "edge-x", "padding zero", "volume_digests", "00ff"}) {
    CHECK(text.find(expected) != std::string::npos);
  }
}
