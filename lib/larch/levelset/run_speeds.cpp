// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/run_speeds.h"

#include <span>

#include "larch/levelset/speed/regions.h"

namespace larch::levelset {
namespace {

bool has_regions(const SegmentRun& run) {
  return run.request->config.region_weight > 0;
}

/// Whether the intensities count in D.
bool needs_intensities(const SegmentRun& run) {
  return run.request->speed.empty() || has_regions(run);
}

Buffer<float> copy_of(const Volume<float>& image, const Context& context) {
  return Buffer<float>(context.device,
                       std::span<const float>(image.data(), static_cast<size_t>(image.voxels())));
}

/// An image of the request where the fields of a context are; null where there is none.
const float* placed(const Volume<float>& image, const Buffer<float>& copy, const Context& context) {
  if (!context.device.is_cuda()) return image.empty() ? nullptr : image.data();
  return copy.empty() ? nullptr : copy.data();
}

SpeedImages images_of(const SegmentRun& run, size_t f, const Context& context) {
  const SegmentRequest& request = *run.request;
  const Buffer<uint8_t>& pinned = run.fields[f].pinned;
  return {placed(request.image, run.intensities, context),
          placed(request.speed, run.given_speeds, context),
          pinned.empty() ? nullptr : pinned.data()};
}

}  // namespace

void place_images(SegmentRun& run, const Context& context) {
  const SegmentRequest& request = *run.request;
  if (has_regions(run)) run.intensity_steps = intensity_steps_of(request.image, context.threads);
  if (!context.device.is_cuda()) return;
  if (needs_intensities(run)) run.intensities = copy_of(request.image, context);
  if (!request.speed.empty()) run.given_speeds = copy_of(request.speed, context);
}

void release_images(SegmentRun& run) {
  run.intensities = {};
  run.given_speeds = {};
  for (SegmentField& field : run.fields) field.pinned = {};
}

SpeedRule speed_rule_of(const SegmentRun& run, size_t f) {
  const SegmentRequest& request = *run.request;
  SpeedRule rule;
  rule.window = run.resolved.labels[f].window.value_or(Window{});
  rule.is_given = !request.speed.empty();
  rule.given_scale = run.resolved.speed_scale;
  rule.region_weight = request.config.region_weight;
  rule.means = run.fields[f].means;
  return rule;
}

void make_speed(SegmentRun& run, size_t f, const Context& context) {
  LevelsetField& field = run.fields[f].field;
  DataSpeed parts;
  parts.layout = field.layout;
  parts.rule = speed_rule_of(run, f);
  parts.images = images_of(run, f, context);
  if (!field.edge_stop.empty()) parts.edge_stop = field.edge_stop.data();
  const auto size = static_cast<size_t>(field.layout.stored_voxels());
  if (field.speed.empty()) field.speed = Buffer<int16_t>(context.device, size);
  make_data_speed(parts, field.speed.data(), context);
}

RegionMeans region_means_of(const SegmentRun& run, size_t f, int64_t iterations,
                            const Context& context) {
  const LevelsetField& field = run.fields[f].field;
  const SpeedImages images = images_of(run, f, context);
  Regions regions;
  regions.layout = field.layout;
  regions.phi = field.phi[static_cast<size_t>(iterations % 2)].data();
  regions.intensities = images.intensities;
  regions.pinned = images.pinned;
  regions.steps = run.intensity_steps;
  regions.reach = region_reach(run.request->image.grid(), run.request->config.region_band_mm);
  return means_of(region_sums(regions, context), run.intensity_steps);
}

}  // namespace larch::levelset
