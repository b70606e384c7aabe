// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/levelset.h"
#include "larch/levelset/evolve/evolve.h"

// The recipe of a segmentation: an image with seeds becomes fields, the fields are moved, and
// labels are read from them. First surfaces are made on the host, speeds where the fields are; both
// in doubles that are rounded once, so that both devices move the same fields.
namespace larch::levelset {

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

/// Reads the labels of a run.
SegmentResult finish_segmentation(SegmentRun run, const Context& context);

}  // namespace larch::levelset
