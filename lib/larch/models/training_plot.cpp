// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/training_plot.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "larch/core/text.h"

namespace larch::models {
namespace {

/// Nodes of one depth.
struct Depth {
  std::vector<const pbt::NodeHistory*> nodes;
  size_t rounds = 0;  ///< of the longest
};

std::vector<Depth> by_depth(const pbt::Model& model) {
  std::vector<Depth> depths;
  for (const pbt::NodeHistory& entry : model.history) {
    if (entry.samples == 0) continue;
    const auto depth = static_cast<size_t>(model.nodes.at(static_cast<size_t>(entry.node)).depth);
    depths.resize(std::max(depths.size(), depth + 1));
    depths[depth].nodes.push_back(&entry);
    depths[depth].rounds = std::max(depths[depth].rounds, entry.errors.size());
  }
  return depths;
}

picture::Curve curve_of(const Depth& depth) {
  std::vector<double> sums(depth.rounds + 1, 0);
  double samples = 0;
  for (const pbt::NodeHistory* node : depth.nodes) {
    double bound = 1;
    samples += node->samples;
    for (size_t t = 0; t < sums.size(); ++t) {
      if (t > 0 && t <= node->errors.size()) {
        const double error = node->errors[t - 1];
        bound *= 2 * std::sqrt(error * (1 - error));
      }
      sums[t] += node->samples * bound;
    }
  }
  picture::Curve curve;
  for (size_t t = 0; t < sums.size(); ++t) {
    curve.x.push_back(static_cast<double>(t));
    curve.y.push_back(sums[t] / samples);
  }
  return curve;
}

std::string count_text(size_t count, const char* one, const char* more) {
  return std::to_string(count) + " " + (count == 1 ? one : more);
}

std::string title_of(const pbt::Model& model) {
  std::string title = "training of " + count_text(model.trees(), "tree", "trees") + ", " +
                      count_text(model.nodes.size(), "node", "nodes");
  for (auto [name, value] : model.info.validation) {
    if (name == "volumes" || name.starts_with("depth ")) continue;
    std::replace(name.begin(), name.end(), '_', ' ');
    title += ", held-out " + name + formatted(" %.5g", value);
  }
  return title;
}

/// Scores on held-out volumes over the depth at which the trees are cut off.
RgbImage depth_plot(const std::vector<voxels::DepthScore>& scores) {
  picture::Curve log_loss{.name = "log-loss"}, missed{.name = "1 - AUC"};
  for (const voxels::DepthScore& score : scores) {
    for (picture::Curve* curve : {&log_loss, &missed}) {
      curve->x.push_back(static_cast<double>(curve->x.size()));
    }
    log_loss.y.push_back(score.log_loss);
    missed.y.push_back(1 - score.auc);
  }
  picture::PlotOptions options;
  options.title = "held-out volumes";
  options.x_label = "depth at which the trees are cut off";
  options.y_label = "error";
  return picture::plot(std::vector{log_loss, missed}, options);
}

}  // namespace

RgbImage forest_plot(const forest::Model& model) {
  picture::Curve curve{.name = "accuracy"};
  for (const double accuracy : forest::depth_accuracies(model.info)) {
    curve.x.push_back(static_cast<double>(curve.x.size()));
    curve.y.push_back(accuracy);
  }
  picture::PlotOptions options;
  options.title = "training of " + count_text(model.trees(), "tree", "trees") + ", " +
                  count_text(model.nodes.size(), "node", "nodes") +
                  (curve.x.empty() ? ", nothing held out" : ", held-out volumes");
  options.x_label = "depth at which the trees are cut off";
  options.y_label = "share of voxels with the right label";
  return picture::plot(std::vector{curve}, options);
}

std::vector<picture::Curve> history_curves(const pbt::Model& model) {
  std::vector<picture::Curve> curves;
  const std::vector<Depth> depths = by_depth(model);
  for (size_t d = 0; d < depths.size(); ++d) {
    if (depths[d].nodes.empty()) continue;
    picture::Curve& curve = curves.emplace_back(curve_of(depths[d]));
    curve.name = "depth " + std::to_string(d) + ", " +
                 count_text(depths[d].nodes.size(), "node", "nodes") + " trained";
  }
  return curves;
}

RgbImage history_plot(const pbt::Model& model) {
  picture::PlotOptions options;
  options.title = title_of(model);
  options.x_label = "round of boosting";
  options.y_label = "bound of the training error, mean of the nodes";
  RgbImage picture = picture::plot(history_curves(model), options);
  const std::vector<voxels::DepthScore> scores = voxels::depth_scores(model.info);
  if (scores.empty()) return picture;
  const RgbImage below = depth_plot(scores);
  picture.height += below.height;
  picture.rgb.insert(picture.rgb.end(), below.rgb.begin(), below.rgb.end());
  return picture;
}

}  // namespace larch::models
