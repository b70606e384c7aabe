// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "larch/core/error.h"
#include "larch/models/bytes.h"
#include "larch/models/pbt_codec.h"

namespace larch::models {
namespace {

constexpr std::array<std::string_view, 12> kKnown{"META", "CHAN", "FEAT", "WEAK", "NODE", "LUTS",
                                                  "PRIO", "VALD", "HIST", "TEST", "TREE", "PART"};

ByteReader open(const Container& container, const char* id) {
  return {container.at(id).payload, std::string("part ") + id};
}

/// An enum value that is at most `last`.
template <class E>
E enumerator(ByteReader& in, uint32_t value, E last, const char* what) {
  if (value > static_cast<uint32_t>(last)) in.fail(std::string("unknown ") + what);
  return static_cast<E>(value);
}

double finite(ByteReader& in) {
  const double value = in.f64();
  if (!std::isfinite(value)) in.fail("a number is not finite");
  return value;
}

void get_channels(ByteReader in, pbt::Model& model) {
  model.channels.resize(in.count(8));
  for (image::ChannelSpec& channel : model.channels) {
    channel.kind = enumerator(in, in.u16(), image::ChannelKind::kDerivativeZ, "channel");
    in.u16();
    channel.level = in.i32();
  }
  in.finish();
}

void get_features(ByteReader in, pbt::Model& model) {
  model.features.resize(in.count(76));
  for (features::HaarFeature& feature : model.features) {
    feature.type = enumerator(in, in.u16(), features::HaarType::kOffsetPair, "feature");
    feature.channel = in.u16();
    feature.pool_index = in.u32();
    const uint32_t count = in.u32();
    if (count > feature.cuboids.size()) in.fail("a feature has more than four cuboids");
    feature.cuboid_count = static_cast<int>(count);
    for (features::Cuboid& box : feature.cuboids) {
      for (int axis = 0; axis < 3; ++axis) box.lo[axis] = in.i16();
      for (int axis = 0; axis < 3; ++axis) box.hi[axis] = in.i16();
      box.weight = in.i32();
    }
  }
  in.finish();
}

void get_weaks(ByteReader in, pbt::Model& model) {
  model.weaks.resize(in.count(32));
  for (pbt::WeakClassifier& weak : model.weaks) {
    weak.feature = in.u32();
    weak.codes.lo = in.i32();
    weak.codes.hi = in.i32();
    weak.codes.multiplier = in.u32();
    weak.bins.first_code = in.u8();
    weak.bins.shift = in.u8();
    in.u16();
    weak.alpha_q20 = in.i32();
    weak.mask = in.u64();
  }
  in.finish();
}

void get_nodes(ByteReader in, pbt::Model& model) {
  model.nodes.resize(in.count(48));
  for (pbt::Node& node : model.nodes) {
    node.depth = in.i32();
    node.left = in.i32();
    node.right = in.i32();
    node.first_weak = in.u32();
    node.n_weak = in.u32();
    node.reason = enumerator(in, in.u16(), pbt::NodeReason::kPruned, "reason of a node");
    in.u16();
    node.mass_positive = in.u64();
    node.mass_negative = in.u64();
    node.heap_index = in.u64();
  }
  in.finish();
}

void get_logistic(ByteReader in, pbt::Model& model) {
  model.logistic.resize(in.count(4));
  for (uint32_t& value : model.logistic) value = in.u32();
  in.finish();
}

void get_prior(ByteReader in, pbt::Model& model) {
  model.e1 = finite(in);
  model.e2 = finite(in);
  model.prior_value = finite(in);
  model.smoothing = finite(in);
  model.mean_mass = in.u64();
  model.prior = enumerator(in, in.u32(), pbt::PriorKind::kValue, "prior");
  in.finish();
}

void get_validation(ByteReader in, pbt::Model& model) {
  model.info.validation.resize(in.count(12));
  for (auto& [name, value] : model.info.validation) {
    name = in.text();
    value = finite(in);
  }
  in.finish();
}

void get_history(ByteReader in, pbt::Model& model) {
  model.history.resize(in.count(24));
  for (pbt::NodeHistory& entry : model.history) {
    entry.node = in.i32();
    entry.samples = in.u32();
    entry.selected_positive = in.u32();
    entry.selected_negative = in.u32();
    entry.errors.resize(in.count(8));
    for (double& error : entry.errors) error = finite(in);
  }
  in.finish();
}

void get_self_tests(ByteReader in, pbt::Model& model) {
  model.self_tests.resize(in.count(12));
  for (pbt::SelfTest& test : model.self_tests) {
    test.responses.resize(in.count(4));
    for (int32_t& response : test.responses) response = in.i32();
    test.probability_q32 = in.u32();
  }
  in.finish();
}

void get_roots(ByteReader in, pbt::Model& model) {
  model.roots.resize(in.count(8));
  for (uint32_t& root : model.roots) {
    const uint64_t node = in.u64();
    if (node >= model.nodes.size()) in.fail("a tree begins beyond the last node");
    root = static_cast<uint32_t>(node);
  }
  in.finish();
}

PartHeader get_part(ByteReader in) {
  PartHeader part;
  part.finished = in.u64();
  part.fingerprint = in.text();
  in.finish();
  return part;
}

void check_known(const Container& container) {
  if ((container.content & kContentTree) == 0 || (container.content & kContentForest) != 0) {
    throw InputError("it does not hold a probabilistic boosting tree; give a model of pbt-train");
  }
  for (const Chunk& chunk : container.chunks) {
    const bool known = std::find(kKnown.begin(), kKnown.end(), chunk.id) != kKnown.end();
    if (!known && chunk.required) {
      throw InputError("it needs a part that this program does not know; use a newer program");
    }
  }
}

}  // namespace

pbt::Model decode_model(const Container& container, std::optional<PartHeader>* part) {
  check_known(container);
  pbt::Model model;
  read_meta(parse_json(container.at("META").payload, "part META"), model);
  get_channels(open(container, "CHAN"), model);
  get_features(open(container, "FEAT"), model);
  get_weaks(open(container, "WEAK"), model);
  get_nodes(open(container, "NODE"), model);
  get_logistic(open(container, "LUTS"), model);
  get_prior(open(container, "PRIO"), model);
  if (container.find("VALD") != nullptr) get_validation(open(container, "VALD"), model);
  if (container.find("HIST") != nullptr) get_history(open(container, "HIST"), model);
  get_self_tests(open(container, "TEST"), model);
  get_roots(open(container, "TREE"), model);
  if (container.find("PART") != nullptr) *part = get_part(open(container, "PART"));
  pbt::check_model(model);
  return model;
}

void check_partial(const pbt::Model& model, uint64_t finished) {
  const auto refuse = [] {
    throw InputError("its tree is not one that training leaves behind; delete it and train anew");
  };
  const size_t root = model.roots.back();
  if (finished > model.nodes.size() || finished < root) refuse();
  auto next = static_cast<int32_t>(root) + 1;
  for (size_t n = root; n < model.nodes.size(); ++n) {
    const pbt::Node& node = model.nodes[n];
    const bool grown = n < finished && node.reason == pbt::NodeReason::kGrown;
    if (grown == node.is_leaf()) refuse();
    if (!grown) continue;
    if (node.left != next || node.right != next + 1) refuse();
    next += 2;
  }
  if (static_cast<size_t>(next) != model.nodes.size()) refuse();
}

}  // namespace larch::models
