// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/flexible_shift.h"

#include <algorithm>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/dsa/match/search_math.h"
#include "larch/dsa/sampling/sampling_math.h"
#include "larch/dsa/similarity/frame_scores.h"

namespace larch::dsa {
namespace {

/// Motion that is found on top of the vectors that nodes start with, pixels.
constexpr int kFlexibleRange = 2;
/// Rounds of conjugate directions, at most.
constexpr int kRounds = 4;
/// The fit of a quadratic takes 5 x 5 points two tenths apart: all pixels are sampled anew for each
/// vector, so that a whole lattice of fractions would take too long.
constexpr int kFitRadius = 2, kFitStride = 2;
/// Groups of nodes in which none sees another: even and odd along each axis.
constexpr int kNodeColours = 4;
/// Blocks, and so pitches, are at most so many pixels.
constexpr int64_t kMaximumPitch = 255;

/// Pixels first to last along an axis.
struct Followers {
  int32_t first = 0, last = 0;
  int32_t count() const { return last - first + 1; }
};
/// Returns those that follow node i: up to the nodes before and after it.
Followers followers_of(const FieldAxis& axis, int32_t i) {
  return {i == 0 ? axis.starts[0] : axis.starts[i - 1] + 1,
          i + 1 == axis.count ? axis.starts[i] : axis.starts[i + 1] - 1};
}

/// Weight of node i of an axis.
int32_t weight_of(const AxisWeights& weights, int32_t i) {
  return (weights.first == i ? weights.of_first : 0) +
         (weights.second == i ? weights.of_second : 0);
}

/// A pixel around a node: the field there but for the node's own part, times `whole`.
struct FollowingPixel {
  int64_t rest_x = 0, rest_y = 0;  ///< Q16 pixels times `whole`
  double inverse = 1;              ///< 1 / (whole 2^16)
  int64_t weight = 0, whole = 1;   ///< of the node
};
FollowingPixel following_pixel(const FieldView& field, const Vec3i& node, const AxisWeights& x,
                               const AxisWeights& y) {
  const FieldSum sum = field_sum(field, x, y, {});
  FollowingPixel pixel;
  pixel.weight = int64_t{weight_of(x, node.x)} * weight_of(y, node.y);
  const Vec3i& v = field.vectors[static_cast<int64_t>(node.y) * field.axes[0].count + node.x];
  pixel.rest_x = sum.of[0] - pixel.weight * v.x;
  pixel.rest_y = sum.of[1] - pixel.weight * v.y;
  pixel.whole = sum.whole;
  pixel.inverse = 1.0 / static_cast<double>(sum.whole << kVectorBits);
  return pixel;
}

/// Returns the mask below pixel (x, y) where the node's vector is `vector`, Q16.
uint16_t mask_below(const MaskView& mask, const FollowingPixel& pixel, int32_t x, int32_t y,
                    const Vec3i& vector) {
  const int64_t dx = pixel.rest_x + pixel.weight * vector.x;
  const int64_t dy = pixel.rest_y + pixel.weight * vector.y;
  return mask_sample(mask, x * kUnit + units_of_sum(dx, pixel.whole, pixel.inverse),
                     y * kUnit + units_of_sum(dy, pixel.whole, pixel.inverse));
}

/// A pixel around a node that counts.
struct CountedPixel {
  FollowingPixel follows{};
  int32_t x = 0, y = 0;
  uint16_t contrast = 0;
};

/// The search of one node's vector; displacements add to that it starts with. One per thread.
class NodeSearch {
 public:
  NodeSearch(const MatchJob& job, const TapTable& taps, const uint64_t* terms)
      : job_(job),
        places_(make_field_grid(*job.grid, Device::cpu())),
        mask_{job.mask, job.grid->image, &taps},
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
    ranking_ = {job_.config->metric, terms_, (match.counted + 1) / 2};
    shift_ = job_.bin_shift[frame];
    mu_ = rounded_to_bins(median_at_start(), shift_);
    const Found found = find();
    match.vector = match.found = start_ + found.vector;
    match.before = found.at_start;
    if (found.at_edge) match.flags |= kBlockAtEdge | kBlockUnreliable;
    match.best = one(found.units);
    match.overflow = overflow_;
  }

 private:
  Found find() {
    Score best;
    Found found = search_directions(
        {}, 2, kFlexibleRange, kRounds, ranking_, [this](const Vec3i& units) { return one(units); },
        best);
    const Vec3i origin = found.whole.at * kUnit, tenths = (found.units - origin) / kTenth;
    const auto similarity_at = [&](int x, int y) {
      return ranking_.similarity(one(origin + Vec3i{x, y, 0} * kTenth));
    };
    move_to_top(found, origin,
                fit_around(tenths.x, tenths.y, kFitRadius, kFitStride, similarity_at));
    return found;
  }

  void gather(int64_t frame, int32_t node, const Vec3i* vectors) {
    const Vec3i at = job_.grid->at(node);
    const FieldView view = places_.view(vectors, BorderField::kClamp);
    const Followers in_x = followers_of(view.axes[0], at.x),
                    in_y = followers_of(view.axes[1], at.y);
    columns_.clear();
    for (int32_t x = in_x.first; x <= in_x.last; ++x) {
      columns_.push_back(axis_weights(view.axes[0], view.border, x));
    }
    const Vec3i& size = job_.grid->image;
    pixels_.clear();
    support_ = static_cast<int64_t>(in_x.count()) * in_y.count();
    for (int32_t y = in_y.first; y <= in_y.last; ++y) {
      const AxisWeights row = axis_weights(view.axes[1], view.border, y);
      const uint16_t* contrast =
          job_.contrast + (frame * size.y + y) * static_cast<int64_t>(size.x) + in_x.first;
      for (int32_t i = 0; i < in_x.count(); ++i) {
        if (contrast[i] == kNoSample) continue;
        pixels_.push_back({following_pixel(view, at, columns_[static_cast<size_t>(i)], row),
                           in_x.first + i, y, contrast[i]});
      }
    }
  }

  uint16_t mask_at(const CountedPixel& pixel, const Vec3i& vector) const {
    return mask_below(mask_, pixel.follows, pixel.x, pixel.y, vector);
  }

  int32_t median_at_start() const {
    std::vector<int32_t> differences;
    for (const CountedPixel& pixel : pixels_) {
      const uint16_t mask = mask_at(pixel, start_);
      if (mask != kNoSample) differences.push_back(pixel.contrast - mask);
    }
    return lower_median(differences);
  }

  Score one(const Vec3i& units) {
    std::fill(counts_.begin(), counts_.end(), 0U);
    const Vec3i vector = start_ + q16_of(units);
    Score score;
    overflow_ = 0;
    for (const CountedPixel& pixel : pixels_) {
      const uint16_t mask = mask_at(pixel, vector);
      if (mask == kNoSample) continue;
      const int32_t number = bin_number(pixel.contrast - mask, mu_, shift_);
      overflow_ += is_overflow(number) ? 1 : 0;
      ++counts_[static_cast<size_t>(bin_index(number))];
      ++score.count;
    }
    for (const uint32_t h : counts_) {
      score.sum += terms_ == nullptr ? uint64_t{h} * h : terms_[h];
    }
    return score;
  }

  const MatchJob& job_;
  const FieldGrid places_;
  const MaskView mask_;
  const uint64_t* terms_;  // null: EHD
  Vec3i start_{};
  int64_t support_ = 0;
  std::vector<AxisWeights> columns_{};
  std::vector<CountedPixel> pixels_{};
  Ranking ranking_{};
  int32_t mu_ = 0, shift_ = 0;
  uint32_t overflow_ = 0;  // of the displacement that was evaluated last
  std::vector<uint32_t> counts_;
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

void move_colour(const MatchJob& job, std::span<Vec3i> all_vectors, const TapTable& taps,
                 const uint64_t* terms, int colour, const Context& context) {
  const std::vector<int32_t> nodes = nodes_of_colour(*job.grid, colour);
  const auto count = static_cast<int64_t>(nodes.size());
  const int64_t all = job.grid->blocks();
  parallel_for(context.threads, job.frames * count, 1, [&](int64_t begin, int64_t end) {
    NodeSearch search(job, taps, terms);
    for (int64_t i = begin; i < end; ++i) {
      const int32_t node = nodes[static_cast<size_t>(i % count)];
      BlockMatch& match = job.out[i / count * all + node];
      if ((match.flags & (kBlockOutside | kBlockUnreliable)) != 0) continue;
      Vec3i* vectors = all_vectors.data() + i / count * all;
      search.search(i / count, node, vectors, match);
      if ((match.flags & kBlockUnreliable) == 0) vectors[node] = match.vector;
    }
  });
}

}  // namespace

BlockGrid make_node_grid(const Vec3i& size, int32_t pitch) {
  return make_block_grid(size, {1, 1, 1}, {pitch, pitch, pitch});
}

void flexible_shift(const MatchJob& job, std::span<Vec3i> vectors, const Context& context) {
  const Vec3i& size = job.grid->image;
  std::vector<uint64_t> terms;
  if (job.config->metric == Metric::kEntropy) {
    const int64_t most =
        std::min(static_cast<int64_t>(size.x) * size.y, 4 * kMaximumPitch * kMaximumPitch);
    terms = entropy_terms(static_cast<uint32_t>(most));
  }
  const TapTable taps = gain_taps();
  for (size_t i = 0; i < vectors.size(); ++i) {
    job.out[i].vector = job.out[i].found = vectors[i];
  }
  for (int colour = 0; colour < kNodeColours; ++colour) {
    move_colour(job, vectors, taps, terms.empty() ? nullptr : terms.data(), colour, context);
  }
}

}  // namespace larch::dsa
