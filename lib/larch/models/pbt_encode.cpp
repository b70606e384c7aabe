// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/bytes.h"
#include "larch/models/pbt_codec.h"

namespace larch::models {
namespace {

std::string channels_chunk(const pbt::Model& model) {
  ByteWriter out;
  out.u64(model.channels.size());
  for (const image::ChannelSpec& channel : model.channels) {
    out.u16(static_cast<uint16_t>(channel.kind));
    out.u16(0);
    out.i32(channel.level);
  }
  return std::move(out).take();
}

std::string features_chunk(const pbt::Model& model) {
  ByteWriter out;
  out.u64(model.features.size());
  for (const features::HaarFeature& feature : model.features) {
    out.u16(static_cast<uint16_t>(feature.type));
    out.u16(feature.channel);
    out.u32(feature.pool_index);
    out.u32(static_cast<uint32_t>(feature.cuboid_count));
    for (size_t c = 0; c < feature.cuboids.size(); ++c) {
      const bool used = c < static_cast<size_t>(feature.cuboid_count);
      const features::Cuboid box = used ? feature.cuboids[c] : features::Cuboid{};
      for (int axis = 0; axis < 3; ++axis) out.i16(static_cast<int16_t>(box.lo[axis]));
      for (int axis = 0; axis < 3; ++axis) out.i16(static_cast<int16_t>(box.hi[axis]));
      out.i32(box.weight);
    }
  }
  return std::move(out).take();
}

std::string weaks_chunk(const pbt::Model& model) {
  ByteWriter out;
  out.u64(model.weaks.size());
  for (const pbt::WeakClassifier& weak : model.weaks) {
    out.u32(weak.feature);
    out.i32(weak.codes.lo);
    out.i32(weak.codes.hi);
    out.u32(weak.codes.multiplier);
    out.u8(weak.bins.first_code);
    out.u8(weak.bins.shift);
    out.u16(0);
    out.i32(weak.alpha_q20);
    out.u64(weak.mask);
  }
  return std::move(out).take();
}

std::string nodes_chunk(const pbt::Model& model) {
  ByteWriter out;
  out.u64(model.nodes.size());
  for (const pbt::Node& node : model.nodes) {
    out.i32(node.depth);
    out.i32(node.left);
    out.i32(node.right);
    out.u32(node.first_weak);
    out.u32(node.n_weak);
    out.u16(static_cast<uint16_t>(node.reason));
    out.u16(0);
    out.u64(node.mass_positive);
    out.u64(node.mass_negative);
    out.u64(node.heap_index);
  }
  return std::move(out).take();
}

std::string logistic_chunk(const pbt::Model& model) {
  ByteWriter out;
  out.u64(model.logistic.size());
  for (const uint32_t value : model.logistic) out.u32(value);
  return std::move(out).take();
}

std::string prior_chunk(const pbt::Model& model) {
  ByteWriter out;
  out.f64(model.e1);
  out.f64(model.e2);
  out.f64(model.prior_value);
  out.f64(model.smoothing);
  out.u64(model.mean_mass);
  out.u32(static_cast<uint32_t>(model.prior));
  return std::move(out).take();
}

std::string validation_chunk(const pbt::Model& model) {
  ByteWriter out;
  out.u64(model.info.validation.size());
  for (const auto& [name, value] : model.info.validation) {
    out.text(name);
    out.f64(value);
  }
  return std::move(out).take();
}

std::string history_chunk(const pbt::Model& model) {
  ByteWriter out;
  out.u64(model.history.size());
  for (const pbt::NodeHistory& entry : model.history) {
    out.i32(entry.node);
    out.u32(entry.samples);
    out.u32(entry.selected_positive);
    out.u32(entry.selected_negative);
    out.u64(entry.errors.size());
    for (const double error : entry.errors) out.f64(error);
  }
  return std::move(out).take();
}

std::string self_tests_chunk(const pbt::Model& model) {
  ByteWriter out;
  out.u64(model.self_tests.size());
  for (const pbt::SelfTest& test : model.self_tests) {
    out.u64(test.responses.size());
    for (const int32_t response : test.responses) out.i32(response);
    out.u32(test.probability_q32);
  }
  return std::move(out).take();
}

std::string roots_chunk(const pbt::Model& model) {
  ByteWriter out;
  out.u64(model.roots.size());
  for (const uint32_t root : model.roots) out.u64(root);
  return std::move(out).take();
}

std::string part_chunk(const PartHeader& part) {
  ByteWriter out;
  out.u64(part.finished);
  out.text(part.fingerprint);
  return std::move(out).take();
}

}  // namespace

Container encode_model(const pbt::Model& model, const PartHeader* part) {
  pbt::check_model(model);
  Container out;
  out.content = kContentTree | kContentExact | (part != nullptr ? kContentCheckpoint : 0);
  const auto add = [&out](const char* id, std::string payload) {
    out.chunks.push_back({id, true, std::move(payload)});
  };
  if (part != nullptr) add("PART", part_chunk(*part));
  add("META", meta_json(model, Doubles::kDecimal).dump());
  add("CHAN", channels_chunk(model));
  add("FEAT", features_chunk(model));
  add("WEAK", weaks_chunk(model));
  add("NODE", nodes_chunk(model));
  add("LUTS", logistic_chunk(model));
  add("PRIO", prior_chunk(model));
  add("VALD", validation_chunk(model));
  add("HIST", history_chunk(model));
  add("TEST", self_tests_chunk(model));
  add("TREE", roots_chunk(model));
  return out;
}

}  // namespace larch::models
