// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/dsa/field/flexible_math.h"
#include "larch/dsa/field/flexible_shift.h"
#include "larch/dsa/match/score_lattice.h"

namespace larch::dsa::cpu {
namespace {

/// A pixel around a node that counts.
struct CountedPixel {
  FollowingPixel follows{};
  int32_t x = 0, y = 0;
  uint16_t contrast = 0;
};

/// The search of one node, a Block of search_math.h. One per thread.
class NodeSearch {
 public:
  NodeSearch(const FlexibleJob& job, const TapTable& taps, const uint64_t* terms)
      : job_(job),
        plan_(plan_of_nodes(*job.config, kFlexibleRange)),
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
    const Found found = search_node(*this, plan_, ranking_);
    note_found(found, start_, match);
    evaluate(&found.units, 1, &match.best);
    match.overflow = overflow_;
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
  void gather(int64_t frame, int32_t node, const Vec3i* vectors) {
    const Vec3i at = job_.nodes->at(node);
    const FieldView view = places_.view(vectors, BorderField::kClamp);
    const Followers in_x = followers_of(view.axes[0], at.x),
                    in_y = followers_of(view.axes[1], at.y);
    columns_.clear();
    for (int32_t x = in_x.first; x <= in_x.last; ++x) columns_.push_back(node_column(view, at, x));
    const Vec3i& size = job_.nodes->image;
    pixels_.clear();
    support_ = static_cast<int64_t>(in_x.count()) * in_y.count();
    for (int32_t y = in_y.first; y <= in_y.last; ++y) {
      const NodeRow row = node_row(view, at, y);
      const uint16_t* contrast =
          job_.contrast + (frame * size.y + y) * static_cast<int64_t>(size.x) + in_x.first;
      for (int32_t i = 0; i < in_x.count(); ++i) {
        if (contrast[i] == kNoSample) continue;
        pixels_.push_back({following_pixel(row, columns_[static_cast<size_t>(i)]), in_x.first + i,
                           y, contrast[i]});
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
    if (differences.empty()) return 0;
    const auto middle =
        differences.begin() + static_cast<std::ptrdiff_t>((differences.size() - 1) / 2);
    std::nth_element(differences.begin(), middle, differences.end());
    return *middle;
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

  const FlexibleJob& job_;
  const SearchPlan plan_;
  const FieldGrid places_;
  const MaskView mask_;
  const uint64_t* terms_;  // null: EHD
  Vec3i start_{};
  int64_t support_ = 0;
  std::vector<NodeColumn> columns_{};
  std::vector<CountedPixel> pixels_{};
  Ranking ranking_{};
  int32_t mu_ = 0, shift_ = 0;
  uint32_t overflow_ = 0;  // of the displacement that was evaluated last
  std::vector<uint32_t> counts_;
  ScoreLattice lattice_{};
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

void move_colour(const FlexibleJob& job, const TapTable& taps, const uint64_t* terms, int colour,
                 const Context& context) {
  const std::vector<int32_t> nodes = nodes_of_colour(*job.nodes, colour);
  const auto count = static_cast<int64_t>(nodes.size());
  const int64_t all = job.nodes->blocks();
  parallel_for(context.threads, job.frames * count, 1, [&](int64_t begin, int64_t end) {
    NodeSearch search(job, taps, terms);
    for (int64_t i = begin; i < end; ++i) {
      const int32_t node = nodes[static_cast<size_t>(i % count)];
      BlockMatch& match = job.matches[i / count * all + node];
      if ((match.flags & (kBlockOutside | kBlockUnreliable)) != 0) continue;
      Vec3i* vectors = job.vectors + i / count * all;
      search.search(i / count, node, vectors, match);
      if ((match.flags & kBlockUnreliable) == 0) vectors[node] = match.vector;
    }
  });
}

}  // namespace

void flexible_shift(const FlexibleJob& job, const uint64_t* terms, const Context& context) {
  const TapTable taps = taps_of(job.config->subpixel);
  for (int64_t i = 0; i < job.frames * job.nodes->blocks(); ++i) {
    job.matches[i].vector = job.matches[i].found = job.vectors[i];
  }
  for (int colour = 0; colour < kNodeColours; ++colour) {
    move_colour(job, taps, terms, colour, context);
  }
}

}  // namespace larch::dsa::cpu
