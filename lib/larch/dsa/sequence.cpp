// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/sequence.h"

#include <algorithm>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/dsa/field/flexible_shift.h"
#include "larch/dsa/field/spline.h"
#include "larch/dsa/image_agreement.h"
#include "larch/dsa/mask_frames.h"
#include "larch/dsa/match/rigid_shift.h"
#include "larch/dsa/registration.h"

namespace larch::dsa {
namespace {

bool finds_blocks(const DsaConfig& config) {
  return config.method == Method::kBlock || config.method == Method::kFlex;
}

BlockGrid one_block(const Vec3i& size) {
  return make_block_grid(size, size, size);
}

bool needs_shifts(const DsaConfig& config, const SequenceWants& wants) {
  return wants.shift || wants.shifted || config.method == Method::kShift ||
         (finds_blocks(config) && !config.literal);
}

SampledFrames make_batch(const SequenceMask& mask, const Buffer<uint16_t>& stored,
                         const DsaConfig& config, const SequenceWants& wants,
                         const Context& context) {
  SampledFrames batch;
  batch.values = to_values(stored, mask.size, mask.table, context);
  batch.samples = to_samples(stored, mask.size, mask.table, mask.region, context);
  batch.at_zero = filter_at_zero(batch.samples, config, context);
  batch.shifts.resize(static_cast<size_t>(batch.values.count));
  if (mask.size.z == 1 && needs_shifts(config, wants)) {
    batch.shifts = rigid_shifts(mask.samples.data(), mask.at_zero.data(), batch.samples,
                                batch.at_zero, mask.table, config, context);
  }
  return batch;
}

SubtractJob job_of(const SequenceMask& mask, const SampledFrames& batch) {
  SubtractJob job;
  job.mask_values = mask.values.data();
  job.mask_samples = mask.samples.data();
  job.contrast_values = batch.values.values.data();
  job.contrast_samples = batch.samples.values.data();
  job.region = mask.region.data();
  job.size = mask.size;
  job.frames = batch.values.count;
  return job;
}

/// Differences after one translation per frame; null: after none.
Buffer<int16_t> shifted_difference(const SequenceMask& mask, const SampledFrames& batch,
                                   const Vec3i* shifts, const DsaConfig& config,
                                   const Context& context) {
  Buffer<int16_t> difference(context.device, batch.values.values.size());
  SubtractJob job = job_of(mask, batch);
  job.vectors = shifts;
  job.out = difference.data();
  subtract(job, one_block(mask.size), mask.table, config, context);
  return difference;
}

Buffer<int16_t> copy_of(const Buffer<int16_t>& from) {
  Buffer<int16_t> copy(from.device(), from.size());
  memory::copy(copy.device(), copy.data(), from.device(), from.data(),
               from.size() * sizeof(int16_t));
  return copy;
}

std::vector<Vec3i> found_vectors(const SequenceMask& mask, const SampledFrames& batch,
                                 const DsaConfig& config, const std::optional<Vec3i>& moved_by,
                                 SubtractedFrames& out, const Context& context) {
  if (config.method == Method::kShift) return out.shift;
  if (config.method == Method::kNone) {
    if (!moved_by && mask.start == Vec3i{}) return {};
    return std::vector<Vec3i>(out.shift.size(), moved_by.value_or(mask.start));
  }
  out.matches = register_frames(mask, batch, config, out.figures, context);
  return vectors_of(out.matches);
}

void add_field_shapes(const BlockGrid& grid, BorderField border, SubtractedFrames& out,
                      const Context& context) {
  if (out.vectors.empty()) return;
  const auto blocks = static_cast<size_t>(grid.blocks());
  const auto frames = static_cast<int64_t>(out.figures.size());
  parallel_for_each(context.threads, frames, 1, [&](size_t f) {
    const std::span<const Vec3i> of_frame(out.vectors.data() + f * blocks, blocks);
    out.figures[f].field = shape_of_field(grid, of_frame, border);
  });
}

/// The images after the mask was moved by the vectors of `result.frames`, and figures.
void make_corrected(const SequenceMask& mask, const SampledFrames& batch, const DsaConfig& config,
                    bool wants_field, SubtractedBatch& result, const Context& context) {
  const Device& device = context.device;
  SubtractedFrames& out = result.frames;
  const BorderField border = border_field_of(config, mask.size.z > 1);
  const BlockGrid blocks = correction_grid(config, mask.size);
  add_field_shapes(blocks, border, out, context);
  const DenseVectors dense = dense_vectors(blocks, out.vectors, config, context);
  if (takes_spline(config, mask.size)) {
    const std::vector<double> least = least_jacobians(mask.size, dense.vectors, context);
    for (size_t f = 0; f < least.size(); ++f) out.figures[f].field.least_jacobian = least[f];
  }
  const size_t pixels = batch.values.values.size();
  result.difference = Buffer<int16_t>(device, pixels);
  result.validity = Buffer<uint8_t>(device, pixels);
  result.field_px = Buffer<Vec3f>(device, wants_field ? pixels : 0);
  Buffer<SubtractFigures> figures(device, out.figures.size());
  SubtractJob job = job_of(mask, batch);
  job.vectors = dense.vectors.data();
  job.border = border;
  job.out = result.difference.data();
  job.validity = result.validity.data();
  job.field_px = result.field_px.data();
  job.figures = figures.data();
  subtract(job, dense.grid, mask.table, config, context);
  const std::vector<SubtractFigures> on_host = figures.to_vector();
  for (size_t f = 0; f < on_host.size(); ++f) out.figures[f].subtracted = on_host[f];
}

/// One kind of image of a batch, which lets go of it.
template <class T>
void download(Buffer<T>& from, std::vector<T>& to, const Device& device) {
  to.resize(from.size());
  if (!from.empty()) {
    memory::copy(Device::cpu(), to.data(), device, from.data(), from.size() * sizeof(T));
  }
  from = {};
}

}  // namespace

SequenceMask on_host(const SequenceMask& mask) {
  SequenceMask copy;
  copy.table = mask.table;
  copy.size = mask.size;
  copy.start = mask.start;
  copy.samples = Buffer<uint16_t>(Device::cpu(), mask.samples.to_vector());
  copy.at_zero = Buffer<uint16_t>(Device::cpu(), mask.at_zero.to_vector());
  copy.values = Buffer<uint16_t>(Device::cpu(), mask.values.to_vector());
  copy.region = Buffer<uint8_t>(Device::cpu(), mask.region.to_vector());
  return copy;
}

std::string runs_on_cpu_alone(const DsaConfig& config, bool is_volume) {
  if (is_volume) return "subtraction of volumes";
  return config.method == Method::kFlex ? "flexible pixel shift" : "";
}

bool registers_masks(const DsaConfig& config, const Vec3i& size) {
  return finds_blocks(config) && confirms(config, size);
}

SequenceMask make_mask(const MaskInput& input, const DsaConfig& config, const Context& context) {
  const Buffer<uint8_t> open(context.device, input.open);
  std::vector<std::vector<uint16_t>> samples, values;
  for (const auto& frame : input.stored) {
    const Buffer<uint16_t> stored(context.device, frame);
    samples.push_back(
        to_samples(stored, input.size, input.table, open, context).values.to_vector());
    values.push_back(to_values(stored, input.size, input.table, context).values.to_vector());
  }
  if (registers_masks(config, input.size)) {
    register_mask_frames(input, config, samples, values, context);
  }
  const auto mean_of = [](const std::vector<std::vector<uint16_t>>& frames) {
    return mean_of_samples(std::vector<std::span<const uint16_t>>(frames.begin(), frames.end()));
  };
  SequenceMask mask;
  mask.table = input.table;
  mask.size = input.size;
  mask.start = input.start;
  SampleFrames mean{input.size, 1, Buffer<uint16_t>(context.device, mean_of(samples))};
  mask.at_zero = filter_at_zero(mean, config, context).values;
  mask.samples = std::move(mean.values);
  mask.values = Buffer<uint16_t>(context.device, mean_of(values));
  mask.region = Buffer<uint8_t>(context.device, input.region);
  return mask;
}

SubtractedBatch subtract_on_device(const SequenceMask& mask, const Buffer<uint16_t>& stored,
                                   const DsaConfig& config, const SequenceWants& wants,
                                   const Context& context) {
  const std::string what = runs_on_cpu_alone(config, mask.size.z > 1);
  if (context.device.is_cuda() && !what.empty()) {
    throw DeviceError(what + " runs on the CPU alone; use --device cpu");
  }
  const SampledFrames batch = make_batch(mask, stored, config, wants, context);
  SubtractedBatch result;
  SubtractedFrames& out = result.frames;
  out.shift = batch.shifts;
  out.figures.resize(out.shift.size());
  out.vectors = found_vectors(mask, batch, config, wants.moved_by, out, context);
  make_corrected(mask, batch, config, wants.field, result, context);
  if (wants.shifted) {
    const Buffer<Vec3i> shifts(context.device, out.shift);
    result.shifted = config.method == Method::kShift
                         ? copy_of(result.difference)
                         : shifted_difference(mask, batch, shifts.data(), config, context);
  }
  if (wants.uncorrected) {
    result.uncorrected = config.method == Method::kNone && out.vectors.empty()
                             ? copy_of(result.difference)
                             : shifted_difference(mask, batch, nullptr, config, context);
  }
  return result;
}

void download(SubtractedBatch& batch, SubtractedFrames& to, const Device& device) {
  to.matches = std::move(batch.frames.matches);
  to.vectors = std::move(batch.frames.vectors);
  to.figures = std::move(batch.frames.figures);
  to.shift = std::move(batch.frames.shift);
  download(batch.difference, to.difference, device);
  download(batch.validity, to.validity, device);
  download(batch.field_px, to.field_px, device);
  download(batch.shifted, to.shifted, device);
  download(batch.uncorrected, to.uncorrected, device);
}

SubtractedFrames subtract_frames(const SequenceMask& mask, std::span<const uint16_t> stored,
                                 const DsaConfig& config, const SequenceWants& wants,
                                 const Context& context) {
  const Buffer<uint16_t> on_device(context.device, stored);
  SubtractedBatch batch = subtract_on_device(mask, on_device, config, wants, context);
  SubtractedFrames frames;
  download(batch, frames, context.device);
  return frames;
}

BlockGrid last_grid(const DsaConfig& config, const Vec3i& size) {
  const Pass last = passes_of(config, size.z > 1).back();
  return config.method == Method::kFlex ? make_node_grid(size, last.step)
                                        : grid_of_pass(last, size);
}

BlockGrid correction_grid(const DsaConfig& config, const Vec3i& size) {
  return finds_blocks(config) ? last_grid(config, size) : one_block(size);
}

FrameBytes bytes_per_frame(const DsaConfig& config, const Vec3i& size, const SequenceWants& wants) {
  const int64_t pixels = static_cast<int64_t>(size.x) * size.y * size.z;
  int64_t blocks = 1;
  if (finds_blocks(config)) {
    for (const Pass& pass : passes_of(config, size.z > 1)) {
      blocks = std::max<int64_t>(blocks, grid_of_pass(pass, size).blocks());
    }
    blocks = std::max<int64_t>(blocks, last_grid(config, size).blocks());
  }
  const int64_t field = wants.field ? static_cast<int64_t>(sizeof(Vec3f)) : 0;
  const int64_t others = (wants.shifted ? 2 : 0) + (wants.uncorrected ? 2 : 0);
  FrameBytes bytes;
  bytes.figures = blocks * static_cast<int64_t>(2 * sizeof(BlockMatch));
  bytes.images = pixels * (2 + 1 + field + others);
  // Stored pixels, samples, values, filtered samples and their passes, differences in Q2; matches.
  bytes.on_device = pixels * (2 + 2 + 2 + 4 + 4 + 2) + bytes.images + bytes.figures;
  // A spline at every pixel.
  if (takes_spline(config, size)) bytes.on_device += pixels * static_cast<int64_t>(sizeof(Vec3i));
  return bytes;
}

}  // namespace larch::dsa
