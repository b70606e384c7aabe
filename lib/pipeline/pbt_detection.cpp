// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/pbt_detection.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/image/integral.h"
#include "larch/image/preprocess.h"
#include "larch/io/filters.h"
#include "larch/io/image.h"
#include "larch/mesh/marching_cubes.h"

namespace larch::pipeline {
namespace {

/// Names and times the steps of a detection.
class Steps {
 public:
  Steps(Detection& detection, const Context& context) : detection_(detection), context_(context) {}
  void begin(const std::string& name) {
    end();
    name_ = name;
    start_ = std::chrono::steady_clock::now();
    constexpr double kSteps = 6;
    context_.progress(std::min(1.0, static_cast<double>(detection_.seconds.size()) / kSteps), name);
    if (context_.stop_requested()) {
      throw Stopped("stopped before " + name, static_cast<ExitCode>(context_.stop->load()));
    }
  }
  void end() {
    if (name_.empty()) return;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
    detection_.seconds.emplace_back(name_, took.count());
    name_.clear();
  }

 private:
  Detection& detection_;
  const Context& context_;
  std::string name_;
  std::chrono::steady_clock::time_point start_;
};

/// The region of interest in model space: voxels whose nearest input voxel is set.
Volume<uint8_t> roi_in_model_space(const Volume<uint8_t>& roi, const Grid& grid,
                                   const Context& context) {
  LabelVolume labels(roi.grid());
  std::copy(roi.begin(), roi.end(), labels.begin());
  const LabelVolume resampled = image::resample_labels(labels, grid, context);
  Volume<uint8_t> out(grid);
  std::transform(resampled.begin(), resampled.end(), out.begin(),
                 [](int32_t v) { return static_cast<uint8_t>(v != 0); });
  return out;
}

/// Moves the threshold to 1/2 on the logit scale, so that the energy of the graph cut, which knows
/// only 1/2, respects it.
Volume<float> centred(const Volume<float>& probability, double threshold) {
  Volume<float> out = probability;
  if (threshold == 0.5) return out;
  for (float& p : out) {
    const double on = p * (1 - threshold), off = (1 - p) * threshold;
    p = static_cast<float>(on / (on + off));
  }
  return out;
}

Volume<uint8_t> segment(const Volume<float>& probability, const Volume<float>& image,
                        const StructureConfig& config, const Context& context) {
  const Volume<float> p = centred(probability, config.threshold);
  Volume<uint8_t> mask;
  if (config.regularise) {
    mask = regularise::graph_cut(p, &image, config.graph_cut, context);
  } else {
    mask = Volume<uint8_t>(p.grid());
    std::transform(p.begin(), p.end(), mask.begin(),
                   [](float value) { return static_cast<uint8_t>(value > 0.5F); });
  }
  if (config.keep_components > 0) mask = keep_largest_component(mask, config.keep_components);
  if (config.fill_holes) mask = fill_holes(mask);
  return mask;
}

Volume<float> posterior(const pbt::Model& model, const Volume<float>& image,
                        const Volume<uint8_t>* roi, const DetectConfig& config, Steps& steps,
                        const Context& context) {
  steps.begin("model space");
  const Volume<int16_t> voxels = image::to_model_space(image, model.space, context);
  Volume<uint8_t> model_roi;
  if (roi != nullptr) model_roi = roi_in_model_space(*roi, voxels.grid(), context);
  steps.begin("integral volumes");
  const image::IntegralSet set = image::integral_set(voxels.view(), model.channels, model.padding,
                                                     std::max(1, model.reach()), context);
  steps.begin("evaluation");
  Volume<float> p = pbt::evaluate<float>(model, set, voxels.grid(), config.evaluate, context,
                                         roi != nullptr ? &model_roi : nullptr);
  const bool same = describe_difference(p.grid(), image.grid(), 1e-6).empty();
  return same ? p : image::resample(p, image.grid(), context);
}

/// The probabilities as integers: 1 becomes the largest value of T.
template <class T>
Volume<T> scaled(const Volume<float>& probability) {
  Volume<T> out(probability.grid());
  std::transform(probability.begin(), probability.end(), out.begin(), [](float p) {
    return static_cast<T>(std::nearbyint(p * double{std::numeric_limits<T>::max()}));
  });
  return out;
}

}  // namespace

Detection detect_pbt(const pbt::Model& model, const Volume<float>& image,
                     const Volume<uint8_t>* roi, const DetectConfig& config,
                     const Context& context) {
  Detection detection;
  Steps steps(detection, context);
  detection.probability = posterior(model, image, roi, config, steps, context);
  if (roi != nullptr) {
    for (int64_t i = 0; i < image.voxels(); ++i) {
      if ((*roi)[i] == 0) detection.probability[i] = 0;
    }
  }
  steps.begin("structure");
  const Volume<uint8_t> mask = segment(detection.probability, image, config.structure, context);
  detection.voxels = std::count_if(mask.begin(), mask.end(), [](uint8_t m) { return m != 0; });
  detection.volume_mm3 = static_cast<double>(detection.voxels) * image.grid().voxel_volume_mm3() *
                         std::abs(determinant(image.grid().direction));
  detection.labels = LabelVolume(image.grid());
  std::transform(mask.begin(), mask.end(), detection.labels.begin(),
                 [&](uint8_t m) { return m != 0 ? model.info.class_value : 0; });
  steps.begin("surface");
  detection.surface = mesh::smooth(mesh::marching_cubes(mask, context), config.smooth, context);
  steps.end();
  context.progress(1, "done");
  return detection;
}

void write_probability(const std::string& path, const Volume<float>& probability,
                       pbt::ProbabilityType type) {
  switch (type) {
    case pbt::ProbabilityType::kFloat32:
      write_volume(path, probability);
      break;
    case pbt::ProbabilityType::kUint16:
      write_volume(path, scaled<uint16_t>(probability));
      break;
    case pbt::ProbabilityType::kUint8:
      write_volume(path, scaled<uint8_t>(probability));
      break;
  }
}

std::string candidates_tsv(const Volume<float>& probability, int64_t count) {
  std::string text = "rank\ti\tj\tk\tx_mm\ty_mm\tz_mm\tprobability\n";
  int rank = 1;
  for (const pbt::Candidate& c : pbt::top_candidates(probability, count)) {
    const Vec3i at = probability.grid().voxel(c.voxel);
    const Vec3d p = world_from_index(probability.grid(), at.cast<double>());
    char line[256];
    std::snprintf(line, sizeof line, "%d\t%d\t%d\t%d\t%.4f\t%.4f\t%.4f\t%.6f\n", rank++, at.x, at.y,
                  at.z, p.x, p.y, p.z, static_cast<double>(c.probability));
    text += line;
  }
  return text;
}

}  // namespace larch::pipeline
