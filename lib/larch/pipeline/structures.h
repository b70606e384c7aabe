// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "larch/cases/case_program.h"
#include "larch/data/mesh.h"
#include "larch/data/volume.h"
#include "larch/models.h"

// Tells of each structure in a label map, for records, status.tsv and the page of a folder.
namespace larch::pipeline {

/// The column of a list with the true label maps, for programs that have another use for labels.
inline const CaseColumn kReference{kReferenceColumn, /*is_file=*/true, /*required=*/false,
                                   /*is_reference=*/true};

/// Returns the voxels of each label that occurs.
std::map<int32_t, int64_t> count_labels(const LabelVolume& labels);

/// Adds the structures of a label map, with their colours and volumes, to the result. Returns the
/// voxels of each label that occurs.
std::map<int32_t, int64_t> add_structures(const LabelVolume& labels, const LabelTable& table,
                                          Outputs& outputs);

/// Returns the labels of a reference that add_scores compares, and 0 elsewhere.
LabelVolume compared_labels(const LabelVolume& truth, const LabelTable& table, const Model* model);

/// Gives each of the structures in `outputs`, which are those of `table`, its Dice with a reference
/// on the same grid, and adds the mean over them as the figure "dice". A label is compared with the
/// same label, but the one structure of `model` (which may be null), and those of boundaries, with
/// all that it was trained on.
void add_scores(const LabelVolume& labels, const LabelVolume& truth, const LabelTable& table,
                const Model* model, const Context& context, Outputs& outputs);

/// Compares a label map with the reference of its case, a file on the same grid, by add_scores.
/// Nothing is done if `reference` is empty; a reference that cannot be compared is a note, since
/// the result is as good without it.
void add_dice(const cases::CaseJob& c, const std::string& reference, const LabelVolume& labels,
              const LabelTable& table, const Model* model, Outputs& outputs);

}  // namespace larch::pipeline
