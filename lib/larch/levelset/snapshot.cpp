// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "larch/core/error.h"
#include "larch/levelset/evolve/voxel_math.h"
#include "larch/levelset/run_speeds.h"
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

[[noreturn]] void refuse(int64_t ended, size_t iterations) {
  throw InputError("the checkpoint has " + std::to_string(iterations) +
                   " iterations, and with these settings the run would have ended after " +
                   std::to_string(ended) + "; segment from the seeds, or give larger limits");
}

/// Why the fields of a run, which have made all steps of their histories, stop by its rules, which
/// need not be those that they were moved by. What the fields of a group did is added up from the
/// first step on, so that the end is that of a run that had these rules from the start.
Stop stop_after_history(const SegmentRun& run) {
  const size_t count = run.fields.size(), steps = run.history[0].size();
  std::vector<FieldProgress> progress(count);
  for (size_t f = 0; f < count; ++f) {
    progress[f].inside = run.progress[f].inside;
    for (const StepCount& step : run.history[f]) progress[f].inside -= step.grown;
  }
  for (size_t s = 0; s < steps; ++s) {
    GroupStep group;
    for (size_t f = 0; f < count; ++f) group.add(run.history[f][s], progress[f]);
    for (size_t f = 0; f < count; ++f) {
      progress[f] = advanced(progress[f], run.history[f][s], group, run.stops);
    }
    if (progress[0].stop != Stop::kNone && s + 1 < steps) {
      refuse(static_cast<int64_t>(s) + 1, steps);
    }
  }
  return progress[0].stop;
}

/// Lets fields that had come to an end go on if the rules of the run say so. With a region term new
/// means let fields go on as well, which their histories do not tell: then the number of iterations
/// alone may be another than it was.
void apply_rules(SegmentRun& run) {
  const FieldProgress& now = run.progress[0];
  if (now.iterations > run.stops.max_iterations) {
    refuse(run.stops.max_iterations, run.history[0].size());
  }
  Stop stop = now.stop;
  if (run.request->config.region_weight == 0 && !run.history[0].empty()) {
    stop = stop_after_history(run);
  } else if (stop == Stop::kIterations && now.iterations < run.stops.max_iterations) {
    stop = Stop::kNone;
  }
  if (now.stop == Stop::kAtRest) return;
  const bool goes_on = stop == Stop::kNone || stop == Stop::kInterrupted;
  const bool was_over = now.stop != Stop::kNone && now.stop != Stop::kInterrupted;
  for (size_t f = 0; f < run.fields.size(); ++f) {
    run.progress[f].stop = stop;
    if (goes_on && was_over) run.active[f] = {};  // a field at its end has none: it is found anew
  }
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
    if (run.request->config.region_weight > 0) make_speed(run, f, context);
  }
  apply_rules(run);
}

}  // namespace larch::levelset
