// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/experts/experts.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/data/symmetric_matrix.h"
#include "larch/experts/atlases.h"
#include "larch/filters/components.h"
#include "larch/image/filter_bank.h"

namespace larch::experts {
namespace {

constexpr float kInside = 0.4F;          ///< probability of voxels that the frame is made of
constexpr float kMaybe = 0.1F;           ///< of voxels of the band
constexpr int kBandVoxels = 2;           ///< by which the band is wider
constexpr int32_t kLargestAtlas = 4096;  ///< voxels along an axis
constexpr int kSmoothReach = 1;
constexpr Vec3i kSmoothed{kSmoothReach, kSmoothReach, kSmoothReach};
/// Voxels that a result depends on: two of the patch and four of the widest filter.
constexpr int kReach = 6;
constexpr double kNoiseVariance = 0.1;  ///< voxels^2, added to the spread along each axis

constexpr Dispatch<void(const ReadJob&, const Context&)> kRead{"experts::read", cpu::read,
                                                               LARCH_CUDA_FN(cuda::read)};
constexpr Dispatch<void(const SmoothJob&, int, const Context&)> kSmooth{
    "experts::smooth", cpu::smooth, LARCH_CUDA_FN(cuda::smooth)};

Volume<uint8_t> dilated(const Volume<uint8_t>& mask, int radius) {
  const std::vector<uint8_t> wide =
      filters::dilated({mask.data(), static_cast<size_t>(mask.voxels())}, mask.size(), radius);
  Volume<uint8_t> out = Volume<uint8_t>::unfilled(mask.grid());
  std::ranges::copy(wide, out.begin());
  return out;
}

/// Holds sums of w, w x and w x x' over voxels, x in voxels: integers in a slice, then slice by
/// slice.
struct Moments {
  double of[10] = {};

  void add_slice(const Volume<uint8_t>& mask, const Volume<float>& probability, int32_t z) {
    const Vec3i size = mask.size();
    int64_t sum[6] = {};  // 1, x, y, xx, xy, yy
    int64_t i = mask.grid().linear({0, 0, z});
    for (int64_t y = 0; y < size.y; ++y) {
      for (int64_t x = 0; x < size.x; ++x, ++i) {
        if (mask[i] == 0) continue;
        const auto w =
            static_cast<int64_t>(std::floor(static_cast<double>(probability[i]) * kOne + 0.5));
        const int64_t terms[6] = {1, x, y, x * x, x * y, y * y};
        for (int k = 0; k < 6; ++k) sum[k] += w * terms[k];
      }
    }
    const auto s = [&](int k) { return static_cast<double>(sum[k]); };
    const double in_slice[10] = {s(0), s(1),     s(2), z * s(0), s(3),
                                 s(4), z * s(1), s(5), z * s(2), static_cast<double>(z) * z * s(0)};
    for (int k = 0; k < 10; ++k) of[k] += in_slice[k];
  }
};

bool is_sound(const Atlas& atlas, int parts) {
  int64_t voxels = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (atlas.size[axis] < 1 || atlas.size[axis] > kLargestAtlas) return false;
    voxels *= atlas.size[axis];
  }
  double largest = norm(atlas.placement.offset);
  for (int k = 0; k < 3; ++k) {
    largest = std::max(largest, norm(atlas.placement.matrix.column(k)));
  }
  return std::ssize(atlas.image) == voxels && std::ssize(atlas.part) == voxels &&
         std::ranges::all_of(atlas.image, [](int v) { return std::abs(v) <= kLimit; }) &&
         std::ranges::all_of(atlas.part, [=](int p) { return p >= -1 && p < parts; }) &&
         largest < kFarthestMm && std::abs(determinant(atlas.placement.matrix)) > 1e-12;
}

/// Writes the slices from `lo` to `hi` of the probabilities of all parts. `placement`: of indices
/// from `origin` on.
void read_slab(const Experts& experts, const Resident& resident, const Volume<int16_t>& image,
               int steps, const Placement& placement, const Vec3i& origin,
               const Volume<uint8_t>& band, const Vec3i& lo, const Vec3i& hi,
               std::vector<Volume<float>>& out, const Context& context) {
  const Piece piece = make_piece(image, steps, lo - kSmoothed, hi + kSmoothed, context);
  const auto voxels = static_cast<size_t>(piece.channels().voxels());
  std::vector<uint8_t> inside(voxels);
  for_piece(piece.origin, piece.size, [&](size_t i, const Vec3i& at) {
    inside[i] = at.z >= lo.z - 1 && at.z <= hi.z + 1 ? band(at) : 0;
  });
  const Device& device = context.device;
  const Buffer<uint8_t> band_here(device, inside);
  const auto parts = static_cast<size_t>(experts.parts);
  Buffer<int32_t> raw(device, parts * voxels);
  Buffer<float> smooth(device, parts * voxels);
  raw.set_zero();
  kRead(device,
        ReadJob{piece.channels(), placement, piece.origin - origin, band_here.data(),
                resident.entries.data(), resident.beta.data(), resident.halves.data(),
                experts.parts, raw.data()},
        context);
  kSmooth(device, SmoothJob{piece.size, raw.data(), smooth.data()}, experts.parts, context);
  const std::vector<float> values = smooth.to_vector();
  for_piece(piece.origin, piece.size, [&](size_t i, const Vec3i& at) {
    if (at.z < lo.z || at.z > hi.z) return;
    for (size_t part = 0; part < parts; ++part) out[part](at) = values[part * voxels + i];
  });
}

std::vector<int16_t> halves_of(const std::vector<int32_t>& beta) {
  std::vector<int16_t> out(beta.size() / kFeatures * 2 * kPadded);
  for (size_t i = 0; i < beta.size(); ++i) {
    int16_t* to = &out[i / kFeatures * 2 * kPadded + i % kFeatures];
    constexpr int32_t kHalf = 1 << (kLowBits - 1);
    to[0] = static_cast<int16_t>((beta[i] + kHalf) >> kLowBits);
    to[kPadded] = static_cast<int16_t>(beta[i] - (int32_t{to[0]} << kLowBits));
  }
  return out;
}

/// Returns what a row of coefficients says of a voxel with these features.
int64_t product(const int16_t* high, const int16_t* features) {
  int64_t sum = 0;
  for (int first = 0; first < kPadded; first += kExact) {
    int32_t highs = 0, lows = 0;
    for (int k = first; k < first + kExact; ++k) {
      highs += high[k] * features[k];
      lows += high[kPadded + k] * features[k];
    }
    sum += (int64_t{highs} << kLowBits) + lows;
  }
  return sum;
}

}  // namespace

void check_experts(const Experts& experts, size_t parts) {
  if (experts.empty() && experts.table.empty() && experts.entries.empty() && experts.beta.empty() &&
      experts.atlases.empty()) {
    return;
  }
  const auto refuse = [](const char* what) {
    throw InputError(std::string("the model is damaged: its experts ") + what);
  };
  if (!experts.table.empty()) parts = experts.table.size();
  if (experts.parts < 1 || experts.parts > kMaximumParts ||
      static_cast<size_t>(experts.parts) != parts) {
    refuse("know other structures than the model");
  }
  const size_t row = static_cast<size_t>(experts.parts) * kFeatures;
  if (experts.entries.size() != kNodeCount || experts.beta.empty() ||
      experts.beta.size() % row != 0) {
    refuse("are not as many as their nodes");
  }
  const auto entries = static_cast<int64_t>(experts.beta.size() / row);
  for (const int32_t entry : experts.entries) {
    if (entry < 0 || entry >= entries) refuse("have a node beyond their coefficients");
  }
  for (const int32_t beta : experts.beta) {
    if (beta > kLargestBeta || beta < -kLargestBeta) refuse("have a coefficient that is too large");
  }
  if (std::ssize(experts.atlases) > kMaximumAtlases) refuse("have too many atlases");
  for (const Atlas& atlas : experts.atlases) {
    if (!is_sound(atlas, experts.parts)) refuse("have an atlas that is not sound");
  }
  const double length = dot(experts.mean_axes, experts.mean_axes);
  if (!(length > 0.999 && length < 1.001)) refuse("have axes that are no rotation");
}

Resident make_resident(const Experts& experts, const Device& device) {
  Resident resident{Buffer<int32_t>(device, experts.entries)};
  if (device.is_cuda()) {
    resident.beta = Buffer<int32_t>(device, experts.beta);
  } else {
    resident.halves = halves_of(experts.beta);
  }
  std::vector<int16_t> images;
  std::vector<int8_t> parts;
  for (const Atlas& atlas : experts.atlases) {
    images.insert(images.end(), atlas.image.begin(), atlas.image.end());
    parts.insert(parts.end(), atlas.part.begin(), atlas.part.end());
  }
  resident.atlas_images = Buffer<int16_t>(device, images);
  resident.atlas_parts = Buffer<int8_t>(device, parts);
  return resident;
}

std::optional<Frame> frame_of(const Volume<float>& probability, const Context& context) {
  auto mask = mapped<uint8_t>(probability, [](float p) { return p > kInside; });
  if (std::ranges::none_of(mask, [](uint8_t m) { return m != 0; })) return std::nullopt;
  mask = dilated(filters::keep_largest_component(mask, 1, context.threads), 1);
  Moments sums;
  for (int32_t z = 0; z < mask.size().z; ++z) sums.add_slice(mask, probability, z);
  const double* of = sums.of;
  const Vec3d spacing = mask.grid().spacing_mm;
  Frame frame;
  for (int axis = 0; axis < 3; ++axis) frame.centre_mm[axis] = of[1 + axis] / of[0];
  std::vector<double> covariance(9);
  constexpr int kSecond[3][3] = {{4, 5, 6}, {5, 7, 8}, {6, 8, 9}};
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      const double second = of[kSecond[a][b]] / of[0] - frame.centre_mm[a] * frame.centre_mm[b];
      covariance[static_cast<size_t>(a) * 3 + static_cast<size_t>(b)] =
          (second + (a == b ? kNoiseVariance : 0)) * spacing[a] * spacing[b];
    }
  }
  for (int axis = 0; axis < 3; ++axis) frame.centre_mm[axis] *= spacing[axis];
  const Eigen eigen = symmetric_eigen(covariance, 3);
  for (int k = 0; k < 3; ++k) {
    const auto at = static_cast<size_t>(k);
    frame.spread_mm[k] = std::sqrt(std::max(eigen.values[at], 1e-9));
    frame.grid_spread_mm[k] = std::sqrt(std::max(covariance[at * 4], 1e-9));
    for (int axis = 0; axis < 3; ++axis) {
      frame.axes.m[axis][k] = eigen.vectors[at][static_cast<size_t>(axis)];
    }
  }
  return frame;
}

void align(Frame& frame, const Mat3& to) {
  const auto flip = [&](int k) {
    for (auto& row : frame.axes.m) row[k] = -row[k];
  };
  // The axes of most and least agreement fix the third one.
  for (int k = 0; k < 3; ++k) {
    if (dot(frame.axes.column(k), to.column(k)) < 0) flip(k);
  }
  if (determinant(frame.axes) > 0) return;
  int least = 0;
  for (int k = 1; k < 3; ++k) {
    if (dot(frame.axes.column(k), to.column(k)) < dot(frame.axes.column(least), to.column(least))) {
      least = k;
    }
  }
  flip(least);
}

Placement placement_of(const Frame& frame, bool turns, const Grid& grid, const Vec3i& origin) {
  Placement placement;
  for (int axis = 0; axis < 3; ++axis) {
    const double scale =
        1 / ((turns ? frame.spread_mm : frame.grid_spread_mm)[axis] * kNodeStep[axis]);
    double offset = (nodes_along(axis) - 1) / 2.0;
    for (int k = 0; k < 3; ++k) {
      const double along = turns ? frame.axes.m[k][axis] : k == axis ? 1 : 0;
      const double spacing = grid.spacing_mm[k];
      placement.matrix.m[axis][k] = along * scale * spacing;
      offset += along * scale * (origin[k] * spacing - frame.centre_mm[k]);
    }
    placement.offset[axis] = offset;
  }
  return placement;
}

Volume<uint8_t> band_of(const Volume<float>& probability) {
  return dilated(mapped<uint8_t>(probability, [](float p) { return p > kMaybe; }), kBandVoxels);
}

Piece piece_around(const Volume<int16_t>& image, const Vec3i& lo, const Vec3i& hi) {
  Piece piece;
  for (int axis = 0; axis < 3; ++axis) {
    piece.origin[axis] = std::max(lo[axis] - kReach, 0);
    piece.size[axis] = std::min(hi[axis] + kReach, image.size()[axis] - 1) + 1 - piece.origin[axis];
  }
  return piece;
}

Piece make_piece(const Volume<int16_t>& image, int steps, const Vec3i& lo, const Vec3i& hi,
                 const Context& context) {
  Piece piece = piece_around(image, lo, hi);
  const auto voxels = static_cast<size_t>(piece.channels().voxels());
  std::vector<int16_t> values(voxels);
  for_piece(piece.origin, piece.size, [&](size_t i, const Vec3i& at) {
    const int32_t value = image(at);
    values[i] =
        static_cast<int16_t>(steps == kFullIntensity ? value : value * kFullIntensity / steps);
  });
  piece.image = Buffer<int16_t>(context.device, values);
  piece.filtered = Buffer<int32_t>(context.device, 2 * voxels);
  const image::ChannelSpec channels[] = {{image::ChannelKind::kSmoothGradient, 0, 0, 0.6},
                                         {image::ChannelKind::kLaplacianOfGaussian, 0, 0, 1}};
  const VolumeView<const int16_t> component{piece.image.data(), piece.size};
  image::filter(channels, {&component, 1}, piece.filtered.data(), context);
  return piece;
}

int64_t bytes_per_voxel(int parts) {
  return kBytesOfPiece + 2 * image::kFilterBytes + 2 + 12 * parts;
}

int64_t slices_at_once(const Vec3i& lo, const Vec3i& hi, int parts, int64_t model_bytes,
                       int64_t memory_bytes, int quarters) {
  const int64_t margin = 2 * (kReach + (parts > 0 ? kSmoothReach : 0));
  const int64_t slice =
      (hi.x - lo.x + 1 + margin) * (hi.y - lo.y + 1 + margin) * bytes_per_voxel(parts);
  const int64_t slices = (memory_bytes * quarters / 4 - model_bytes) / slice - margin;
  if (slices >= 1) return slices;
  const int64_t needed = (4 * (model_bytes + slice * (margin + 1)) + quarters - 1) / quarters;
  throw MemoryError("the experts of the model need " + std::to_string(needed) +
                    " bytes for a slice of the image, and may take " +
                    std::to_string(memory_bytes));
}

Volume<float> together(const std::vector<Volume<float>>& parts) {
  Volume<float> sum = parts[0];
  for (size_t k = 1; k < parts.size(); ++k) {
    for (int64_t i = 0; i < sum.voxels(); ++i) sum[i] += parts[k][i];
  }
  return sum;
}

std::vector<Volume<float>> look_again(const Experts& experts, const Resident& resident,
                                      const Volume<int16_t>& image, int steps,
                                      const Volume<float>& probability, int64_t memory_bytes,
                                      const Context& context) {
  std::optional<Frame> frame = frame_of(probability, context);
  if (!frame) return {};
  align(*frame, rotation_matrix(experts.mean_axes));
  const Volume<uint8_t> band = band_of(probability);
  const auto [lo, hi] = filters::box_of(band, [](uint8_t b) { return b != 0; });
  std::vector<Volume<float>> out(static_cast<size_t>(experts.parts), Volume<float>(image.grid()));
  // All slabs count from one voxel, so that the places of nodes are rounded alike.
  const Vec3i origin = piece_around(image, lo - kSmoothed, hi + kSmoothed).origin;
  const Placement placement = placement_of(*frame, experts.turns != 0, image.grid(), origin);
  const int64_t slices = slices_at_once(lo, hi, experts.parts, resident.bytes(), memory_bytes);
  for (int64_t z = lo.z; z <= hi.z; z += slices) {
    context.throw_if_stopped("stopped while experts looked at the image");
    const auto last = static_cast<int32_t>(std::min<int64_t>(z + slices - 1, hi.z));
    read_slab(experts, resident, image, steps, placement, origin, band,
              {lo.x, lo.y, static_cast<int32_t>(z)}, {hi.x, hi.y, last}, out, context);
  }
  ask_atlases(experts, resident, image, steps, {}, memory_bytes, out, context);
  return out;
}

void cpu::read(const ReadJob& job, const Context& context) {
  parallel_for_each(context.threads, job.channels.voxels(), 256, [&](int64_t i) {
    if (job.band[i] == 0) return;
    int16_t features[kPadded] = {};
    job.channels.for_features(voxel_of(i, job.channels.size), [&](int32_t k, int32_t value) {
      features[k] = static_cast<int16_t>(value);
    });
    job.store(i, [&](const int64_t(&rows)[8], int64_t(&says)[8]) {
      for (int c = 0; c < 8; ++c) says[c] = product(job.halves + rows[c] * 2 * kPadded, features);
    });
  });
}

void cpu::smooth(const SmoothJob& job, int parts, const Context& context) {
  for (int part = 0; part < parts; ++part) {
    parallel_for_each(context.threads, job.voxels(), 1 << 12,
                      [&](int64_t i) { job.store(i, part); });
  }
}

}  // namespace larch::experts
