// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/experts/train.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/random_math.h"
#include "larch/data/pose.h"
#include "larch/data/symmetric_matrix.h"
#include "larch/filters/components.h"
#include "larch/pose/mean_rotation.h"

namespace larch::experts {
namespace {

constexpr double kPriorSamples = 12;  ///< by so many mean samples each node is pulled to all
constexpr double kRidge = 0.01;       ///< of the mean of the diagonal
constexpr double kConstantRidge = 1e-6;
constexpr int64_t kMostSamples = 1 << 22;
constexpr int64_t kMostOfCase = 1 << 15;
constexpr int64_t kBatchBytes = int64_t{1} << 29;
constexpr double kDegree = 3.141592653589793 / 180;
constexpr double kMostScatterDeg = 30;
constexpr uint32_t kMeanStride = 16;  ///< one of so many samples tells the mean

constexpr Dispatch<void(const SumsJob&, const Context&)> kSum{"experts::sum", cpu::sum,
                                                              LARCH_CUDA_FN(cuda::sum)};

/// Finds the mean axes, and whether the axes of the structures turn together.
void set_axes(std::vector<Frame>& frames, Experts& experts, const Context& context) {
  Mat3 mean = frames[0].axes;
  if (determinant(mean) < 0) {
    for (auto& row : mean.m) row[2] = -row[2];
  }
  for (int round = 0; round < 4; ++round) {
    pose::RotationSum sum;
    for (Frame& frame : frames) {
      align(frame, mean);
      sum.add(quaternion_of(frame.axes), 1);
    }
    experts.mean_axes = pose::mean_rotation(sum);
    mean = rotation_matrix(experts.mean_axes);
  }
  double squares = 0;
  for (Frame& frame : frames) {
    align(frame, mean);
    const double angle = angle_between(quaternion_of(frame.axes), experts.mean_axes);
    squares += angle * angle;
  }
  const double scatter = std::sqrt(squares / static_cast<double>(frames.size())) / kDegree;
  experts.turns = scatter <= kMostScatterDeg ? 1 : 0;
  context.info("experts: the axes of the structure scatter by " +
               std::to_string(std::lround(scatter)) + " degrees" +
               (experts.turns != 0 ? "" : "; only its centre and size count"));
}

/// Refers to slices of a case whose channels are made together.
struct Slab {
  const TrainingCase* of = nullptr;
  Vec3i lo{}, hi{};
  Piece piece{};  ///< without channels, unless its portion is on the device
};

/// Holds what experts learn from. Of the slabs those of one portion are on the device at a time.
struct Material {
  int steps = 0;
  std::vector<Slab> slabs{};
  std::vector<uint32_t> first_sample{};  ///< of each slab, and the end
  std::vector<size_t> portions{};        ///< the first slab of each, and the end
  int64_t batch_bytes = 0;               ///< for sums and their shares
  std::vector<Sample> samples{};         ///< slab by slab
  std::vector<Corners> corners{};        ///< by sample
  Buffer<Channels> channels{};           ///< by slab, null for those of other portions
  Buffer<Sample> on_device{};
  std::optional<size_t> resident{};  ///< the portion

  int fold_of(size_t sample) const { return slabs[samples[sample].of_slab].of->fold; }
};

/// Brings a portion to the device, in place of the one that is there.
void load(size_t portion, Material& material, const Context& context) {
  if (material.resident == portion) return;
  for (Slab& slab : material.slabs) slab.piece = piece_around(*slab.of->image, slab.lo, slab.hi);
  for (size_t s = material.portions[portion]; s < material.portions[portion + 1]; ++s) {
    Slab& slab = material.slabs[s];
    slab.piece = make_piece(*slab.of->image, material.steps, slab.lo, slab.hi, context);
  }
  std::vector<Channels> channels;
  for (const Slab& slab : material.slabs) channels.push_back(slab.piece.channels());
  material.channels = {context.device, channels};
  material.resident = portion;
}

/// Adds a slab with the voxels of the band of its case; of many those of some hashes. `placement`:
/// of indices from `origin` on.
void add_slab(Slab slab, uint64_t number_of_case, const Placement& placement, const Vec3i& origin,
              const Volume<uint8_t>& band, uint64_t every, Material& material) {
  const TrainingCase& one = *slab.of;
  slab.piece = piece_around(*one.image, slab.lo, slab.hi);
  const Grid grid{.size = slab.piece.size};
  for_piece(slab.lo, slab.hi - slab.lo + Vec3i{1, 1, 1}, [&](size_t, const Vec3i& at) {
    const int8_t part = one.part(at);
    if (band(at) == 0 || part == TrainingCase::kUnused) return;
    const auto voxel = static_cast<uint64_t>(band.grid().linear(at));
    if (every > 1 && hash64(0, number_of_case, voxel) % every != 0) return;
    material.samples.push_back({static_cast<uint32_t>(material.slabs.size()),
                                static_cast<int32_t>(grid.linear(at - slab.piece.origin)), part});
    material.corners.push_back(placement.corners(at - origin));
  });
  material.slabs.push_back(std::move(slab));
  material.first_sample.push_back(static_cast<uint32_t>(material.samples.size()));
}

/// Cuts the slabs into portions. There is one if all fit, beside what the largest slab takes while
/// it is made and an eighth of the memory for sums. Otherwise each batch of sums loads all
/// portions, and the larger share is for the sums.
void plan_portions(int64_t memory_bytes, Material& material) {
  const auto bytes_of = [&](const Slab& slab) {
    return kBytesOfPiece * slab.piece.channels().voxels();
  };
  int64_t largest = 0, all = 0;
  for (const Slab& slab : material.slabs) {
    largest = std::max(largest, slab.piece.channels().voxels());
    all += bytes_of(slab);
  }
  const int64_t left = memory_bytes - largest * bytes_per_voxel(0), eighth = memory_bytes / 8;
  const bool all_fit = all <= left - eighth;
  material.batch_bytes = all_fit ? std::min(left - all, kBatchBytes) : left - eighth;
  int64_t bytes = 0;
  for (size_t s = 0; s < material.slabs.size(); ++s) {
    const int64_t more = bytes_of(material.slabs[s]);
    if (s == 0 || (!all_fit && bytes + more > eighth)) {
      material.portions.push_back(s);
      bytes = 0;
    }
    bytes += more;
  }
  material.portions.push_back(material.slabs.size());
}

Material make_material(const std::vector<const TrainingCase*>& cases,
                       const std::vector<Frame>& frames, bool turns, int steps,
                       int64_t memory_bytes, const Context& context) {
  Material material{.steps = steps, .first_sample = {0}};
  const int64_t most = std::min(kMostOfCase, kMostSamples / std::ssize(cases) + 1);
  for (size_t i = 0; i < cases.size(); ++i) {
    const TrainingCase& one = *cases[i];
    const Volume<uint8_t> band = band_of(one.probability);
    const auto [lo, hi] = filters::box_of(band, [](uint8_t b) { return b != 0; });
    const Vec3i origin = piece_around(*one.image, lo, hi).origin;
    const Placement placement = placement_of(frames[i], turns, one.image->grid(), origin);
    const auto every = static_cast<uint64_t>((std::ranges::count(band, 1) + most - 1) / most);
    const int64_t slices = slices_at_once(lo, hi, 0, 0, memory_bytes, 3);
    for (int64_t z = lo.z; z <= hi.z; z += slices) {
      const auto last = static_cast<int32_t>(std::min<int64_t>(z + slices - 1, hi.z));
      add_slab({&one, {lo.x, lo.y, static_cast<int32_t>(z)}, {hi.x, hi.y, last}}, i, placement,
               origin, band, every, material);
    }
  }
  plan_portions(memory_bytes, material);
  material.on_device = {context.device, material.samples};
  return material;
}

/// Returns the sums of bins. `for_shares(i, use)` calls use(bin, weight) for those of sample i.
/// They are integers, so that portion after portion may be added.
template <class ForShares>
std::vector<int64_t> sums_of_bins(Material& material, size_t bins, int parts,
                                  const ForShares& for_shares, const Context& context) {
  const Device& device = context.device;
  Buffer<int64_t> sums(device, bins * static_cast<size_t>(sums_of(parts)));
  sums.set_zero();
  for (size_t p = 0; p + 1 < material.portions.size(); ++p) {
    context.throw_if_stopped("stopped while experts were trained");
    const uint32_t begin = material.first_sample[material.portions[p]],
                   end = material.first_sample[material.portions[p + 1]];
    std::vector<int64_t> first(bins + 1, 0);
    for (uint32_t i = begin; i < end; ++i) {
      for_shares(i, [&](size_t bin, int32_t) { ++first[bin + 1]; });
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<Share> shares(static_cast<size_t>(first.back()));
    if (shares.empty()) continue;
    std::vector<int64_t> next = first;
    for (uint32_t i = begin; i < end; ++i) {
      for_shares(i, [&](size_t bin, int32_t weight) {
        shares[static_cast<size_t>(next[bin]++)] = {i, weight};
      });
    }
    load(p, material, context);
    const Buffer<Share> shares_there(device, shares);
    const Buffer<int64_t> first_there(device, first);
    kSum(device,
         SumsJob{material.channels.data(), material.on_device.data(), shares_there.data(),
                 first_there.data(), static_cast<int32_t>(bins), parts, sums.data()},
         context);
  }
  return sums.to_vector();
}

/// Holds the sums of the samples of each fold, in doubles.
using FoldSums = std::vector<std::vector<double>>;

/// Returns sums over some samples of each fold, with their weight at the end.
FoldSums mean_sums(Material& material, int folds, int parts, const Context& context) {
  constexpr size_t kBinsOfFold = 32;
  const size_t bins = static_cast<size_t>(folds) * kBinsOfFold;
  const auto for_shares = [&](uint32_t i, const auto& use) {
    if (i % kMeanStride != 0) return;
    const auto fold = static_cast<size_t>(material.fold_of(i));
    use(fold * kBinsOfFold + i / kMeanStride % kBinsOfFold, kOne);
  };
  const auto sums = sums_of_bins(material, bins, parts, for_shares, context);
  const auto width = static_cast<size_t>(sums_of(parts));
  FoldSums means(static_cast<size_t>(folds), std::vector<double>(width + 1, 0));
  for (size_t bin = 0; bin < bins; ++bin) {
    std::vector<double>& mean = means[bin / kBinsOfFold];
    for (size_t k = 0; k < width; ++k) mean[k] += static_cast<double>(sums[bin * width + k]);
    // The first sum is that of the squares of a constant.
    mean[width] += static_cast<double>(sums[bin * width]) / (kConstant * kConstant);
  }
  return means;
}

/// Solves a ridge regression that is pulled to the mean:
/// (G + n mean(G) + lambda I) beta = B + n mean(B), n = kPriorSamples.
struct Regression {
  int parts;
  std::vector<double> mean;  ///< of a sample: G, then B

  explicit Regression(int count, const FoldSums& folds, int without) : parts(count) {
    mean.assign(folds[0].size(), 0);
    for (int fold = 0; fold < std::ssize(folds); ++fold) {
      if (fold == without) continue;
      for (size_t k = 0; k < mean.size(); ++k) mean[k] += folds[static_cast<size_t>(fold)][k];
    }
    for (size_t k = 0; k + 1 < mean.size(); ++k) mean[k] /= std::max(mean.back(), 1.0);
  }

  /// `sums`: of the samples of the node, by weight.
  void solve_node(const std::vector<double>& sums, int32_t* beta) const {
    std::vector<double> matrix(size_t{kFeatures} * kFeatures, 0);
    const auto value = [&](size_t k) { return sums[k] / kOne + kPriorSamples * mean[k]; };
    double diagonal = 0;
    for (size_t i = 0, k = 0; i < kFeatures; ++i) {
      for (size_t j = 0; j <= i; ++j, ++k) matrix[i * kFeatures + j] = value(k);
      if (i > 0) diagonal += matrix[i * kFeatures + i];
    }
    const double lambda = kRidge * diagonal / (kFeatures - 1);
    for (size_t i = 0; i < kFeatures; ++i) {
      matrix[i * kFeatures + i] += i == 0 ? kConstantRidge * lambda : lambda;
    }
    factorise(matrix, kFeatures);
    for (int part = 0; part < parts; ++part) {
      std::vector<double> b(kFeatures);
      for (size_t i = 0; i < kFeatures; ++i) {
        b[i] = value(kTriangle + static_cast<size_t>(part) * kFeatures + i);
      }
      solve(matrix, b);
      for (const double one : b) {
        const double scaled =
            std::clamp(one * (1 << kBetaBits), -double(kLargestBeta), double(kLargestBeta));
        *beta++ = static_cast<int32_t>(std::llround(scaled));
      }
    }
  }
};

/// Holds the nodes that occur.
struct Nodes {
  std::vector<int32_t> entries{};  ///< by node: its number from 1 on, or 0
  std::vector<int32_t> nodes{};    ///< by entry - 1
  std::vector<int64_t> shares{};   ///< the same: how many
};
Nodes nodes_of(const Material& material) {
  std::vector<int64_t> count(kNodeCount, 0);
  for (const Corners& corners : material.corners) {
    for (int c = 0; c < 8; ++c) {
      if (corners.weight_of(c) != 0) ++count[static_cast<size_t>(corners.node_of(c))];
    }
  }
  Nodes all;
  for (int32_t node = 0; node < kNodeCount; ++node) {
    const int64_t shares = count[static_cast<size_t>(node)];
    if (shares > 0) all.nodes.push_back(node), all.shares.push_back(shares);
    all.entries.push_back(shares > 0 ? static_cast<int32_t>(all.nodes.size()) : 0);
  }
  return all;
}

/// Returns the sums at the nodes from `begin` to `end`, by node and fold.
std::vector<int64_t> sums_of_nodes(Material& material, const Nodes& all, size_t begin, size_t end,
                                   int folds, int parts, const Context& context) {
  const int32_t lowest = all.nodes[begin], highest = all.nodes[end - 1];
  const auto for_shares = [&](uint32_t i, const auto& use) {
    const Corners& corners = material.corners[i];
    if (corners.node > highest || corners.node_of(7) < lowest) return;
    for (int c = 0; c < 8; ++c) {
      const int32_t weight = corners.weight_of(c), node = corners.node_of(c);
      if (weight == 0 || node < lowest || node > highest) continue;
      const size_t entry = static_cast<size_t>(all.entries[static_cast<size_t>(node)]) - 1 - begin;
      use(entry * static_cast<size_t>(folds) + static_cast<size_t>(material.fold_of(i)), weight);
    }
  };
  return sums_of_bins(material, (end - begin) * static_cast<size_t>(folds), parts, for_shares,
                      context);
}

/// Solves the regressions of all nodes; the last of `out` is of all folds.
void solve_nodes(Material& material, int folds, const std::vector<Regression>& regressions,
                 std::vector<Experts>& out, const Context& context) {
  const Nodes all = nodes_of(material);
  const int parts = regressions[0].parts;
  const auto width = static_cast<size_t>(sums_of(parts));
  const size_t row = static_cast<size_t>(parts) * kFeatures;
  for (size_t m = 0; m < out.size(); ++m) {
    out[m].entries = all.entries;
    out[m].beta.resize((all.nodes.size() + 1) * row);
    regressions[m].solve_node(std::vector<double>(width, 0), out[m].beta.data());
  }
  const int64_t bytes_of_node = 2 * 8 * folds * static_cast<int64_t>(width);  // here and there
  for (size_t begin = 0, end = 0; begin < all.nodes.size(); begin = end) {
    for (int64_t bytes = 0; end < all.nodes.size(); ++end) {
      bytes += bytes_of_node + 16 * all.shares[end];
      if (end > begin && bytes > material.batch_bytes) break;
    }
    const auto sums = sums_of_nodes(material, all, begin, end, folds, parts, context);
    parallel_for_each(context.threads, static_cast<int64_t>(end - begin), 1, [&](size_t n) {
      for (size_t m = 0; m < out.size(); ++m) {
        std::vector<double> of_node(width, 0);
        for (size_t fold = 0; fold < static_cast<size_t>(folds); ++fold) {
          if (fold == m) continue;  // the last one is none
          const int64_t* from = sums.data() + (n * static_cast<size_t>(folds) + fold) * width;
          for (size_t k = 0; k < width; ++k) of_node[k] += static_cast<double>(from[k]);
        }
        regressions[m].solve_node(of_node, out[m].beta.data() + (begin + n + 1) * row);
      }
    });
  }
}

}  // namespace

Trained train(const std::vector<TrainingCase>& cases, int parts, int folds, int steps,
              int64_t memory_bytes, const Context& context) {
  std::vector<Frame> frames;
  std::vector<const TrainingCase*> used;
  std::vector<int> count(static_cast<size_t>(folds), 0);
  for (const TrainingCase& one : cases) {
    if (const auto frame = frame_of(one.probability, context)) {
      frames.push_back(*frame);
      used.push_back(&one);
      ++count[static_cast<size_t>(one.fold)];
    }
  }
  if (std::ranges::count(count, 0) > 0) {
    throw InputError("experts: the model finds nothing in the cases that it did not learn from");
  }
  Experts start;
  start.parts = parts;
  set_axes(frames, start, context);
  Material material = make_material(used, frames, start.turns != 0, steps, memory_bytes, context);
  const FoldSums means = mean_sums(material, folds, parts, context);
  std::vector<Regression> regressions;
  for (int without = 0; without <= folds; ++without) {
    regressions.emplace_back(parts, means, without);
  }
  std::vector<Experts> out(static_cast<size_t>(folds) + 1, start);
  solve_nodes(material, folds, regressions, out, context);
  Trained trained{std::move(out.back()), {}};
  out.pop_back();
  trained.without_fold = std::move(out);
  return trained;
}

void cpu::sum(const SumsJob& job, const Context& context) {
  constexpr int64_t kBlock = 8;  // samples that are added to a row together
  const auto width = static_cast<int64_t>(sums_of(job.parts));
  parallel_for(context.threads, job.bins, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> f(kBlock * kFeatures), local(static_cast<size_t>(width));
    for (int64_t bin = begin; bin < end; ++bin) {
      int64_t* sums = job.sums + bin * width;
      for (int64_t from = job.first[bin]; from < job.first[bin + 1]; from += kExactSamples) {
        std::ranges::fill(local, 0.0);
        const int64_t to = std::min(from + kExactSamples, job.first[bin + 1]);
        for (int64_t block = from; block < to; block += kBlock) {
          double weight[kBlock] = {};
          for (int64_t k = 0; k < kBlock; ++k) {
            double* row = f.data() + k * kFeatures;
            if (block + k >= to) {
              std::fill_n(row, kFeatures, 0.0);
              continue;
            }
            const Share share = job.shares[block + k];
            const Sample sample = job.samples[share.sample];
            const Channels& channels = job.slabs[sample.of_slab];
            weight[k] = share.weight;
            channels.for_features(voxel_of(sample.voxel, channels.size),
                                  [&](int32_t i, int32_t value) { row[i] = value; });
            double* b = local.data() + kTriangle + int64_t{sample.part} * kFeatures;
            for (int i = 0; i < kFeatures && sample.part >= 0; ++i) b[i] += weight[k] * row[i];
          }
          double* g = local.data();
          for (int i = 0; i < kFeatures; g += ++i) {
            double a[kBlock];
            for (int64_t k = 0; k < kBlock; ++k)
              a[k] = weight[k] * f[static_cast<size_t>(k * kFeatures + i)];
            for (int j = 0; j <= i; ++j) {
              const double* x = f.data() + j;
              g[j] += ((a[0] * x[0] + a[1] * x[kFeatures]) +
                       (a[2] * x[2 * kFeatures] + a[3] * x[3 * kFeatures])) +
                      ((a[4] * x[4 * kFeatures] + a[5] * x[5 * kFeatures]) +
                       (a[6] * x[6 * kFeatures] + a[7] * x[7 * kFeatures]));
            }
          }
        }
        for (int64_t k = 0; k < width; ++k) {
          sums[k] += static_cast<int64_t>(local[static_cast<size_t>(k)]);
        }
      }
    }
  });
}

}  // namespace larch::experts
