// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/evaluate.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <type_traits>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"
#include "larch/pbt/evaluate/tile_walk.h"

namespace larch::pbt {
namespace {

constexpr Dispatch<void(const EvaluateJob&, const Context&)> kEvaluate{
    "pbt::evaluate", cpu::evaluate, LARCH_CUDA_FN(cuda::evaluate)};

Vec3i tile_of(const EvaluateConfig& config) {
  if (config.tile.empty()) return {0, 0, 0};
  if (config.tile.size() != 3) throw UsageError("evaluate/tile: expected three numbers");
  const Vec3i tile{config.tile[0], config.tile[1], config.tile[2]};
  if (tile.x < 1 || tile.y < 1 || tile.z < 1 ||
      static_cast<int64_t>(tile.x) * tile.y * tile.z > 65536) {
    throw UsageError("evaluate/tile: not from 1 to 65536 voxels");
  }
  return tile;
}

/// The work goes to the stream of the context, which is one of its device.
void check_place(const image::IntegralSet& set, const Context& context) {
  if (set.data.device() == context.device) return;
  throw UsageError("pbt::evaluate: the image is on " + to_string(set.data.device()) +
                   ", the context on " + to_string(context.device));
}

void check_fits(const Model& model, const image::IntegralSet& set, const Grid& grid) {
  if (set.size != grid.size) throw UsageError("pbt::evaluate: image and grid differ in size");
  if (set.layouts.size() != model.channels.size()) {
    throw UsageError("pbt::evaluate: the image has other channels than the model");
  }
  for (const image::IntegralLayout& layout : set.layouts) {
    if (layout.pad < model.reach()) {
      throw UsageError("pbt::evaluate: the image is padded by " + std::to_string(layout.pad) +
                       " voxels, the model reaches " + std::to_string(model.reach()));
    }
  }
}

/// Algorithm 2 at one voxel; `bases`: its element of each channel.
uint64_t stack_posterior(const TreeView& tree, const std::vector<const uint32_t*>& bases) {
  struct Entry {
    int32_t node;
    uint32_t weight;
  };
  Entry stack[kMaxDepth + 2];
  int height = 0;
  stack[height++] = {0, kOneQ30};
  uint64_t total = 0;
  while (height > 0) {
    const Entry entry = stack[--height];
    const NodeRecord& node = tree.nodes[entry.node];
    if (node.left < 0) {
      total += static_cast<uint64_t>(entry.weight) * node.q;
      continue;
    }
    int32_t h = 0;
    for (int32_t w = node.first_weak; w < node.first_weak + node.n_weak; ++w) {
      const WeakRecord& weak = tree.weaks[w];
      const int32_t value =
          features::linear_response(tree.taps + weak.first_tap, weak.n_tap, bases[weak.channel]);
      h += weak_vote(weak.codes, weak.bins, weak.mask, value) ? weak.alpha : -weak.alpha;
      if (tree.early_rejection && is_certain(h, tree.rest[w], tree.thresholds)) {
        h = certain_value(h, tree.rest[w], tree.thresholds);
        break;
      }
    }
    const Split s = split_weight(entry.weight, h, tree.thresholds, tree.logistic);
    total += static_cast<uint64_t>(s.stop_left) * tree.nodes[node.left].q +
             static_cast<uint64_t>(s.stop_right) * tree.nodes[node.right].q;
    if (s.descend_right > 0) stack[height++] = {node.right, s.descend_right};
    if (s.descend_left > 0) stack[height++] = {node.left, s.descend_left};
  }
  return total;
}

/// The mean of the trees at one voxel. `bases` is scratch of one element a channel.
uint64_t stack_mean(const EvaluateJob& job, const std::vector<TreeView>& trees, const Vec3i& at,
                    std::vector<const uint32_t*>& bases) {
  for (int c = 0; c < job.channel_count; ++c) {
    bases[static_cast<size_t>(c)] = job.integral + job.layouts[c].base(at);
  }
  if (trees.size() == 1) return stack_posterior(trees[0], bases);
  uint64_t sum = 0;
  for (const TreeView& tree : trees) sum += tree::ensemble_term(stack_posterior(tree, bases));
  return tree::ensemble_mean_q60(sum, trees.size());
}

void stack_walk(const EvaluateJob& job, const Context& context) {
  std::vector<TreeView> trees;
  for (const CompiledTree& tree : job.trees) trees.push_back(tree.view());
  const Grid index{job.size, {}, {}, {}};
  parallel_for(context.threads, static_cast<int64_t>(job.size.y) * job.size.z, 4,
               [&](int64_t begin, int64_t end) {
                 std::vector<const uint32_t*> bases(static_cast<size_t>(job.channel_count));
                 for (int64_t row = begin; row < end; ++row) {
                   for (int x = 0; x < job.size.x; ++x) {
                     const int64_t i = row * job.size.x + x;
                     const bool inside = job.roi == nullptr || job.roi[i] != 0;
                     cpu::store_probability(
                         job, i, inside ? stack_mean(job, trees, index.voxel(i), bases) : 0);
                   }
                 }
               });
}

}  // namespace

void check_config(const EvaluateConfig& config) {
  tile_of(config);
}

Walk chosen_walk(Walk wanted, int depth, double share, int64_t voxels, const Device& device) {
  if (wanted != Walk::kAuto) return wanted;
  constexpr double kSparse = 0.1;
  const bool queue = device.is_cuda() && (depth > kTileLevels || share < kSparse);
  return queue && voxels < int64_t{1} << 32 ? Walk::kQueue : Walk::kTile;
}

CompiledModel compile(const Model& model, const image::IntegralSet& set,
                      const EvaluateConfig& config) {
  EvaluationRule rule;
  rule.hard = config.hard;
  rule.early_rejection = config.early_rejection;
  rule.e1 = config.e1 > 0 ? config.e1 : -1;
  return compile(model, set.layouts, rule);
}

namespace {

/// The offsets of a compiled model's taps hold for the strides, padding and levels that it was
/// compiled for; elsewhere they would read other voxels.
void check_layouts(const CompiledModel& model, const image::IntegralSet& set) {
  const auto text = [](const image::IntegralLayout& layout) {
    return "strides " + std::to_string(layout.linear_offset(0, 1, 0)) + " and " +
           std::to_string(layout.linear_offset(0, 0, 1)) + ", padding " +
           std::to_string(layout.pad) + ", level " + std::to_string(layout.level);
  };
  if (model.layouts.size() != set.layouts.size()) {
    throw Error(ExitCode::kBug, "pbt::evaluate_resident: the model was compiled for " +
                                    std::to_string(model.layouts.size()) +
                                    " channels, the image has " +
                                    std::to_string(set.layouts.size()));
  }
  for (size_t c = 0; c < set.layouts.size(); ++c) {
    const std::string compiled = text(model.layouts[c]), given = text(set.layouts[c]);
    if (compiled != given) {
      throw Error(ExitCode::kBug, "pbt::evaluate_resident: channel " + std::to_string(c) +
                                      " of the model was compiled for " + compiled +
                                      ", that of the image has " + given +
                                      "; compile the model for this image");
    }
  }
}

template <class T>
EvaluateJob make_job(const CompiledModel& model, const image::IntegralSet& set,
                     const EvaluateConfig& config, double share) {
  EvaluateJob job;
  job.size = set.size;
  job.layouts = set.layouts.data();
  job.channel_count = static_cast<int>(set.layouts.size());
  job.integral = set.data.data();
  job.trees = model.trees;
  job.walk = chosen_walk(config.walk, model.depth(), share, Grid{set.size, {}, {}, {}}.voxels(),
                         set.data.device());
  job.tile = tile_of(config);
  job.type = std::is_same_v<T, float>      ? ProbabilityType::kFloat32
             : std::is_same_v<T, uint16_t> ? ProbabilityType::kUint16
                                           : ProbabilityType::kUint8;
  return job;
}

}  // namespace

template <class T>
Volume<T> evaluate(const Model& model, const image::IntegralSet& set, const Grid& grid,
                   const EvaluateConfig& config, const Context& context, const Volume<uint8_t>* roi,
                   int64_t queue_items) {
  check_place(set, context);
  check_fits(model, set, grid);
  const CompiledModel compiled = compile(model, set, config);
  Volume<T> out(grid);
  double share = 1;
  if (roi != nullptr) {
    const auto wanted = std::count_if(roi->begin(), roi->end(), [](uint8_t v) { return v != 0; });
    share = static_cast<double>(wanted) / static_cast<double>(std::max<int64_t>(1, roi->voxels()));
  }
  EvaluateJob job = make_job<T>(compiled, set, config, share);
  for (const auto& entry : enum_names(static_cast<Walk*>(nullptr))) {
    if (entry.value == job.walk) {
      context.debug("evaluation by the " + std::string(entry.name) + " walk");
    }
  }
  job.roi = roi != nullptr ? roi->data() : nullptr;
  job.queue_items = queue_items;
  job.host_out = out.data();
  kEvaluate(context.device, job, context);
  return out;
}
template Volume<float> evaluate(const Model&, const image::IntegralSet&, const Grid&,
                                const EvaluateConfig&, const Context&, const Volume<uint8_t>*,
                                int64_t);
template Volume<uint16_t> evaluate(const Model&, const image::IntegralSet&, const Grid&,
                                   const EvaluateConfig&, const Context&, const Volume<uint8_t>*,
                                   int64_t);
template Volume<uint8_t> evaluate(const Model&, const image::IntegralSet&, const Grid&,
                                  const EvaluateConfig&, const Context&, const Volume<uint8_t>*,
                                  int64_t);

template <class T>
void evaluate_resident(const CompiledModel& model, const image::IntegralSet& set,
                       const EvaluateConfig& config, Buffer<T>& out, const Context& context) {
  const Grid grid{set.size, {}, {}, {}};
  check_place(set, context);
  check_layouts(model, set);
  if (model.trees.empty()) throw UsageError("pbt::evaluate_resident: the model has no tree");
  if (!(out.device() == set.data.device()) || out.size() < static_cast<size_t>(grid.voxels())) {
    throw UsageError("pbt::evaluate_resident: the output is too small or on another device");
  }
  EvaluateJob job = make_job<T>(model, set, config, 1);
  (set.data.device().is_cuda() ? job.device_out : job.host_out) = out.data();
  kEvaluate(context.device, job, context);
}
template void evaluate_resident(const CompiledModel&, const image::IntegralSet&,
                                const EvaluateConfig&, Buffer<float>&, const Context&);
template void evaluate_resident(const CompiledModel&, const image::IntegralSet&,
                                const EvaluateConfig&, Buffer<uint16_t>&, const Context&);
template void evaluate_resident(const CompiledModel&, const image::IntegralSet&,
                                const EvaluateConfig&, Buffer<uint8_t>&, const Context&);

std::vector<Candidate> top_candidates(const Volume<float>& probability, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(probability.voxels()));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto keep = static_cast<std::ptrdiff_t>(
      std::clamp<int64_t>(count, 0, static_cast<int64_t>(order.size())));
  std::partial_sort(order.begin(), order.begin() + keep, order.end(), [&](int64_t a, int64_t b) {
    return probability[a] != probability[b] ? probability[a] > probability[b] : a < b;
  });
  std::vector<Candidate> best;
  for (std::ptrdiff_t i = 0; i < keep; ++i) {
    best.push_back({order[static_cast<size_t>(i)], probability[order[static_cast<size_t>(i)]]});
  }
  return best;
}

namespace cpu {

void evaluate(const EvaluateJob& job, const Context& context) {
  if (job.walk == Walk::kStack) {
    stack_walk(job, context);
    return;
  }
  tile_walk(job, context);
}

}  // namespace cpu
}  // namespace larch::pbt
