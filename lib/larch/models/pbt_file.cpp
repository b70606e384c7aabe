// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/pbt_file.h"

#include "larch/core/error.h"
#include "larch/models/binary_layout.h"
#include "larch/models/file.h"
#include "larch/models/json_layout.h"
#include "larch/models/pbt_layout.h"
#include "larch/tree/self_test.h"

namespace larch::models {
namespace {

constexpr const char* kKind = "pbt";

/// Throws InputError unless the nodes of the last tree of a checkpoint are as growing leaves them:
/// those before `finished` have children exactly when they have been grown, numbered in order; the
/// others have none.
void check_partial(const pbt::Model& model, uint64_t finished) {
  const auto refuse = [] {
    throw InputError("its tree is not one that training leaves behind; delete it and train anew");
  };
  const size_t root = model.roots.back();
  if (finished > model.nodes.size() || finished < root) refuse();
  auto next = static_cast<int32_t>(root) + 1;
  for (size_t n = root; n < model.nodes.size(); ++n) {
    const tree::Node& node = model.nodes[n];
    const bool grown = n < finished && node.reason == tree::NodeReason::kGrown;
    if (grown == node.is_leaf()) refuse();
    if (!grown) continue;
    if (node.left != next || node.right != next + 1) refuse();
    next += 2;
  }
  if (static_cast<size_t>(next) != model.nodes.size()) refuse();
}

}  // namespace

Container encode_model(const pbt::Model& model) {
  pbt::check_model(model);
  return to_container(model);
}

pbt::Model decode_model(const Container& container) {
  if (container.kind == kPbtCheckpointKind) {
    throw InputError("it is a checkpoint of an unfinished training; continue with --resume");
  }
  pbt::Model model = from_container<pbt::Model>(container);
  pbt::check_model(model);
  return model;
}

void write_model(const std::string& path, const pbt::Model& model) {
  write_container(path, encode_model(model));
}

pbt::Model read_model(const std::string& path) {
  return naming_file("model", path, [&] {
    pbt::Model model = decode_model(read_container(path));
    tree::run_self_tests(model, model.features.size());
    return model;
  });
}

void write_partial(const std::string& path, const pbt::PartialModel& partial,
                   const std::string& fingerprint) {
  pbt::check_model(partial.model);
  write_container(path, to_container(Checkpoint{{partial.finished, fingerprint}, partial.model}));
}

pbt::PartialModel read_partial(const std::string& path, const std::string& fingerprint) {
  return naming_file("checkpoint", path, [&] {
    const Container container = read_container(path);
    if (container.kind == kKind) {
      throw InputError("it is a finished model, not a checkpoint; train without --resume");
    }
    auto [progress, model] = from_container<Checkpoint>(container);
    pbt::check_model(model);
    require_fingerprint(progress.fingerprint, fingerprint);
    check_partial(model, progress.finished);
    return pbt::PartialModel{std::move(model), static_cast<size_t>(progress.finished)};
  });
}

std::string export_json(const pbt::Model& model) {
  pbt::check_model(model);
  return model_to_json(model).dump(1) + "\n";
}

}  // namespace larch::models
