// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/outputs.h"
#include "larch/app/results_record.h"

namespace larch::detail {

/// An output, and where what made it is recorded.
struct RecordedOutput {
  enum class Kind { kFile, kFolder, kReport };
  std::string path;
  Kind kind = Kind::kFile;
};

/// The outputs of a run whose cases are not looked at one by one.
std::vector<RecordedOutput> recorded_outputs(const PlannedOutputs& planned,
                                             const std::string& report);

/// What --skip-existing and --force say about outputs that may be there. Outputs that are the same
/// run's are skipped if all are there, and computed again if a part is missing. Throws InputError.
EarlierOutputs earlier_outputs(const std::vector<RecordedOutput>& outputs,
                               const ResultsBasis& basis, InputDigests& digests);

/// The sidecar of outputs that are being replaced: should the run be killed before the new sidecar
/// has its name, nobody takes the old one for that of the new output.
std::string sidecar_of_replaced(const std::string& app);

/// Whether a file is a sidecar of this toolkit.
bool is_sidecar(const std::string& path);

}  // namespace larch::detail
