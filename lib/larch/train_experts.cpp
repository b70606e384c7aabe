// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/train_experts.h"

#include <algorithm>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/experts/atlases.h"
#include "larch/experts/train.h"
#include "larch/forest/evaluate.h"
#include "larch/forest/train.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/train/train.h"
#include "larch/voxels/slabs.h"
#include "larch/voxels/threshold.h"

namespace larch {
namespace {

/// Returns what an evaluation may take, on the CPU beside the volumes.
int64_t bytes_of_evaluation(const voxels::TrainConfig& config, const Context& context) {
  if (config.memory_bytes == 0) return voxels::default_memory_bytes(context.device);
  return config.memory_bytes / (context.device.is_cuda() ? 1 : 4);
}

/// Returns the probability of the structures together.
Volume<float> structure_probability(const pbt::ResidentModel& model,
                                    const voxels::TrainingVolume& volume, int64_t memory_bytes,
                                    const Context& context) {
  return pbt::evaluate_volume(model, volume.components(), {}, memory_bytes, context);
}
Volume<float> structure_probability(const forest::ResidentModel& model,
                                    const voxels::TrainingVolume& volume, int64_t memory_bytes,
                                    const Context& context) {
  const auto maps = forest::evaluate_volume(model, volume.components(), {.distribution = true},
                                            memory_bytes, context);
  return mapped<float>(maps.distribution[static_cast<size_t>(model.model.background)],
                       [](float p) { return 1 - p; });
}

/// Returns the structure that each voxel is of, as experts count them.
Volume<int8_t> parts_of(const pbt::Model& model, const voxels::TrainingVolume& volume) {
  const auto& table = model.experts.table;
  if (!table.empty()) {
    return mapped<int8_t>(volume.labels, [&](int32_t label) -> int {
      if (label == voxels::kUnlabelled) return experts::TrainingCase::kUnused;
      const auto at = std::ranges::find(table, label, &experts::Part::value);
      return at == table.end() ? int{experts::TrainingCase::kNone}
                               : static_cast<int>(at - table.begin());
    });
  }
  return mapped<int8_t>(volume.truth.empty() ? volume.classes : volume.truth, [](uint8_t value) {
    return value == static_cast<uint8_t>(voxels::VoxelClass::kPositive) ? 0
           : value == static_cast<uint8_t>(voxels::VoxelClass::kIgnored)
               ? experts::TrainingCase::kUnused
               : experts::TrainingCase::kNone;
  });
}
Volume<int8_t> parts_of(const forest::Model& model, const voxels::TrainingVolume& volume) {
  std::map<int32_t, int> parts{{voxels::kUnlabelled, experts::TrainingCase::kUnused}};
  int next = 0;
  for (int32_t c = 0; c < std::ssize(model.class_table); ++c) {
    const bool around = c == model.background;
    parts[model.class_table[static_cast<size_t>(c)].value] =
        around ? experts::TrainingCase::kNone : next++;
  }
  return mapped<int8_t>(volume.true_labels.empty() ? volume.labels : volume.true_labels,
                        [&](int32_t label) { return parts.at(label); });
}

int structures_of(const pbt::Model& model) {
  return std::max<int>(1, static_cast<int>(model.experts.table.size()));
}
int structures_of(const forest::Model& model) {
  return model.background < 0 ? 0 : static_cast<int>(model.classes) - 1;
}

/// Adds the voxels of a case to a search for the threshold of the structures together.
void add_case(const Volume<float>& probability, const Volume<int8_t>& part,
              voxels::ThresholdSearch& search) {
  for (int64_t i = 0; i < part.voxels(); ++i) {
    if (part[i] == experts::TrainingCase::kUnused) continue;
    search.add(probability[i], 0, part[i] < 0 ? voxels::ThresholdSearch::kNone : 0);
  }
}

/// Makes atlases of the first cases, one for each.
void add_atlases(const std::vector<experts::TrainingCase>& cases, size_t most, int steps,
                 experts::Experts& experts, const Context& context) {
  for (size_t i = 0; i < std::min(cases.size(), most); ++i) {
    experts.atlases.push_back(
        experts::make_atlas(experts, *cases[i].image, cases[i].part, steps, context));
  }
}

/// Compares trees, experts, and experts with the votes of atlases on cases that none of them
/// learned from.
struct Comparison {
  const experts::Trained& trained;
  const std::vector<experts::TrainingCase>& cases;
  experts::Resident all{};
  std::vector<experts::Resident> without_fold{};
  voxels::ThresholdSearch trees{1}, experts{1}, atlases{1};

  Comparison(const experts::Trained& of, const std::vector<experts::TrainingCase>& unseen,
             const Device& device)
      : trained(of), cases(unseen), all(experts::make_resident(of.all, device)) {
    for (const experts::Experts& one : of.without_fold) {
      without_fold.push_back(experts::make_resident(one, device));
    }
  }
  /// The atlases of the case and of its group do not vote.
  void add(size_t number, int steps, int64_t memory_bytes, const Context& context) {
    const experts::TrainingCase& one = cases[number];
    add_case(one.probability, one.part, trees);
    const auto fold = static_cast<size_t>(one.fold);
    auto parts = experts::look_again(trained.without_fold[fold], without_fold[fold], *one.image,
                                     steps, one.probability, memory_bytes, context);
    if (parts.empty()) parts.emplace_back(one.image->grid());
    add_case(experts::together(parts), one.part, experts);
    if (trained.all.atlases.empty()) return;
    std::vector<bool> left_out(trained.all.atlases.size());
    for (size_t a = 0; a < left_out.size(); ++a) {
      left_out[a] = a == number || (!one.group.empty() && cases[a].group == one.group);
    }
    experts::ask_atlases(trained.all, all, *one.image, steps, left_out, memory_bytes, parts,
                         context);
    add_case(experts::together(parts), one.part, atlases);
  }
};

/// Keeps the experts that are better than trees or that are wanted anyway, and the atlases that
/// are better than experts alone, with their threshold.
template <class M>
void keep_better(M& model, experts::Trained trained,
                 const std::vector<experts::TrainingCase>& cases, const voxels::TrainConfig& config,
                 voxels::TrainReport& report, const Context& context) {
  Comparison unseen(trained, cases, context.device);
  for (size_t i = 0; i < cases.size(); ++i) {
    unseen.add(i, model.space.intensity.steps, bytes_of_evaluation(config, context), context);
  }
  const auto alone = unseen.trees.best(), voted = unseen.atlases.best();
  auto better = unseen.experts.best();
  if (!alone || !better) throw InputError("experts: no voxel of the cases is of a structure");
  const bool kept =
      config.experts == true || std::max(better->dice, voted ? voted->dice : 0) > alone->dice;
  context.info(formatted(
      "Dice of cases that were not learned from: trees %.4f, experts %.4f at the "
      "threshold %.2f%s",
      alone->dice, better->dice, better->threshold, kept ? "" : "; experts are left out"));
  report.figures.emplace_back("unseen_dice_of_trees", alone->dice);
  report.figures.emplace_back("unseen_dice_of_experts", better->dice);
  if (!kept) {
    model.experts = {};
    return;
  }
  auto& atlases = trained.all.atlases;
  std::erase_if(atlases, [](const experts::Atlas& atlas) { return atlas.image.empty(); });
  if (voted) {
    report.figures.emplace_back("unseen_dice_of_fusion", voted->dice);
    const bool votes = voted->dice > better->dice;
    context.info(formatted("with the votes of %zu atlases %.4f at the threshold %.2f%s",
                           atlases.size(), voted->dice, voted->threshold,
                           votes ? "" : "; atlases are left out"));
    if (votes) better = voted;
    if (!votes) atlases.clear();
  }
  trained.all.table = std::move(model.experts.table);
  model.experts = std::move(trained.all);
  std::erase_if(model.info.validation,
                [](const auto& m) { return m.first == "dice" || m.first == "threshold"; });
  model.info.validation.emplace_back("dice", better->dice);
  model.info.validation.emplace_back("threshold", better->threshold);
}

/// Returns the fold of each volume that was learned from, `folds` of the others. Those of a group
/// have the same. Throws InputError if all are in one.
std::vector<size_t> folds_of(const std::vector<voxels::TrainingVolume>& volumes,
                             const std::vector<size_t>& learned_from, size_t folds) {
  std::vector<size_t> fold(volumes.size(), folds);
  std::map<std::string, size_t> of_group;
  size_t next = 0;
  for (const size_t v : learned_from) {
    const std::string& group = volumes[v].group;
    const bool is_new = group.empty() || of_group.emplace(group, next).second;
    fold[v] = (is_new ? next++ : of_group[group]) % folds;
  }
  if (next >= folds) return fold;
  throw InputError("experts: " + std::to_string(next) + " cases or groups are too few; " +
                   std::to_string(folds) + " are needed");
}

/// Returns the cases with what trees find that did not learn from them: those of each fold learn
/// from the others.
template <class M>
std::vector<experts::TrainingCase> unseen_cases(const M& model, voxels::TrainConfig config,
                                                std::vector<voxels::TrainingVolume>& volumes,
                                                const std::vector<size_t>& fold, size_t folds,
                                                const Context& context) {
  config.validation.fraction = 0;
  std::vector<experts::TrainingCase> cases;
  for (size_t f = 0; f < folds; ++f) {
    context.info("experts: trees that do not see part " + std::to_string(f + 1) + " of " +
                 std::to_string(folds) + " of the cases");
    const auto is_other = [&](size_t v) { return fold[v] != f && fold[v] < folds; };
    std::vector<voxels::TrainingVolume> others;  // they are moved there and back
    for (size_t v = 0; v < volumes.size(); ++v) {
      if (is_other(v)) others.push_back(std::move(volumes[v]));
    }
    constexpr bool kIsForest = std::is_same_v<M, forest::Model>;
    M unseeing;
    if constexpr (kIsForest) {
      unseeing = forest::train_forest(others, model.space, config, {}, nullptr, context);
    } else {
      unseeing = pbt::train_trees(others, model.space, config, {}, nullptr, context);
    }
    auto back = others.begin();
    for (size_t v = 0; v < volumes.size(); ++v) {
      if (is_other(v)) volumes[v] = std::move(*back++);
    }
    const std::conditional_t<kIsForest, forest::ResidentModel, pbt::ResidentModel> resident(
        std::move(unseeing), context.device);
    for (size_t v = 0; v < volumes.size(); ++v) {
      if (fold[v] != f) continue;
      const auto volume = volumes[v].fetch();
      // Those of a volume on the disk go when its copy goes.
      const auto voxels = volumes[v].scratch
                              ? std::make_shared<const Volume<int16_t>>(volume->voxels)
                              : std::shared_ptr<const Volume<int16_t>>(volume, &volume->voxels);
      cases.push_back(
          {voxels,
           structure_probability(resident, *volume, bytes_of_evaluation(config, context), context),
           parts_of(model, *volume), static_cast<int>(f), volume->group});
    }
  }
  return cases;
}

}  // namespace

template <class M>
void add_experts(M& model, const voxels::TrainConfig& config,
                 std::vector<voxels::TrainingVolume>& volumes, voxels::TrainReport& report,
                 const Context& context) {
  for (const auto& [value, name] : config.labels.names) {
    if (std::is_same_v<M, pbt::Model> && config.needs_experts()) {
      model.experts.table.push_back({value, name});
    }
  }
  constexpr size_t kFewVolumes = 20, kManyVolumes = 60;
  const int parts = structures_of(model);
  const bool fits = parts > 0 && parts <= experts::kMaximumParts && model.components.empty();
  if (config.needs_experts() && !fits) {
    throw UsageError("experts: the model has no background, several components, or more than " +
                     std::to_string(experts::kMaximumParts) + " structures; set experts to false");
  }
  const bool tries = config.needs_experts() || (fits && volumes.size() >= kFewVolumes);
  if (!config.experts.value_or(tries)) return;
  try {
    const auto split = voxels::hold_out(volumes, *config.validation.fraction, context.seed);
    const size_t folds = volumes.size() < kManyVolumes ? 4 : 2;
    const std::vector<size_t> fold = folds_of(volumes, split.train, folds);
    const std::vector<experts::TrainingCase> cases =
        unseen_cases(model, config, volumes, fold, folds, context);
    auto trained =
        experts::train(cases, parts, static_cast<int>(folds), model.space.intensity.steps,
                       bytes_of_evaluation(config, context), context);
    add_atlases(cases, static_cast<size_t>(config.fusion.atlases), model.space.intensity.steps,
                trained.all, context);
    keep_better(model, std::move(trained), cases, config, report, context);
  } catch (const MemoryError& error) {
    if (config.memory_bytes == 0 || context.device.is_cuda()) throw;
    throw MemoryError(std::string("experts have a quarter of --memory: ") + error.what());
  } catch (const InputError& error) {
    if (config.needs_experts()) throw;
    context.info(std::string(error.what()) + "; the model has no experts");
  }
}

template void add_experts(pbt::Model&, const voxels::TrainConfig&,
                          std::vector<voxels::TrainingVolume>&, voxels::TrainReport&,
                          const Context&);
template void add_experts(forest::Model&, const voxels::TrainConfig&,
                          std::vector<voxels::TrainingVolume>&, voxels::TrainReport&,
                          const Context&);

}  // namespace larch
