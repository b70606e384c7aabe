// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "larch/cases/case_list.h"
#include "larch/config/fields.h"

namespace larch::pipeline {

enum class PredictionKind { kLabels, kMeshes, kPoses };
constexpr auto enum_names(PredictionKind*) {
  return std::to_array<EnumName<PredictionKind>>({{PredictionKind::kLabels, "labels"},
                                                  {PredictionKind::kMeshes, "meshes"},
                                                  {PredictionKind::kPoses, "poses"}});
}

/// Names predictions and references: both of them, a list of pairs, or a folder of predictions
/// beside a list or a data set with the references. Others are empty.
struct PairSource {
  PredictionKind kind = PredictionKind::kLabels;
  std::string prediction, reference, list, dataset, folder;
};

/// Predictions (Case::image) and references (Case::label).
struct Pairs {
  std::vector<Case> cases;
  CaseColumns columns;                         ///< that are read of the list
  std::set<std::string> missing{};             ///< ids of the cases whose prediction does not exist
  std::map<std::string, std::string> names{};  ///< of structures, by label, as far as they are told
  std::string note{};                          ///< which cases were chosen; may be empty
};

/// Returns the file of a case in a folder, by its id and the endings of the kind; where there is
/// none, the name that it most likely would have. Throws InputError for an id that is no file name
/// and for two files that may be it.
std::string prediction_in(const std::string& folder, const std::string& id, PredictionKind kind);

/// Finds the pairs. In a folder the prediction of a case is the file that a run of a program over a
/// list writes there, or others in its place: the id and an ending of the kind. References are the
/// column `reference` of the list, else `poses` or `label`; or the labels of the data set: of its
/// test images, if there is a folder labelsTs and the folder has predictions of them, or else of
/// its training images. Throws InputError: as read_case_list and read_dataset; an id that is no
/// file name; two files that may be the prediction of a case; a folder without any prediction.
Pairs find_pairs(const PairSource& source);

}  // namespace larch::pipeline
