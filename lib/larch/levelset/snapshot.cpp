// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "larch/core/error.h"
#include "larch/levelset/evolve/voxel_math.h"
#include "larch/levelset/prepare.h"
#include "larch/levelset/segment.h"

namespace larch::levelset {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  throw InputError(std::string("the checkpoint is damaged: ") + what +
                   "; delete it and segment from the seeds");
}

/// Whether the items of an active set are in order and lie in the image.
bool is_sound(const std::vector<uint32_t>& items, const BrickLayout& layout, Tracker tracker) {
  const auto lies_inside = [&](uint32_t item) {
    switch (tracker) {
      case Tracker::kDense:
        return false;
      case Tracker::kVoxel:
        return item < layout.stored_voxels() && contains(layout, voxel_at(layout, item));
      case Tracker::kBrick:
        return item < layout.bricks();
    }
    return false;
  };
  return std::all_of(items.begin(), items.end(), lies_inside) &&
         std::adjacent_find(items.begin(), items.end(), std::greater_equal<>()) == items.end();
}

/// Indices and sums of a run are taken from a snapshot, so that one that was not written by this
/// program must not lead them out of the image. `first`: of the same group.
void check_snapshot(const FieldSnapshot& snapshot, const FieldSnapshot& first,
                    const LevelsetField& field, Tracker tracker) {
  const BrickLayout& layout = field.layout;
  for (const std::vector<float>& phi : snapshot.phi) {
    if (phi.size() != static_cast<size_t>(layout.stored_voxels())) {
      throw InputError("the checkpoint is of an image of another size");
    }
    require(std::all_of(phi.begin(), phi.end(),
                        [&](float value) { return std::abs(value) <= field.step.clamp; }),
            "a value of the level set is beyond its clamp");
  }
  const FieldProgress& progress = snapshot.progress;
  const int64_t voxels = int64_t{layout.size.x} * layout.size.y * layout.size.z;
  require(progress.iterations == static_cast<int64_t>(snapshot.history.size()),
          "its iterations are not those of its history");
  require(progress.quiet >= 0 && progress.quiet <= progress.iterations && progress.inside >= 0 &&
              progress.inside <= voxels,
          "its counts contradict each other");
  require(progress.iterations == first.progress.iterations && progress.stop == first.progress.stop,
          "its labels are not equally far");
  require(std::isfinite(snapshot.means.inside) && std::isfinite(snapshot.means.outside) &&
              snapshot.means_at >= 0 && snapshot.means_at <= progress.iterations,
          "its means of regions are none");
  require(is_sound(snapshot.active.items, layout, tracker),
          "its active set is not one of this image");
}

}  // namespace

std::vector<FieldSnapshot> snapshot_of(const SegmentRun& run) {
  std::vector<FieldSnapshot> fields(run.fields.size());
  for (size_t f = 0; f < fields.size(); ++f) {
    for (int b = 0; b < 2; ++b) fields[f].phi[b] = run.fields[f].field.phi[b].to_vector();
    fields[f].progress = run.progress[f];
    fields[f].active = run.active[f];
    fields[f].history = run.history[f];
    fields[f].means = run.fields[f].means;
    fields[f].means_at = run.fields[f].means_at;
  }
  return fields;
}

void restore(SegmentRun& run, std::vector<FieldSnapshot> fields, const Context& context) {
  if (fields.size() != run.fields.size()) {
    throw InputError("the checkpoint has " + std::to_string(fields.size()) +
                     " labels, the request has " + std::to_string(run.fields.size()));
  }
  for (size_t f = 0; f < fields.size(); ++f) {
    check_snapshot(fields[f], fields[0], run.fields[f].field, run.request->config.tracker);
  }
  for (size_t f = 0; f < fields.size(); ++f) {
    SegmentField& field = run.fields[f];
    for (int b = 0; b < 2; ++b) field.field.phi[b].upload(fields[f].phi[b]);
    run.progress[f] = fields[f].progress;
    run.active[f] = std::move(fields[f].active);
    run.history[f] = std::move(fields[f].history);
    field.means = fields[f].means;
    field.means_at = fields[f].means_at;
    if (run.request->config.region_weight > 0) {
      field.field.speed = by_brick(data_speed_of(run, f, context.threads), context);
    }
  }
}

}  // namespace larch::levelset
