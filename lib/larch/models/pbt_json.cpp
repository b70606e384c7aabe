// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/json_values.h"
#include "larch/models/pbt_codec.h"
#include "larch/models/pbt_file.h"
#include "larch/pbt/train_config.h"
#include "larch/tree/self_test.h"

namespace larch::models {
namespace {

constexpr const char* kFormat = "larch-pbt";

Json features_json(const pbt::Model& model) {
  Json all = Json::array();
  for (const features::HaarFeature& feature : model.features) {
    Json cuboids = Json::array();
    for (size_t c = 0; c < static_cast<size_t>(feature.cuboid_count); ++c) {
      const features::Cuboid& box = feature.cuboids[c];
      cuboids.push_back({{"lo", {box.lo.x, box.lo.y, box.lo.z}},
                         {"hi", {box.hi.x, box.hi.y, box.hi.z}},
                         {"weight", box.weight}});
    }
    all.push_back({{"type", features::to_string(feature.type)},
                   {"channel", feature.channel},
                   {"pool_index", feature.pool_index},
                   {"cuboids", std::move(cuboids)}});
  }
  return all;
}

Json weaks_json(const pbt::Model& model) {
  Json all = Json::array();
  for (const pbt::WeakClassifier& weak : model.weaks) {
    all.push_back({{"feature", weak.feature},
                   {"lo", weak.codes.lo},
                   {"hi", weak.codes.hi},
                   {"multiplier", weak.codes.multiplier},
                   {"first_code", weak.bins.first_code},
                   {"shift", weak.bins.shift},
                   {"mask", weak.mask},
                   {"alpha_q20", weak.alpha_q20}});
  }
  return all;
}

Json nodes_json(const pbt::Model& model) {
  Json all = Json::array();
  for (const pbt::Node& node : model.nodes) {
    all.push_back({{"depth", node.depth},
                   {"left", node.left},
                   {"right", node.right},
                   {"first_weak", node.first_weak},
                   {"n_weak", node.n_weak},
                   {"mass_positive_q32", node.mass_positive},
                   {"mass_negative_q32", node.mass_negative},
                   {"heap_index", node.heap_index},
                   {"reason", to_string(node.reason)}});
  }
  return all;
}

Json rule_json(const pbt::Model& model) {
  return {{"e1", hex_float(model.e1)},
          {"e2", hex_float(model.e2)},
          {"prior", enum_name(model.prior)},
          {"prior_value", hex_float(model.prior_value)},
          {"smoothing", hex_float(model.smoothing)},
          {"mean_mass_q32", model.mean_mass}};
}

Json history_json(const pbt::Model& model) {
  Json all = Json::array();
  for (const pbt::NodeHistory& entry : model.history) {
    Json errors = Json::array();
    for (const double error : entry.errors) errors.push_back(hex_float(error));
    all.push_back({{"node", entry.node},
                   {"samples", entry.samples},
                   {"selected_positive", entry.selected_positive},
                   {"selected_negative", entry.selected_negative},
                   {"errors", std::move(errors)}});
  }
  return all;
}

void read_cuboid(const Json& json, features::Cuboid& box) {
  const Json &lo = list(json, "lo"), &hi = list(json, "hi");
  if (lo.size() != 3 || hi.size() != 3) bad_value("cuboids", "need three numbers a corner");
  for (int axis = 0; axis < 3; ++axis) {
    box.lo[axis] = integer<int16_t>(lo[static_cast<size_t>(axis)], "lo");
    box.hi[axis] = integer<int16_t>(hi[static_cast<size_t>(axis)], "hi");
  }
  box.weight = integer_at<int32_t>(json, "weight");
}

void read_features(const Json& all, pbt::Model& model) {
  for (const Json& json : all) {
    features::HaarFeature feature;
    feature.type = named_at(json, "type", features::HaarType::kOffsetPair);
    feature.channel = integer_at<uint16_t>(json, "channel");
    feature.pool_index = integer_at<uint32_t>(json, "pool_index");
    const Json& cuboids = list(json, "cuboids");
    if (cuboids.size() > feature.cuboids.size()) bad_value("cuboids", "are more than four");
    for (const Json& cuboid : cuboids) {
      read_cuboid(cuboid, feature.cuboids[static_cast<size_t>(feature.cuboid_count++)]);
    }
    model.features.push_back(feature);
  }
}

void read_weaks(const Json& all, pbt::Model& model) {
  for (const Json& json : all) {
    pbt::WeakClassifier weak;
    weak.feature = integer_at<uint32_t>(json, "feature");
    weak.codes = {integer_at<int32_t>(json, "lo"), integer_at<int32_t>(json, "hi"),
                  integer_at<uint32_t>(json, "multiplier")};
    weak.bins = {integer_at<uint8_t>(json, "first_code"), integer_at<uint8_t>(json, "shift")};
    weak.mask = integer_at<uint64_t>(json, "mask");
    weak.alpha_q20 = integer_at<int32_t>(json, "alpha_q20");
    model.weaks.push_back(weak);
  }
}

void read_nodes(const Json& all, pbt::Model& model) {
  for (const Json& json : all) {
    pbt::Node node;
    node.depth = integer_at<int32_t>(json, "depth");
    node.left = integer_at<int32_t>(json, "left");
    node.right = integer_at<int32_t>(json, "right");
    node.first_weak = integer_at<uint32_t>(json, "first_weak");
    node.n_weak = integer_at<uint32_t>(json, "n_weak");
    node.mass_positive = integer_at<uint64_t>(json, "mass_positive_q32");
    node.mass_negative = integer_at<uint64_t>(json, "mass_negative_q32");
    node.heap_index = integer_at<uint64_t>(json, "heap_index");
    node.reason = named_at(json, "reason", pbt::NodeReason::kPruned);
    model.nodes.push_back(node);
  }
}

void read_rule(const Json& json, pbt::Model& model) {
  model.e1 = real(member(json, "e1"), "e1");
  model.e2 = real(member(json, "e2"), "e2");
  model.prior = enum_at<pbt::PriorKind>(json, "prior");
  model.prior_value = real(member(json, "prior_value"), "prior_value");
  model.smoothing = real(member(json, "smoothing"), "smoothing");
  model.mean_mass = integer_at<uint64_t>(json, "mean_mass_q32");
}

void read_history(const Json& all, pbt::Model& model) {
  for (const Json& json : all) {
    pbt::NodeHistory entry;
    entry.node = integer_at<int32_t>(json, "node");
    entry.samples = integer_at<uint32_t>(json, "samples");
    entry.selected_positive = integer_at<uint32_t>(json, "selected_positive");
    entry.selected_negative = integer_at<uint32_t>(json, "selected_negative");
    for (const Json& error : list(json, "errors")) entry.errors.push_back(real(error, "errors"));
    model.history.push_back(std::move(entry));
  }
}

}  // namespace

std::string export_json(const pbt::Model& model) {
  pbt::check_model(model);
  Json channels = Json::array(), validation = Json::array(), tests = Json::array();
  for (const image::ChannelSpec& channel : model.channels) {
    channels.push_back({{"kind", enum_name(channel.kind)}, {"level", channel.level}});
  }
  for (const auto& [name, value] : model.info.validation) {
    validation.push_back({{"name", name}, {"value", hex_float(value)}});
  }
  for (const pbt::SelfTest& test : model.self_tests) {
    tests.push_back({{"responses", test.responses}, {"probability_q32", test.probability_q32}});
  }
  const Json all = {{"format", kFormat},
                    {"version", kMajorVersion},
                    {"meta", meta_json(model, Doubles::kHex)},
                    {"rule", rule_json(model)},
                    {"channels", std::move(channels)},
                    {"features", features_json(model)},
                    {"weak_classifiers", weaks_json(model)},
                    {"nodes", nodes_json(model)},
                    {"roots", model.roots},
                    {"logistic_q30", model.logistic},
                    {"validation", std::move(validation)},
                    {"history", history_json(model)},
                    {"self_tests", std::move(tests)}};
  return all.dump(1) + "\n";
}

pbt::Model import_json(const std::string& source) {
  const Json all = parse_json(source, "the exported model");
  if (text(member(all, "format"), "format") != kFormat) {
    bad_value("format", std::string("is not ") + kFormat);
  }
  if (integer_at<uint32_t>(all, "version") > kMajorVersion) {
    throw InputError("the exported model is of a newer version; use a newer program");
  }
  pbt::Model model;
  read_meta(member(all, "meta"), model);
  read_rule(member(all, "rule"), model);
  for (const Json& json : list(all, "channels")) {
    model.channels.push_back(
        {enum_at<image::ChannelKind>(json, "kind"), integer_at<int32_t>(json, "level")});
  }
  read_features(list(all, "features"), model);
  read_weaks(list(all, "weak_classifiers"), model);
  read_nodes(list(all, "nodes"), model);
  model.roots.clear();
  for (const Json& value : list(all, "roots")) {
    model.roots.push_back(integer<uint32_t>(value, "roots"));
  }
  for (const Json& value : list(all, "logistic_q30")) {
    model.logistic.push_back(integer<uint32_t>(value, "logistic_q30"));
  }
  for (const Json& json : list(all, "validation")) {
    model.info.validation.emplace_back(text(member(json, "name"), "name"),
                                       real(member(json, "value"), "value"));
  }
  read_history(list(all, "history"), model);
  for (const Json& json : list(all, "self_tests")) {
    pbt::SelfTest test;
    for (const Json& value : list(json, "responses")) {
      test.responses.push_back(integer<int32_t>(value, "responses"));
    }
    test.probability_q32 = integer_at<uint32_t>(json, "probability_q32");
    model.self_tests.push_back(std::move(test));
  }
  pbt::check_model(model);
  tree::run_self_tests(model, model.features.size());
  return model;
}

}  // namespace larch::models
