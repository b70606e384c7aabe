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
constexpr int64_t kBatchBytes = int64_t{1} << 28;
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

/// Holds what experts learn from, on a device.
struct Material {
  std::vector<Piece> pieces{};
  Buffer<Channels> cases{};
  std::vector<Sample> samples{};
  std::vector<int> fold{};         ///< by sample
  std::vector<Corners> corners{};  ///< the same
  Buffer<Sample> on_device{};
};

/// Adds the voxels of the band of a case; of many those of some hashes.
void add_samples(const TrainingCase& one, const Placement& placement, const Piece& piece,
                 const Volume<uint8_t>& band, int64_t most, Material& material) {
  const int64_t count = std::ranges::count(band, 1);
  const auto every = static_cast<uint64_t>((count + most - 1) / most);
  for (int64_t i = 0; i < piece.channels().voxels(); ++i) {
    const Vec3i at = voxel_of(i, piece.size);
    const Vec3i in_image = at + piece.origin;
    const int8_t part = one.part(in_image);
    if (band(in_image) == 0 || part == TrainingCase::kUnused) continue;
    const auto voxel = static_cast<uint64_t>(band.grid().linear(in_image));
    if (every > 1 && hash64(0, material.pieces.size(), voxel) % every != 0) continue;
    material.samples.push_back(
        {static_cast<uint32_t>(material.pieces.size()), static_cast<int32_t>(i), part});
    material.fold.push_back(one.fold);
    material.corners.push_back(placement.corners(at));
  }
}

Material load(const std::vector<const TrainingCase*>& cases, const std::vector<Frame>& frames,
              bool turns, int steps, const Context& context) {
  Material material;
  const int64_t most = std::min(kMostOfCase, kMostSamples / std::ssize(cases) + 1);
  std::vector<Channels> channels;
  for (size_t i = 0; i < cases.size(); ++i) {
    const TrainingCase& one = *cases[i];
    const Volume<uint8_t> band = band_of(one.probability);
    const auto [lo, hi] = filters::box_of(band, [](uint8_t b) { return b != 0; });
    Piece piece = make_piece(one.image, steps, lo, hi, context);
    add_samples(one, placement_of(frames[i], turns, one.image.grid(), piece.origin), piece, band,
                most, material);
    channels.push_back(piece.channels());
    material.pieces.push_back(std::move(piece));
  }
  material.cases = Buffer<Channels>(context.device, channels);
  material.on_device = Buffer<Sample>(context.device, material.samples);
  return material;
}

/// Returns the sums of bins, whose shares lie between `first`.
std::vector<int64_t> sums_of_bins(const Material& material, std::span<const Share> shares,
                                  std::vector<int64_t> first, int parts, const Context& context) {
  const auto bins = first.size() - 1;
  for (size_t bin = bins + 1; bin-- > 0;) first[bin] -= first[0];
  const Device& device = context.device;
  const Buffer<Share> shares_there(device, shares);
  const Buffer<int64_t> first_there(device, first);
  Buffer<int64_t> sums(device, bins * static_cast<size_t>(sums_of(parts)));
  kSum(device,
       SumsJob{material.cases.data(), material.on_device.data(), shares_there.data(),
               first_there.data(), static_cast<int32_t>(bins), parts, sums.data()},
       context);
  return sums.to_vector();
}

/// Holds the sums of the samples of each fold, in doubles.
using FoldSums = std::vector<std::vector<double>>;

/// Returns sums over some samples of each fold, with their weight at the end.
FoldSums mean_sums(const Material& material, int folds, int parts, const Context& context) {
  constexpr size_t kBinsOfFold = 32;
  std::vector<std::vector<Share>> bins(static_cast<size_t>(folds) * kBinsOfFold);
  for (uint32_t i = 0; i < material.samples.size(); i += kMeanStride) {
    const auto fold = static_cast<size_t>(material.fold[i]);
    bins[fold * kBinsOfFold + i / kMeanStride % kBinsOfFold].push_back({i, kOne});
  }
  std::vector<Share> shares;
  std::vector<int64_t> first{0};
  for (const auto& bin : bins) {
    shares.insert(shares.end(), bin.begin(), bin.end());
    first.push_back(std::ssize(shares));
  }
  const auto sums = sums_of_bins(material, shares, first, parts, context);
  const auto width = static_cast<size_t>(sums_of(parts));
  FoldSums means(static_cast<size_t>(folds), std::vector<double>(width + 1, 0));
  for (size_t bin = 0; bin < bins.size(); ++bin) {
    std::vector<double>& mean = means[bin / kBinsOfFold];
    for (size_t k = 0; k < width; ++k) mean[k] += static_cast<double>(sums[bin * width + k]);
    mean[width] += static_cast<double>(bins[bin].size()) * kOne;
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

/// Holds the shares of all samples at the nodes that occur, node by node and fold by fold.
struct Shares {
  std::vector<int32_t> entries{};  ///< by node
  std::vector<int64_t> first{};    ///< by (entry - 1) * folds + fold, and the end
  std::vector<Share> all{};
};
Shares share_out(const Material& material, int folds) {
  std::vector<int64_t> count(size_t{kNodeCount} * static_cast<size_t>(folds), 0);
  const auto for_shares = [&](const auto& use) {
    for (uint32_t i = 0; i < material.samples.size(); ++i) {
      for (int c = 0; c < 8; ++c) {
        const int32_t weight = material.corners[i].weight_of(c);
        if (weight == 0) continue;
        const int bin = material.corners[i].node_of(c) * folds + material.fold[i];
        use(static_cast<size_t>(bin), Share{i, weight});
      }
    }
  };
  for_shares([&](size_t bin, const Share&) { ++count[bin]; });
  Shares shares;
  std::vector<int64_t> next(count.size(), 0);
  int64_t sum = 0;
  int32_t entries = 0;
  for (int32_t node = 0; node < kNodeCount; ++node) {
    const auto begin = count.begin() + int64_t{node} * folds;
    const bool occurs = std::accumulate(begin, begin + folds, int64_t{0}) > 0;
    shares.entries.push_back(occurs ? ++entries : 0);
    for (int fold = 0; fold < folds && occurs; ++fold) {
      shares.first.push_back(sum);
      next[static_cast<size_t>(begin - count.begin() + fold)] = sum;
      sum += begin[fold];
    }
  }
  shares.first.push_back(sum);
  shares.all.resize(static_cast<size_t>(sum));
  for_shares([&](size_t bin, const Share& share) {
    shares.all[static_cast<size_t>(next[bin]++)] = share;
  });
  return shares;
}

/// Solves the regressions of all nodes; the last of `out` is of all folds.
void solve_nodes(const Material& material, const Shares& shares, int folds,
                 const std::vector<Regression>& regressions, std::vector<Experts>& out,
                 const Context& context) {
  const int parts = regressions[0].parts;
  const auto width = static_cast<size_t>(sums_of(parts));
  const int64_t entries = (std::ssize(shares.first) - 1) / folds;
  const int64_t batch =
      std::max<int64_t>(kBatchBytes / (8 * std::ssize(regressions[0].mean) * folds), 1);
  const size_t row = static_cast<size_t>(parts) * kFeatures;
  for (size_t m = 0; m < out.size(); ++m) {
    out[m].entries = shares.entries;
    out[m].beta.resize((static_cast<size_t>(entries) + 1) * row);
    regressions[m].solve_node(std::vector<double>(width, 0), out[m].beta.data());
  }
  for (int64_t begin = 0; begin < entries; begin += batch) {
    context.throw_if_stopped("stopped while experts were trained");
    const int64_t end = std::min(begin + batch, entries);
    const std::vector<int64_t> first(shares.first.begin() + begin * folds,
                                     shares.first.begin() + end * folds + 1);
    const std::span<const Share> all(shares.all.data() + first.front(),
                                     static_cast<size_t>(first.back() - first.front()));
    const auto sums = sums_of_bins(material, all, first, parts, context);
    parallel_for_each(context.threads, end - begin, 1, [&](int64_t n) {
      for (size_t m = 0; m < out.size(); ++m) {
        std::vector<double> of_node(width, 0);
        for (int fold = 0; fold < folds; ++fold) {
          if (fold == static_cast<int>(m)) continue;  // the last one is none
          const int64_t* from = sums.data() + (n * folds + fold) * static_cast<int64_t>(width);
          for (size_t k = 0; k < width; ++k) of_node[k] += static_cast<double>(from[k]);
        }
        regressions[m].solve_node(of_node,
                                  out[m].beta.data() + static_cast<size_t>(begin + n + 1) * row);
      }
    });
  }
}

}  // namespace

Trained train(const std::vector<TrainingCase>& cases, int parts, int folds, int steps,
              const Context& context) {
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
  const Material material = load(used, frames, start.turns != 0, steps, context);
  const FoldSums means = mean_sums(material, folds, parts, context);
  std::vector<Regression> regressions;
  for (int without = 0; without <= folds; ++without) {
    regressions.emplace_back(parts, means, without);
  }
  std::vector<Experts> out(static_cast<size_t>(folds) + 1, start);
  solve_nodes(material, share_out(material, folds), folds, regressions, out, context);
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
      std::fill_n(sums, width, 0);
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
            const Channels& channels = job.cases[sample.of_case];
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
