// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "larch/core/error.h"
#include "larch/hdn/train/stage_training.h"

namespace larch::hdn {
namespace {

/// The candidates that the root detector of a structure finds in each case.
using Positions = std::vector<std::vector<Candidate>>;

Positions find_everywhere(const std::vector<TrainingCase>& cases, const Model& model, size_t s,
                          const HdnConfig& config, const SharedConfig& shared,
                          const Context& context) {
  StageTask task{cases, model, s, {}, {}, {}, config, shared};
  task.stage.keep = config.keep_first[0];
  for (const TrainingCase& c : cases) task.searches.push_back(root_search(c, model.structures[s]));
  StageReport report;
  return cross_predict(task, train_position(task, report, context), {}, context).kept;
}

/// The mean over the cases of the share of the candidates' probability that lies within two voxels
/// of the truth; with a parent, each candidate times the Gaussian of its place as seen from the
/// parent's best one.
double mass_at_truth(const std::vector<TrainingCase>& cases, const Positions& own, size_t s,
                     const Positions* parents, size_t parent, double spacing_mm) {
  std::vector<pose::RelativePose> relative;
  const auto seen_from = [](const Vec3d& from, const Vec3d& at) {
    return pose::relative_pose({from, {}, {1, 1, 1}}, {at, {}, {1, 1, 1}});
  };
  for (size_t c = 0; c < cases.size() && parents != nullptr; ++c) {
    if (!cases[c].truth[s] || !cases[c].truth[parent]) continue;
    relative.push_back(seen_from(cases[c].truth[parent]->centre_mm, cases[c].truth[s]->centre_mm));
  }
  if (parents != nullptr && relative.empty()) return 0;
  const pose::RelativeGaussian gaussian = pose::fit_gaussian(relative, {spacing_mm, 1, 1});
  pose::CentreGaussian prior;
  if (parents != nullptr) prior = pose::centre_gaussian(gaussian, kPriorLimit);
  double sum = 0, count = 0;
  for (size_t c = 0; c < cases.size(); ++c) {
    if (!cases[c].truth[s]) continue;
    double near = 0, all = 0;
    for (const Candidate& k : own[c]) {
      double mass = static_cast<double>(k.probability);
      if (parents != nullptr) {
        if ((*parents)[c].empty()) continue;
        const Vec3d d = k.pose.centre_mm - (*parents)[c][0].pose.centre_mm -
                        Vec3d{gaussian.mean[0], gaussian.mean[1], gaussian.mean[2]};
        mass *= exp_of(-0.5 * pose::mahalanobis_square(prior, d));
      }
      all += mass;
      if (norm(k.pose.centre_mm - cases[c].truth[s]->centre_mm) <= 2 * spacing_mm) near += mass;
    }
    sum += all > 0 ? near / all : 0;
    count += 1;
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace

void choose_order(std::vector<TrainingCase>& cases, Model& model, const HdnConfig& config,
                  const SharedConfig& shared, const Context& context) {
  const size_t count = model.structures.size();
  const double spacing_mm = model.spacing_mm(0);
  std::vector<Positions> found;
  for (size_t s = 0; s < count; ++s) {
    model.structures[s].mean = mean_pose(cases, s, model.structures[s].name);
    found.push_back(find_everywhere(cases, model, s, config, shared, context));
  }
  std::vector<size_t> order;
  std::vector<int32_t> parents;
  std::vector<bool> placed(count, false);
  while (order.size() < count) {
    double best = -1;
    size_t chosen = 0;
    int32_t parent = -1;
    for (size_t s = 0; s < count; ++s) {
      if (placed[s]) continue;
      for (int32_t p = -1; p < static_cast<int32_t>(order.size()); ++p) {
        const size_t of = p < 0 ? 0 : order[static_cast<size_t>(p)];
        const double mass =
            mass_at_truth(cases, found[s], s, p < 0 ? nullptr : &found[of], of, spacing_mm);
        if (mass > best) {
          best = mass;
          chosen = s;
          parent = p;
        }
      }
    }
    placed[chosen] = true;
    order.push_back(chosen);
    parents.push_back(parent);
    context.info(
        "found " + std::string(parent < 0 ? "everywhere" : "from its parent") + ": '" +
        model.structures[chosen].name + "'" +
        (parent < 0
             ? ""
             : " after '" + model.structures[order[static_cast<size_t>(parent)]].name + "'") +
        ", share of the probability at the truth " + std::to_string(best));
  }
  const auto permute = [&](auto& values) {
    auto old = values;
    for (size_t k = 0; k < count; ++k) values[k] = old[order[k]];
  };
  permute(model.structures);
  for (size_t k = 0; k < count; ++k) model.structures[k].parent = parents[k];
  for (TrainingCase& c : cases) permute(c.truth);
}

}  // namespace larch::hdn
