// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/data/volume.h"
#include "larch/levelset/levelset_config.h"
#include "larch/levelset/speed/window.h"
#include "larch/levelset/step/step_math.h"
#include "larch/levelset/step/time_step.h"

// Segmentation by level sets: structures grow from seeds until their surfaces are at rest. Roberts,
// Packer, Sousa, Mitchell, "A work-efficient GPU algorithm for level set segmentation", High
// Performance Graphics 2010. Places are LPS mm or indices of voxels, lengths mm; surfaces are
// volumes that are negative inside.
namespace larch::levelset {

/// Raise it whenever the same request gives other bits of phi at any step: another order or
/// rounding of operations in step/, other speeds (speed/), first surfaces (initial/) or time steps,
/// other rules of several labels or of ends. Faster ways to the same bits keep it.
///
/// --skip-existing takes results of another version for those of another run.
/// tests/regression/levelset_arithmetic_test.py has the recorded level sets that belong to it.
inline constexpr int kArithmeticVersion = 2;

/// A first level-set function from a file, in mm, negative inside.
struct InitialPhi {
  int32_t label = 1;
  Volume<float> phi_mm{};
};

/// Holds what is asked for. Volumes that are empty are not given; those that are lie on the grid of
/// the image. At least one of spheres, initial_labels and initial_phi is needed; where several give
/// a surface of one label, it starts from their union.
struct SegmentRequest {
  std::string name{};  ///< of the image, for warnings that are logged; may be empty
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
  /// Negative inside and 0 on the surface, which lies between voxels; no distance. phi_mm where the
  /// end came before rest; empty unless the request wants it.
  Volume<float> surface{};
};

struct SegmentResult {
  LabelVolume labels{};  ///< inside: phi < 0; where two overlap, the one that is lower
  std::vector<LabelResult> by_label{};
  Progress progress{};
  Resolved resolved{};
  std::vector<std::string> warnings{};            ///< whole sentences with what to do
  std::vector<std::vector<StepCount>> history{};  ///< by label, by step
  int64_t voxels_per_active = 1;                  ///< of what StepCount::active counts
  StepSeconds seconds{};
};

/// Checks what a request without volumes will ask for on this grid: each sphere holds a voxel of
/// it, and the time step is stable unless a speed image (`has_speed`) decides on that. Throws
/// UsageError.
void check_on_grid(const SegmentRequest& request, const Grid& grid, bool has_speed);

/// Makes speeds and first surfaces, moves the surfaces until they are at rest or a limit of the
/// configuration ends it, and reads the labels, in the turn of the job (Context::turn). The result
/// has the same bytes on any device and with any number of threads. Its warnings are logged as
/// well, and the progress tells the iterations.
///
/// Throws UsageError where nothing to start from is given, a seed lies outside of the image, limits
/// contradict each other or the time step is not stable; InputError where grids differ or nothing
/// is left to start from; Stopped, MemoryError, DeviceError.
SegmentResult segment(const SegmentRequest& request, const Context& context);

/// Returns the request for the next frame of a series: it starts from the surfaces of the last one,
/// with its windows. A label of which nothing is left is not in it.
SegmentRequest next_frame(SegmentRequest request, const SegmentResult& last, Volume<float> image);

/// Returns the image after a Gaussian of standard deviation `sigma_mm`. Voxels that are not finite
/// stay.
Volume<float> smoothed_image(const Volume<float>& image, double sigma_mm, int threads);

// Weights that stand for LevelsetConfig::curvature_weight on a grid, h its smallest spacing.

/// Returns the weight a at which a ball of radius r in the middle of the window (D = 1) neither
/// grows nor shrinks, whatever the spacing: (1 - a) = a n h / r, n one less than the axes of more
/// than one voxel.
double weight_of_ball(double radius_mm, const Grid& grid);

/// Returns the weight that the scalings of ITK's ThresholdSegmentationLevelSetImageFilter stand
/// for.
///
/// Returns a front of that filter has the speed p (eps - |I - T|) - k kappa in mm, with the
/// propagation scaling p, the curvature scaling k, and eps half the width of the window. In units
/// of h that is s times (1 - a) D - a kappa, with s = p eps / h + k / h^2 and
///
///     a = k / (k + p eps h),
///
/// so that a surface at rest is the same, and a unit of ITK's time is s of ours. On the way there
/// the two differ: ITK's time step changes, and its field is kept a distance near the surface.
/// Throws UsageError if the numbers are too small or too large for one weight.
double weight_of_itk(double propagation, double curvature, double half_width, const Grid& grid);

// Surfaces: LabelResult::surface, or any volume that is negative inside.

/// Returns the surface of all structures together: negative inside of any.
Volume<float> surface_of_all(const SegmentResult& result);

/// Returns the mesh where a surface is 0, in LPS mm, by marching cubes. On the line between the
/// centres of neighbours with the values a and b the surface is taken to be bent by m, the smaller
/// of the second differences at both ends, or 0 where they have two signs, and no more than a - b:
/// it lies where a + (b - a) t - m t (1 - t) / 2 = 0. So the spread of a ball's radii does not grow
/// with the square of the spacing. Throws MemoryError, before it is made, if it takes more than is
/// free, with `more` bytes for each triangle.
Mesh surface_mesh(const Volume<float>& surface, int threads, int64_t more = 0);

/// Returns the distance of every voxel's centre in mm from a surface, negative inside. Up to
/// `exact_mm` it is that to the mesh, which goes on beyond the border of the image; further away
/// that to the places between neighbours (filters::distance_to_zeros_mm), which is longer by less
/// than half the square of a cell's diagonal over the distance. The diagonal of the image where
/// `surface` has one sign. Throws as surface_mesh.
Volume<float> surface_distance_mm(const Volume<float>& surface, double exact_mm, int threads);

/// Returns that distance clamped to `most_mm` on either side, in less time.
Volume<float> surface_level_mm(const Volume<float>& surface, float most_mm, int threads);

}  // namespace larch::levelset
