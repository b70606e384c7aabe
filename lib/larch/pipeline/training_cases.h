// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/cases/case_list.h"
#include "larch/hdn/train/train.h"
#include "larch/image/preprocess.h"

namespace larch::pipeline {

/// The cell of a list with what makes cases alike, such as the patient: no case is searched by
/// classifiers that learned from its group.
inline constexpr const char* kGroupColumn = "group";

/// A further cell of a case; empty if the list does not have the column.
std::string cell_of(const Case& c, const char* column);

/// Gain and offset of a case, drawn by its digest, so that models do not rely on intensities. They
/// vary by these shares, of 1 and of the steps of the rule.
void vary_intensity(hdn::TrainingCase& c, double gain, double offset,
                    const image::IntensityRule& rule, uint64_t seed);

/// Numbers the groups, each case without a name of one being its own, and sorts cases by digests.
void group_and_sort(std::vector<hdn::TrainingCase>& cases, std::vector<std::string> group_of);

}  // namespace larch::pipeline
