// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <catch2/catch.hpp>
#include <unistd.h>

#include "larch/core/error.h"
#include "larch/models/bytes.h"
#include "larch/models/container.h"
#include "larch/models/pbt_file.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace {

using namespace larch;
using namespace larch::models;

/// A file of this process that is removed at the end of the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("larch-models-" + std::to_string(::getpid()) + "-" + name)) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }
  std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void set(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

 private:
  std::filesystem::path path_;
};

pbt::Model full_model(uint64_t seed = 3) {
  fixtures::RandomTree spec;
  spec.depth = 2;
  spec.weaks = 3;
  spec.features = 24;
  spec.stop = 0;
  pbt::Model model = fixtures::random_model(seed, spec);
  model.info.tool_version = "0.1.0";
  model.info.class_name = "left kidney, \"Niere\" \xc3\xa9";
  model.info.class_value = 7;
  model.info.training_config_json = R"({"tree":{"depth":6,"worst_error":0.45},"b":[1,2.5]})";
  model.info.volume_digests = {"00ff", "aa11"};
  model.info.seed = UINT64_MAX;
  model.info.validation = {{"log_loss", 0.1}, {"auc", 1.0 / 3}};
  model.history = {{0, 100, 40, 60, {0.25, 1.0 / 7}}, {1, 5, 2, 3, {}}};
  model.space.spacing_mm = {0.1, 1.0 / 3, 2};
  model.space.intensity.window_low = -1024.125;
  model.padding = image::Padding::kZero;
  model.prior = pbt::PriorKind::kValue;
  model.prior_value = 0.016853932584269662;
  model.self_tests = tree::make_self_tests(model, model.features.size(), seed);
  return model;
}

std::string bytes_of(const pbt::Model& model) {
  const TemporaryFile file("bytes");
  write_model(file.path(), model);
  return file.bytes();
}

pbt::Model model_of(const std::string& bytes) {
  const TemporaryFile file("model");
  file.set(bytes);
  return read_model(file.path());
}

std::string message_of(const std::string& bytes) {
  try {
    model_of(bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// The bytes of a model after `edit` has changed its chunks; checksums and digest are right again.
template <class F>
std::string edited(const pbt::Model& model, F&& edit) {
  Container container = decode_container(bytes_of(model));
  edit(container);
  return encode_container(container);
}

Chunk& chunk(Container& container, const char* id) {
  return const_cast<Chunk&>(container.at(id));
}

void put(std::string& payload, size_t at, uint64_t value, int count) {
  for (int i = 0; i < count; ++i)
    payload.at(at + static_cast<size_t>(i)) = static_cast<char>(value >> 8 * i);
}

// Offsets of the fields of a node record of 48 bytes behind the count.
constexpr size_t kNode = 8, kNodeBytes = 48, kLeft = 4, kRight = 8, kFirstWeak = 12;

}  // namespace

TEST_CASE("A model comes back from its file and from JSON with the same bytes") {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const pbt::Model model = full_model(seed);
    const std::string bytes = bytes_of(model);
    CHECK(bytes.substr(0, 8) == "PBTREES\n");
    CHECK(bytes.size() % 8 == 0);
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

    const std::string text = export_json(model);
    const pbt::Model imported = import_json(text);
    CHECK(bytes_of(imported) == bytes);
    CHECK(export_json(imported) == text);
    CHECK(text.find("0x") != std::string::npos);
  }
}

TEST_CASE("An ensemble comes back from its file and from JSON, and its summary names its trees") {
  const pbt::Model ensemble = fixtures::random_ensemble(3, 4);
  const std::string bytes = bytes_of(ensemble);
  const pbt::Model read = model_of(bytes);
  CHECK(read.roots == ensemble.roots);
  CHECK(bytes_of(read) == bytes);
  CHECK(bytes_of(import_json(export_json(ensemble))) == bytes);
  const std::string text = describe_model(ensemble);
  CHECK(text.find("4 probabilistic boosting trees") != std::string::npos);
  CHECK(text.find("tree 4") != std::string::npos);
  CHECK(text.find("tree 5") == std::string::npos);
}

TEST_CASE("The model file is little-endian and laid out as documented") {
  const std::string bytes = bytes_of(full_model());
  const auto u64 = [&](size_t at) {
    uint64_t value = 0;
    for (size_t i = 0; i < 8; ++i)
      value |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << 8 * i;
    return value;
  };
  CHECK((u64(8) & 0xffff) == 1);        // major
  CHECK((u64(8) >> 16 & 0xffff) == 0);  // minor
  CHECK((u64(8) >> 32) == 5);           // tree, exact
  CHECK(u64(16) == bytes.size());
  CHECK(u64(24) == 12);
  CHECK(bytes.substr(32, 4) == "META");
  CHECK(bytes.substr(bytes.size() - 56, 4) == "END.");  // 16 + 32 + 4 + 4
  CHECK(bytes.find("/tmp") == std::string::npos);
}

TEST_CASE("A truncated model file is refused") {
  const std::string bytes = bytes_of(full_model());
  const Container container = decode_container(bytes);
  std::vector<size_t> cuts{0, 1, 7, 8, 31, 32, bytes.size() - 1};
  size_t at = 32;
  for (const Chunk& c : container.chunks) {
    at += (16 + c.payload.size() + 4 + 7) / 8 * 8;
    cuts.push_back(at);
  }
  for (uint64_t i = 0; i < 300; ++i) {
    cuts.push_back(hash_below(5, 1, i, static_cast<uint32_t>(bytes.size())));
  }
  for (const size_t cut : cuts) {
    const std::string piece = bytes.substr(0, cut);
    CHECK_THROWS_AS(model_of(piece), InputError);
    // The same with the length put right, so that the chunks themselves are looked at.
    if (cut < 32) continue;
    std::string patched = piece;
    put(patched, 16, cut, 8);
    CHECK_THROWS_AS(decode_container(patched), InputError);
  }
  CHECK_THROWS_AS(model_of(bytes + std::string(8, '\0')), InputError);
}

TEST_CASE("A model file with any byte changed is refused") {
  const std::string bytes = bytes_of(full_model());
  size_t accepted = 0;
  for (size_t i = 0; i < bytes.size(); i += i < 2048 || i + 512 > bytes.size() ? 1 : 7) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
    try {
      decode_container(damaged);
      // The minor version is the one thing a reader may not look at; the digest still covers it.
      ++accepted;
    } catch (const InputError&) {
    }
  }
  CHECK(accepted == 0);
  std::string damaged = bytes;
  damaged[100] = static_cast<char>(damaged[100] ^ 4);
  CHECK(message_of(damaged).find("cannot read the model '") == 0);
  CHECK(message_of(damaged).find("copy it again") != std::string::npos);
}

TEST_CASE("Damage under right checksums never crashes the reader") {
  const pbt::Model model = full_model();
  const std::string bytes = bytes_of(model);
  const Container original = decode_container(bytes);
  size_t refused = 0, read = 0;
  for (size_t c = 0; c < original.chunks.size(); ++c) {
    const size_t size = original.chunks[c].payload.size();
    const size_t step = std::max<size_t>(1, size / 250);
    for (size_t i = 0; i < size; i += step) {
      for (const int change : {0x01, 0x80, 0xff}) {
        Container damaged = original;
        char& byte = damaged.chunks[c].payload[i];
        byte = static_cast<char>(byte ^ change);
        try {
          const pbt::Model result = model_of(encode_container(damaged));
          pbt::check_model(result);
          tree::make_self_tests(result, result.features.size(), 1);
          ++read;
        } catch (const InputError&) {
          ++refused;
        }
      }
    }
    Container shorter = original;
    shorter.chunks[c].payload.resize(size / 2);
    CHECK_THROWS_AS(model_of(encode_container(shorter)), InputError);
    Container missing = original;
    missing.chunks.erase(missing.chunks.begin() + static_cast<std::ptrdiff_t>(c));
    const std::string id = original.chunks[c].id;
    if (id == "VALD" || id == "HIST") {
      CHECK_NOTHROW(model_of(encode_container(missing)));
    } else {
      CHECK_THROWS_AS(model_of(encode_container(missing)), InputError);
    }
    Container twice = original;
    twice.chunks.push_back(original.chunks[c]);
    CHECK_THROWS_AS(model_of(encode_container(twice)), InputError);
  }
  CHECK(refused > 500);
  CHECK(read > 0);  // a class value, a mass or a digest may be anything
}

TEST_CASE("Impossible counts are refused before memory is asked for") {
  const pbt::Model model = full_model();
  for (const char* id : {"CHAN", "FEAT", "WEAK", "NODE", "LUTS", "VALD", "HIST", "TEST", "TREE"}) {
    for (const uint64_t count : {uint64_t{1} << 63, UINT64_MAX, uint64_t{1} << 40, uint64_t{0}}) {
      const std::string bytes =
          edited(model, [&](Container& c) { put(chunk(c, id).payload, 0, count, 8); });
      CHECK_THROWS_AS(model_of(bytes), InputError);
    }
  }
  std::string bytes = bytes_of(model);
  put(bytes, 24, uint64_t{1} << 63, 8);  // chunks
  CHECK_THROWS_AS(model_of(bytes), InputError);
  bytes = bytes_of(model);
  put(bytes, 32 + 8, UINT64_MAX - 15, 8);  // length of the first chunk
  CHECK_THROWS_AS(model_of(bytes), InputError);
}

TEST_CASE("Nodes that do not make a tree are refused") {
  const pbt::Model model = full_model();
  REQUIRE(model.nodes.size() >= 5);
  REQUIRE_FALSE(model.nodes[1].is_leaf());
  const auto with_node = [&](size_t node, size_t field, int64_t value) {
    return edited(model, [&](Container& c) {
      put(chunk(c, "NODE").payload, kNode + node * kNodeBytes + field, static_cast<uint64_t>(value),
          4);
    });
  };
  CHECK_NOTHROW(model_of(with_node(0, kLeft, 1)));
  CHECK_THROWS_AS(model_of(with_node(1, kLeft, 0)), InputError);  // a cycle
  CHECK_THROWS_AS(model_of(with_node(1, kLeft, 1)), InputError);  // its own child
  CHECK_THROWS_AS(model_of(with_node(0, kLeft, 2)), InputError);  // one child twice
  CHECK_THROWS_AS(model_of(with_node(0, kRight, 1)), InputError);
  CHECK_THROWS_AS(model_of(with_node(0, kRight, 3)), InputError);  // a grandchild
  CHECK_THROWS_AS(model_of(with_node(0, kRight, -1)), InputError);
  CHECK_THROWS_AS(model_of(with_node(0, kRight, 1 << 30)), InputError);
  CHECK_THROWS_AS(model_of(with_node(0, kFirstWeak, -1)), InputError);
  CHECK_THROWS_AS(model_of(with_node(0, 0, 33)), InputError);  // depth
}

TEST_CASE("Numbers beyond what evaluation can bear are refused") {
  pbt::Model model = full_model();
  model.self_tests.clear();
  const std::string sane = bytes_of(model);
  const auto refused = [&](auto&& edit) {
    pbt::Model bad = model;
    edit(bad);
    const TemporaryFile file("bad");
    CHECK_THROWS_AS(write_model(file.path(), bad), InputError);
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

TEST_CASE("The self-test vectors are evaluated when a model is read") {
  pbt::Model model = full_model();
  model.self_tests.at(9).probability_q32 ^= 1u << 20;
  CHECK(message_of(bytes_of(model)).find("self-test vector 9") != std::string::npos);
  model = full_model();
  model.self_tests.at(3).responses.pop_back();
  CHECK_THROWS_AS(model_of(bytes_of(model)), InputError);
}

TEST_CASE("Unknown chunks and versions") {
  const pbt::Model model = full_model();
  const std::string with_optional = edited(model, [](Container& c) {
    c.chunks.insert(c.chunks.begin() + 2, Chunk{"NOTE", false, "hello"});
  });
  CHECK(bytes_of(model_of(with_optional)) == bytes_of(model));
  const std::string with_required = edited(model, [](Container& c) {
    c.chunks.push_back({"NEED", true, "hello"});
  });
  CHECK(message_of(with_required).find("use a newer program") != std::string::npos);
  CHECK_NOTHROW(model_of(edited(model, [](Container& c) { c.minor = 9; })));
  CHECK(message_of(edited(model, [](Container& c) { c.major = 2; })).find("format version 2.0") !=
        std::string::npos);
  CHECK_THROWS_AS(model_of(edited(model, [](Container& c) { c.content = 2; })), InputError);
}

TEST_CASE("What is not a model file") {
  CHECK_THROWS_AS(read_model("/nonexistent/x.pbt"), InputError);
  CHECK_THROWS_AS(read_model("/"), InputError);
  CHECK_THROWS_AS(read_model("/dev/zero"), InputError);
  CHECK(message_of("{\"tree\": 1}").find("not a model of pbt-train") != std::string::npos);
  CHECK_THROWS_AS(model_of(""), InputError);
  CHECK_THROWS_AS(write_model("/nonexistent/x.pbt", full_model()), OutputError);
}

TEST_CASE("META that is no JSON, nested without end, or of the wrong types is refused") {
  const pbt::Model model = full_model();
  const auto with_meta = [&](const std::string& text) {
    return edited(model, [&](Container& c) { chunk(c, "META").payload = text; });
  };
  CHECK_THROWS_AS(model_of(with_meta("")), InputError);
  CHECK_THROWS_AS(model_of(with_meta("[]")), InputError);
  CHECK_THROWS_AS(model_of(with_meta("{}")), InputError);
  CHECK_THROWS_AS(model_of(with_meta(std::string(1000000, '['))), InputError);
  const std::string meta = decode_container(bytes_of(model)).at("META").payload;
  const auto exchanged = [&](const std::string& from, const std::string& to) {
    std::string text = meta;
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return with_meta(text.replace(at, from.size(), to));
  };
  CHECK_THROWS_AS(model_of(exchanged("\"value\":7", "\"value\":7000000000")), InputError);
  CHECK_THROWS_AS(model_of(exchanged("\"value\":7", "\"value\":7.5")), InputError);
  CHECK_THROWS_AS(model_of(exchanged("\"zero\"", "\"maybe\"")), InputError);
  CHECK_THROWS_AS(model_of(exchanged("\"steps\":1023", "\"steps\":0")), InputError);
  CHECK_THROWS_AS(model_of(exchanged("[0.1,", "[1e999,")), InputError);
  CHECK_THROWS_AS(model_of(exchanged("[0.1,", "[-1,")), InputError);
  CHECK(model_of(exchanged("\"value\":7", "\"value\":8")).info.class_value == 8);
}

TEST_CASE("Damaged exported JSON is refused") {
  const std::string text = export_json(full_model());
  CHECK_THROWS_AS(import_json(""), InputError);
  CHECK_THROWS_AS(import_json("{}"), InputError);
  CHECK_THROWS_AS(import_json(text.substr(0, text.size() / 2)), InputError);
  for (uint64_t i = 0; i < 200; ++i) {
    std::string damaged = text;
    const size_t at = hash_below(8, 1, i, static_cast<uint32_t>(text.size()));
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << hash_below(8, 2, i, 7)));
    try {
      import_json(damaged);
    } catch (const InputError&) {
    }
  }
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
  const TemporaryFile file("checkpoint");
  write_partial(file.path(), partial, "0123abcd");
  const std::string bytes = file.bytes();
  const pbt::PartialModel read = read_partial(file.path(), "0123abcd");
  CHECK(read.finished == 2);
  CHECK(read.model.nodes.size() == 5);
  CHECK_THROWS_WITH(read_partial(file.path(), "0123abce"), Catch::Contains("other settings"));
  CHECK_THROWS_WITH(read_model(file.path()), Catch::Contains("checkpoint"));
  write_partial(file.path(), read, "0123abcd");
  CHECK(file.bytes() == bytes);

  partial.finished = 3;  // but node 2 has no children and no reason to be a leaf
  write_partial(file.path(), partial, "0123abcd");
  CHECK_THROWS_AS(read_partial(file.path(), "0123abcd"), InputError);
  partial.finished = UINT64_MAX;
  write_partial(file.path(), partial, "0123abcd");
  CHECK_THROWS_AS(read_partial(file.path(), "0123abcd"), InputError);
  write_model(file.path(), full_model());
  CHECK_THROWS_WITH(read_partial(file.path(), "0123abcd"), Catch::Contains("finished model"));
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
  const TemporaryFile file("ensemble-checkpoint");
  const auto refused = [&](const pbt::PartialModel& written) {
    write_partial(file.path(), written, "0123abcd");
    CHECK_THROWS_AS(read_partial(file.path(), "0123abcd"), InputError);
  };
  write_partial(file.path(), partial, "0123abcd");
  CHECK(read_partial(file.path(), "0123abcd").model.roots == model.roots);
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
  for (const char* expected : {"left kidney", "label value 7", "tree/depth 6", "log_loss 0.1",
                               "intensity level 1", "edge-x", "beyond the border zero"}) {
    CHECK(text.find(expected) != std::string::npos);
  }
}
