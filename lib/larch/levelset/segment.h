// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/levelset/evolve/evolve.h"
#include "larch/levelset/initial/spheres.h"
#include "larch/levelset/speed/window.h"
#include "larch/levelset/step/time_step.h"

// The recipe of a segmentation: an image with seeds becomes fields, the fields are moved, and
// labels are read from them. First surfaces are made on the host, speeds where the fields are; both
// in doubles that are rounded once, so that both devices move the same fields.
namespace larch::levelset {

/// A first level-set function from a file, in mm, negative inside.
struct InitialPhi {
  int32_t label = 1;
  Volume<float> phi_mm{};
};

/// What is asked for. Volumes that are empty are not given; those that are lie on the grid of the
/// image. At least one of spheres, initial_labels and initial_phi is needed; where several give a
/// surface of one label, it starts from their union.
struct SegmentRequest {
  Volume<float> image{};
  std::vector<Sphere> spheres{};
  std::vector<Sphere> background{};  ///< never inside; automatic windows end half way to each
  LabelVolume initial_labels{};      ///< every value but 0 is a label
  std::vector<InitialPhi> initial_phi{};
  double initial_level_mm = 0;  ///< initial_phi below it is inside
  /// > 0: the structures start from all that a front reaches from their first surfaces until it has
  /// gone this far, where it runs at D (fast marching; not where D <= 0).
  double arrival_mm = 0;
  std::vector<LabelWindow> windows{};  ///< of single labels; for the others config.lower, upper
  Volume<float> speed{};               ///< in place of D, positive: outwards
  Volume<uint8_t> mask{};              ///< 0: never inside
  LabelVolume frozen{};                ///< not 0: belongs to another structure, never inside
  bool wants_surface = false;          ///< LabelResult::surface is made
  LevelsetConfig config{};
};

/// Parameters of one label as they were used.
struct ResolvedLabel {
  int32_t label = 1;
  std::optional<Window> window{};  ///< none with a speed image
  double seed_mean = 0;            ///< intensity in the first surface
  double seed_fraction = 0;        ///< of the voxels in the first surface: those with D > 0
  int64_t seed_voxels = 0;
  int64_t seed_not_a_number = 0;  ///< of the voxels in the first surface: intensity not finite
};

/// Parameters of a run as they were used.
struct Resolved {
  std::vector<ResolvedLabel> labels{};  ///< ascending
  SpeedBounds bounds{};
  double unit_mm = 1;              ///< the smallest spacing: the unit of dt, kClamp and kDeadZone
  double time_step = 0;            ///< dt
  double largest_stable_step = 0;  ///< may be infinite
  /// Along the axis of the smallest spacing (time_step.h): slower ones stand still.
  double slowest_front = 0;
  double speed_scale = 1;           ///< the speed image was divided by it
  double edge_contrast = 0;         ///< per mm; 0 without edges
  int64_t voxels_not_a_number = 0;  ///< where D is -1 for that
  int64_t pinned_voxels = 0;        ///< of mask, frozen labels and max_distance_mm
  int64_t most_voxels = 0;          ///< of max_volume_ml; 0: no limit
};

/// A segmentation on its way. The request must outlive it.
struct SegmentRun {
  const SegmentRequest* request = nullptr;
  Resolved resolved{};
  std::vector<std::string> warnings{};  ///< whole sentences with what to do
  EvolveJob job{};                      ///< fields in the order of Resolved::labels
};

/// Makes speeds and first surfaces. Throws UsageError where nothing to start from is given, a seed
/// lies outside of the image or limits contradict each other, InputError where grids differ or
/// nothing is left to start from, and what set_phi and make_step throw.
SegmentRun start_segmentation(const SegmentRequest& request, const Context& context);

/// One label at the end.
struct LabelResult {
  int32_t label = 1;
  Volume<float> phi_mm{};  ///< negative inside, held within kClamp of the surface
  int64_t voxels = 0;
  double volume_ml = 0;
  bool touches_border = false;  ///< voxels inside at a face of the image
  /// With a window from the seeds: it touches the border and has more voxels than a third of those
  /// that are brighter than the mean of the image, which is the body in most.
  bool fills_body = false;
  /// place_surface, or phi_mm where the end came before rest; empty unless the request wants it.
  Volume<float> surface{};
};

struct SegmentResult {
  LabelVolume labels{};  ///< inside: phi < 0; where two overlap, the one that is lower
  std::vector<LabelResult> by_label{};
  Progress progress{};
  Resolved resolved{};
  std::vector<std::string> warnings{};
  std::vector<std::vector<StepCount>> history{};  ///< by label, by step
};

/// Reads the labels of a run.
SegmentResult finish_segmentation(SegmentRun run, const Context& context);

/// All of it: start, evolve the job until it stops (or context.stop), finish.
SegmentResult segment(const SegmentRequest& request, const Context& context);

/// The request for the next frame of a series: it starts from the surfaces of the last one, with
/// its windows. A label of which nothing is left is not in it.
SegmentRequest next_frame(SegmentRequest request, const SegmentResult& last, Volume<float> image);

}  // namespace larch::levelset
