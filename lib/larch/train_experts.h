// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/core/context.h"
#include "larch/forest/model.h"
#include "larch/pbt/model.h"
#include "larch/voxels/samples.h"
#include "larch/voxels/train_config.h"

namespace larch {

/// Gives a model that was trained on `volumes` experts, where the configuration wants them or they
/// are better on cases that they did not learn from, with the threshold that is best there. Nobody
/// may use the volumes afterwards. Throws UsageError and InputError where experts are wanted but
/// cannot be trained, MemoryError, and Stopped.
template <class M>
void add_experts(M& model, const voxels::TrainConfig& config,
                 std::vector<voxels::TrainingVolume>& volumes, voxels::TrainReport& report,
                 const Context& context);

}  // namespace larch
