// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/flexible_shift.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/dsa/field/field_row.h"
#include "larch/dsa/match/score_lattice.h"
#include "larch/dsa/match/search_math.h"
#include "larch/dsa/sampling/sampling_math.h"
#include "larch/dsa/similarity/entropy.h"

namespace larch::dsa {
namespace {

/// A pixel around a node: the field there but for the node's own part, times `whole`.
struct FollowingPixel {
  int64_t rest_x = 0, rest_y = 0;  ///< Q16 pixels times `whole`
  int32_t weight = 0, whole = 1;   ///< of the node
  int32_t x = 0, y = 0;
  uint16_t contrast = 0;
};

/// The search of one node, as search_fraction wants it (search_math.h). One per thread.
class NodeSearch {
 public:
  NodeSearch(const FlexibleJob& job, const TapTable& taps, const uint64_t* terms)
      : job_(job),
        places_(make_field_grid(*job.nodes, Device::cpu())),
        mask_{job.mask, job.nodes->image, &taps, job.config->border == Border::kClamp,
              skips_weightless(job.config->subpixel)},
        terms_(terms),
        counts_(kBins, 0) {}

  /// Moves a node from `vectors`, of its frame.
  void search(int64_t frame, int32_t node, const Vec3i* vectors, BlockMatch& match) {
    start_ = vectors[node];
    gather(frame, node, vectors);
    match.vector = match.found = start_;
    match.counted = static_cast<uint32_t>(pixels_.size());
    if (int64_t{match.counted} * 4 < support_) {
      match.flags |= kBlockOutside;
      return;
    }
    lattice_.clear();
    ranking_ = {job_.config->metric, terms_, (match.counted + 1) / 2};
    shift_ = job_.bin_shift[frame];
    mu_ = rounded_to_bins(median_at_start(), shift_);
    const Found found = search_from_start();
    match.vector = match.found = start_ + found.vector;
    if (match.before.count == 0) match.before = found.at_start;
    evaluate(&found.units, 1, &match.best);
    match.evaluations += found.evaluations;
    match.overflow = overflow_;
    if (found.is_unreliable) match.flags |= kBlockUnreliable;
    if (found.at_edge) match.flags |= kBlockAtEdge;
  }

  void evaluate(const Vec3i* units, int count, Score* scores) {
    for (int i = 0; i < count; ++i) scores[i] = one(units[i]);
  }
  void fill(const Vec3i& origin, int x0, int y0, int x1, int y1) {
    lattice_.fill(origin, x0, y0, x1, y1, [this](const Vec3i& units) { return one(units); });
  }
  const Score& score(int x, int y) const { return lattice_.score(x, y); }
  int64_t similarity(int x, int y) const { return ranking_.similarity(score(x, y)); }
  uint32_t filled() const { return lattice_.filled(); }

 private:
  /// First and last pixel along an axis that follow a node.
  std::pair<int32_t, int32_t> followers(int axis, int32_t i) const {
    const auto& at = job_.nodes->starts[static_cast<size_t>(axis)];
    const auto place = static_cast<size_t>(i);
    return {i == 0 ? at[place] : at[place - 1] + 1,
            place + 1 == at.size() ? at[place] : at[place + 1] - 1};
  }

  void gather(int64_t frame, int32_t node, const Vec3i* vectors) {
    const Vec3i at = job_.nodes->at(node);
    const auto [x0, x1] = followers(0, at.x);
    const auto [y0, y1] = followers(1, at.y);
    const FieldView view = places_.view(vectors, BorderField::kClamp);
    const AxisWeights wz = axis_weights(view.axes[2], view.border, 0);
    const Vec3i& size = job_.nodes->image;
    pixels_.clear();
    support_ = static_cast<int64_t>(x1 - x0 + 1) * (y1 - y0 + 1);
    for (int32_t y = y0; y <= y1; ++y) {
      const AxisWeights wy = axis_weights(view.axes[1], view.border, y);
      const int32_t of_row = weight_of(wy, at.y);
      for (int32_t x = x0; x <= x1; ++x) {
        FollowingPixel pixel;
        pixel.contrast = job_.contrast[(frame * size.y + y) * static_cast<int64_t>(size.x) + x];
        if (pixel.contrast == kNoSample) continue;
        const AxisWeights wx = axis_weights(view.axes[0], view.border, x);
        const FieldSum sum = field_sum(view, wx, wy, wz);
        pixel.weight = weight_of(wx, at.x) * of_row * wz.whole;
        pixel.whole = static_cast<int32_t>(sum.whole);
        pixel.rest_x = sum.of[0] - static_cast<int64_t>(pixel.weight) * start_.x;
        pixel.rest_y = sum.of[1] - static_cast<int64_t>(pixel.weight) * start_.y;
        pixel.x = x;
        pixel.y = y;
        pixels_.push_back(pixel);
      }
    }
  }
  static int32_t weight_of(const AxisWeights& weights, int32_t i) {
    return (weights.first == i ? weights.of_first : 0) +
           (weights.second == i ? weights.of_second : 0);
  }

  /// The mask below a pixel when the node is moved by `units` from its start.
  uint16_t mask_below(const FollowingPixel& pixel, const Vec3i& moved) const {
    const int64_t x = pixel.rest_x + static_cast<int64_t>(pixel.weight) * moved.x;
    const int64_t y = pixel.rest_y + static_cast<int64_t>(pixel.weight) * moved.y;
    const double inverse = 1.0 / (65536.0 * pixel.whole);
    return mask_sample(mask_, pixel.x * kUnit + units_of_sum(x, pixel.whole, inverse),
                       pixel.y * kUnit + units_of_sum(y, pixel.whole, inverse));
  }

  int32_t median_at_start() const {
    std::vector<int32_t> differences;
    for (const FollowingPixel& pixel : pixels_) {
      const uint16_t mask = mask_below(pixel, start_);
      if (mask != kNoSample) differences.push_back(pixel.contrast - mask);
    }
    if (differences.empty()) return 0;
    const auto middle =
        differences.begin() + static_cast<std::ptrdiff_t>((differences.size() - 1) / 2);
    std::nth_element(differences.begin(), middle, differences.end());
    return *middle;
  }

  Score one(const Vec3i& units) {
    std::fill(counts_.begin(), counts_.end(), 0U);
    const Vec3i moved = start_ + q16_of(units);
    Score score;
    overflow_ = 0;
    for (const FollowingPixel& pixel : pixels_) {
      const uint16_t mask = mask_below(pixel, moved);
      if (mask == kNoSample) continue;
      const int32_t number = bin_number(pixel.contrast - mask, mu_, shift_);
      overflow_ += is_overflow(number) ? 1 : 0;
      const int32_t bin = bin_index(number, job_.config->overflow);
      if (bin < 0) continue;
      ++counts_[static_cast<size_t>(bin)];
      ++score.count;
    }
    for (const uint32_t h : counts_) {
      score.sum += terms_ == nullptr ? uint64_t{h} * h : terms_[h];
    }
    return score;
  }

  Found search_from_start() {
    SearchPlan plan = plan_of(*job_.config, kFlexibleRange, false);
    plan.search = Search::kCds;
    // Every displacement samples all pixels anew: a whole lattice takes too long.
    if (plan.subsearch != SubSearch::kCds) plan.subsearch = SubSearch::kFast;
    Found found;
    found.whole.score = one({});
    found.at_start = found.whole.score;
    found.evaluations =
        1 + conjugate_directions(found.whole, plan.axes, plan.range, plan.rounds, ranking_,
                                 EvaluateSteps<NodeSearch>{*this, {}, kUnit});
    for (int axis = 0; axis < plan.axes; ++axis) {
      if (magnitude(found.whole.at[axis]) >= plan.range) found.at_edge = true;
    }
    found.is_unreliable = found.at_edge || !ranking_.is_comparable(found.whole.score);
    search_fraction(*this, plan, ranking_, found);
    return found;
  }

  const FlexibleJob& job_;
  const FieldGrid places_;
  const MaskView mask_;
  const uint64_t* terms_;  // null: EHD
  Vec3i start_{};
  int64_t support_ = 0;
  std::vector<FollowingPixel> pixels_{};
  Ranking ranking_{};
  int32_t mu_ = 0, shift_ = 0;
  uint32_t overflow_ = 0;  // of the displacement that was evaluated last
  std::vector<uint32_t> counts_;
  cpu::ScoreLattice lattice_{};
};

/// Frames that still move, and how far each has moved in this sweep.
struct Sweep {
  std::vector<uint8_t> moves{};
  std::vector<std::atomic<int32_t>> farthest{};
};

/// Every second node along each axis: the field of none follows another.
std::vector<int32_t> nodes_of_colour(const BlockGrid& nodes, int colour) {
  std::vector<int32_t> out;
  for (int32_t node = 0; node < nodes.blocks(); ++node) {
    const Vec3i at = nodes.at(node);
    if ((at.x & 1) + 2 * (at.y & 1) == colour) out.push_back(node);
  }
  return out;
}

void note_farthest(std::atomic<int32_t>& farthest, const Vec3i& d) {
  const int32_t far = std::max(magnitude(d.x), magnitude(d.y));
  int32_t before = farthest.load();
  while (far > before && !farthest.compare_exchange_weak(before, far)) {
  }
}

void sweep_colour(const FlexibleJob& job, const TapTable& taps, const uint64_t* terms, int colour,
                  Sweep& sweep, const Context& context) {
  const std::vector<int32_t> nodes = nodes_of_colour(*job.nodes, colour);
  const auto count = static_cast<int64_t>(nodes.size());
  const int64_t all = job.nodes->blocks();
  parallel_for(context.threads, job.frames * count, 1, [&](int64_t begin, int64_t end) {
    NodeSearch search(job, taps, terms);
    for (int64_t i = begin; i < end; ++i) {
      const auto frame = static_cast<size_t>(i / count);
      const int32_t node = nodes[static_cast<size_t>(i % count)];
      BlockMatch& match = job.matches[i / count * all + node];
      const bool stays = (match.flags & (kBlockOutside | kBlockUnreliable)) != 0;
      if (sweep.moves[frame] == 0 || stays) continue;
      Vec3i* vectors = job.vectors + i / count * all;
      search.search(i / count, node, vectors, match);
      if ((match.flags & kBlockUnreliable) == 0) {
        note_farthest(sweep.farthest[frame], match.vector - vectors[node]);
        vectors[node] = match.vector;
      }
    }
  });
}

}  // namespace

BlockGrid make_node_grid(const Vec3i& size, int32_t pitch) {
  return make_block_grid(size, {1, 1, 1}, {pitch, pitch, pitch});
}

void flexible_shift(const FlexibleJob& job, const Context& context) {
  if (job.nodes->image.z > 1) {
    throw UsageError("flexible pixel shift is for pictures; use --method block for volumes");
  }
  const TapTable taps = taps_of(job.config->subpixel);
  std::vector<uint64_t> terms;
  if (job.config->metric == Metric::kEntropy) {
    const Vec3i& size = job.nodes->image;
    terms = entropy_terms(static_cast<uint32_t>(
        std::min<int64_t>(static_cast<int64_t>(size.x) * size.y, int64_t{4} * 255 * 255)));
  }
  for (int64_t i = 0; i < job.frames * job.nodes->blocks(); ++i) {
    job.matches[i].vector = job.matches[i].found = job.vectors[i];
  }
  const auto frames = static_cast<size_t>(job.frames);
  Sweep sweep{std::vector<uint8_t>(frames, 1), std::vector<std::atomic<int32_t>>(frames)};
  for (int i = 0; i < job.config->sweeps; ++i) {
    for (auto& farthest : sweep.farthest) farthest = 0;
    for (int colour = 0; colour < 4; ++colour) {
      sweep_colour(job, taps, terms.empty() ? nullptr : terms.data(), colour, sweep, context);
    }
    for (size_t f = 0; f < frames; ++f) {
      if (sweep.farthest[f] < kSettled) sweep.moves[f] = 0;
    }
  }
}

}  // namespace larch::dsa
