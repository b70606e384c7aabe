// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "cuda/dsa/thread_group.cuh"
#include "larch/core/buffer.h"
#include "larch/dsa/field/flexible_math.h"
#include "larch/dsa/field/flexible_shift.h"

// A block of threads moves one node: all frames and nodes of a colour are one launch.
namespace larch::dsa::cuda {
namespace {

/// Warps of a block of threads.
constexpr int kNodeWarps = 8;
constexpr int kNodeThreads = 32 * kNodeWarps;

/// What all nodes share; pointers are of the device.
struct NodeArguments {
  FieldView field{};  ///< of the nodes; vectors of the first frame
  Vec3i* vectors = nullptr;
  BlockMatch* matches = nullptr;
  MaskView mask{};  ///< without taps
  TapTable taps{};
  const uint16_t* contrast = nullptr;
  const int32_t* bin_shift = nullptr;
  SearchPlan plan{};
  Ranking ranking{};  ///< without least_count
  Overflow overflow = Overflow::kWrap;
  int32_t nodes = 0;  ///< of a frame
};

/// Words of shared memory where its parts begin; the histograms come first.
struct NodePlan {
  uint32_t rows = 0, columns = 0, similarities = 0, words = 0;
};
constexpr int kNodeHistograms = 2;  ///< conjugate directions ask for two displacements at once
constexpr int kLatticePoints = kLatticeSide * kLatticeSide;
constexpr int64_t kUnknownPoint = INT64_MIN + 1;  ///< no similarity is; see kNoSimilarity

using NodeGroup = ThreadGroup<kNodeWarps>;
using NodeSums = GroupSums<kNodeWarps>;

/// The search of one node by a block of threads, a Block of search_math.h.
class NodeSearch {
 public:
  __device__ NodeSearch(const NodeArguments& a, const NodePlan& plan, NodeSums& sums)
      : a_(a),
        mask_(a.mask),
        group_(sums),
        rows_(reinterpret_cast<NodeRow*>(shared_words + plan.rows)),
        columns_(reinterpret_cast<NodeColumn*>(shared_words + plan.columns)),
        similarities_(reinterpret_cast<int64_t*>(shared_words + plan.similarities)) {
    mask_.taps = &a.taps;
  }

  /// Moves a node from the vectors of its frame and notes what was found.
  __device__ void search(int32_t frame, const Vec3i& at, BlockMatch& match) {
    const int64_t first = static_cast<int64_t>(frame) * a_.nodes;
    FieldView field = a_.field;
    field.vectors += first;
    start_ = field.vectors[at.y * field.axes[0].count + at.x];
    find_pixels(frame, at, field);
    match.vector = match.found = start_;
    match.counted = counted();
    if (int64_t{match.counted} * 4 < static_cast<int64_t>(x_.count()) * y_.count()) {
      match.flags |= kBlockOutside;
      return;
    }
    ranking_ = a_.ranking;
    ranking_.least_count = (match.counted + 1) / 2;
    shift_ = a_.bin_shift[frame];
    const int32_t median = group_.median_difference([&](const auto& sink) { visit(start_, sink); });
    mu_ = rounded_to_bins(median, shift_);
    const Found found = search_node(*this, a_.plan, ranking_);
    note_found(found, start_, match);
    uint32_t beyond = 0;
    count_bins(found.units, 0, &beyond);
    group_.take_scores(1, ranking_, &match.best);
    match.overflow = group_.sum(beyond);
  }

  __device__ __noinline__ void evaluate(const Vec3i* units, int count, Score* scores) {
    for (int i = 0; i < count; ++i) count_bins(units[i], i, nullptr);
    group_.take_scores(count, ranking_, scores);
  }
  __device__ __noinline__ void fill(const Vec3i& origin, int x0, int y0, int x1, int y1) {
    for (int y = y0; y <= y1; ++y) {
      for (int x = x0; x <= x1; ++x) {
        if (similarities_[place_of(x, y)] != kUnknownPoint) continue;
        const Vec3i units = origin + Vec3i{x, y, 0} * kTenth;
        Score score;
        evaluate(&units, 1, &score);
        if (threadIdx.x == 0) similarities_[place_of(x, y)] = ranking_.similarity(score);
        __syncthreads();
        ++filled_;
      }
    }
  }
  __device__ int64_t similarity(int x, int y) const { return similarities_[place_of(x, y)]; }
  /// Nodes are searched by SubSearch::kCds or kFast, which ask for no scores of the lattice.
  __device__ Score score(int, int) const { return {}; }
  __device__ uint32_t filled() const { return filled_; }

 private:
  __device__ static int place_of(int x, int y) {
    return (y + kLatticeReach) * kLatticeSide + x + kLatticeReach;
  }

  /// What rows and columns of the pixels that follow the node share.
  __device__ void find_pixels(int32_t frame, const Vec3i& at, const FieldView& field) {
    x_ = followers_of(field.axes[0], at.x);
    y_ = followers_of(field.axes[1], at.y);
    const Vec3i& size = mask_.size;
    contrast_ = a_.contrast + static_cast<int64_t>(frame) * size.x * size.y;
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < y_.count(); i += kNodeThreads) {
      rows_[i] = node_row(field, at, y_.first + i);
    }
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < x_.count(); i += kNodeThreads) {
      columns_[i] = node_column(field, at, x_.first + i);
    }
    for (int i = static_cast<int>(threadIdx.x); i < kLatticePoints; i += kNodeThreads) {
      similarities_[i] = kUnknownPoint;
    }
    __syncthreads();
  }

  /// Calls take(row, column, contrast) for this thread's pixels that count.
  template <class Take>
  __device__ void for_pixels(const Take& take) const {
    // By value here and below: what is counted is written to memory, after which members would be
    // read anew.
    const int32_t rows = y_.count(), columns = x_.count(), width = mask_.size.x;
    const uint16_t* first = contrast_ + static_cast<int64_t>(y_.first) * width + x_.first;
    for (int32_t j = static_cast<int32_t>(threadIdx.x / 32); j < rows; j += kNodeWarps) {
      const uint16_t* row = first + static_cast<int64_t>(j) * width;
      for (int32_t i = static_cast<int32_t>(threadIdx.x % 32); i < columns; i += 32) {
        if (row[i] != kNoSample) take(j, i, row[i]);
      }
    }
  }
  __device__ uint32_t counted() const {
    uint32_t own = 0;
    for_pixels([&](int32_t, int32_t, uint16_t) { ++own; });
    return group_.sum(own);
  }

  /// Calls sink(contrast, mask) for this thread's pixels; the second of each pair does not count.
  template <class Sink>
  __device__ void visit(const Vec3i& vector, const Sink& sink) const {
    const MaskView mask = mask_;
    const NodeRow* rows = rows_;
    const NodeColumn* columns = columns_;
    const int32_t x = x_.first, y = y_.first, vector_x = vector.x, vector_y = vector.y;
    for_pixels([=](int32_t row, int32_t column, uint16_t contrast) {
      const FollowingPixel pixel = following_pixel(rows[row], columns[column]);
      sink(contrast | 0xffff0000u,
           mask_below(mask, pixel, x + column, y + row, {vector_x, vector_y, 0}));
    });
  }
  __device__ void count_bins(const Vec3i& units, int histogram, uint32_t* beyond) const {
    const auto word = static_cast<uint32_t>(histogram * kBins);
    visit(start_ + q16_of(units), CountScored{{word, mu_, shift_, a_.overflow}, beyond});
  }

  const NodeArguments& a_;
  MaskView mask_;
  NodeGroup group_;
  NodeRow* rows_;
  NodeColumn* columns_;
  int64_t* similarities_;
  const uint16_t* contrast_ = nullptr;  // of the frame
  Followers x_{}, y_{};
  Vec3i start_{};
  Ranking ranking_{};
  int32_t mu_ = 0, shift_ = 0;
  uint32_t filled_ = 0;
};

/// Nodes (first + 2 i, first + 2 j) of all frames.
struct ColourNodes {
  int32_t first_x = 0, first_y = 0, count_x = 0, count_y = 0;
};

__global__ void __launch_bounds__(kNodeThreads, 3)
    node_kernel(const __grid_constant__ NodeArguments a, const __grid_constant__ NodePlan plan,
                ColourNodes colour) {
  __shared__ NodeSums sums;
  const auto count = static_cast<uint32_t>(colour.count_x * colour.count_y);
  const auto frame = static_cast<int32_t>(blockIdx.x / count);
  const auto item = static_cast<int32_t>(blockIdx.x % count);
  const Vec3i at{colour.first_x + 2 * (item % colour.count_x),
                 colour.first_y + 2 * (item / colour.count_x), 0};
  const int64_t index = static_cast<int64_t>(frame) * a.nodes + at.y * a.field.axes[0].count + at.x;
  BlockMatch match = a.matches[index];
  // The same for all threads of the block.
  if ((match.flags & (kBlockOutside | kBlockUnreliable)) != 0) return;
  NodeGroup(sums).clear(kNodeHistograms);
  NodeSearch search(a, plan, sums);
  search.search(frame, at, match);
  if (threadIdx.x != 0) return;
  a.matches[index] = match;
  if ((match.flags & kBlockUnreliable) == 0) a.vectors[index] = match.vector;
}

__global__ void begin_kernel(BlockMatch* matches, const Vec3i* vectors, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kNodeThreads + threadIdx.x;
  if (i < count) matches[i].vector = matches[i].found = vectors[i];
}

/// The most pixels along an axis that follow a node.
int32_t most_followers(const std::vector<int32_t>& starts) {
  int32_t most = 1;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int32_t first = i == 0 ? starts[i] : starts[i - 1] + 1;
    const int32_t last = i + 1 == starts.size() ? starts[i] : starts[i + 1] - 1;
    most = std::max(most, last - first + 1);
  }
  return most;
}

NodePlan node_plan(const BlockGrid& nodes) {
  static_assert(sizeof(NodeRow) % 8 == 0 && sizeof(NodeColumn) % 8 == 0);
  NodePlan plan;
  plan.rows = kNodeHistograms * kBins;
  plan.columns =
      plan.rows + static_cast<uint32_t>(most_followers(nodes.starts[1]) * sizeof(NodeRow) / 4);
  plan.similarities = plan.columns + static_cast<uint32_t>(most_followers(nodes.starts[0]) *
                                                           sizeof(NodeColumn) / 4);
  plan.words = plan.similarities + 2 * kLatticePoints;
  return plan;
}

uint32_t groups_of(int64_t items) {
  return static_cast<uint32_t>((items + kNodeThreads - 1) / kNodeThreads);
}

}  // namespace

void flexible_shift(const FlexibleJob& job, const uint64_t* terms, const Context& context) {
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  if (job.frames == 0) return;
  const BlockGrid& nodes = *job.nodes;
  const FieldGrid places = make_field_grid(nodes, device);
  NodeArguments a;
  a.field = places.view(job.vectors, BorderField::kClamp);
  a.vectors = job.vectors;
  a.matches = job.matches;
  a.mask = {job.mask, nodes.image, nullptr, job.config->border == Border::kClamp,
            skips_weightless(job.config->subpixel)};
  a.taps = taps_of(job.config->subpixel);
  a.contrast = job.contrast;
  a.bin_shift = job.bin_shift;
  a.plan = plan_of_nodes(*job.config, kFlexibleRange);
  a.ranking.metric = job.config->metric;
  a.ranking.terms = terms;
  a.overflow = job.config->overflow;
  a.nodes = nodes.blocks();
  const NodePlan plan = node_plan(nodes);
  const size_t bytes = plan.words * sizeof(uint32_t);
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(node_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(bytes)));
  const cudaStream_t stream = larch::cuda::stream_of(device);
  const int64_t all = job.frames * a.nodes;
  begin_kernel<<<groups_of(all), kNodeThreads, 0, stream>>>(job.matches, job.vectors, all);
  larch::cuda::check_launch("dsa begin_kernel");
  for (int colour = 0; colour < kNodeColours; ++colour) {
    const int32_t x = colour & 1, y = colour >> 1;
    const ColourNodes own{x, y, (nodes.count.x - x + 1) / 2, (nodes.count.y - y + 1) / 2};
    const int64_t blocks = job.frames * own.count_x * own.count_y;
    if (blocks == 0) continue;
    node_kernel<<<static_cast<uint32_t>(blocks), kNodeThreads, bytes, stream>>>(a, plan, own);
    larch::cuda::check_launch("dsa node_kernel");
  }
}

}  // namespace larch::dsa::cuda
