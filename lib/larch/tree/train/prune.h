// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/tree/ensemble.h"
#include "larch/tree/train/samples.h"

namespace larch::tree {

/// Reduced-error pruning: turns nodes into leaves, bottom-up, where the held-out log-loss does not
/// rise by more than 1e-6, and removes what became unreachable. Returns how many nodes were turned,
/// and the posterior of each held-out sample afterwards.
size_t prune(Ensemble& tree, const std::vector<std::vector<HeldOutVisit>>& visits,
             const Samples& held_out, std::vector<double>* posterior);

}  // namespace larch::tree
