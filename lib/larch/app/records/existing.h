// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/app/records/results_record.h"

namespace larch::detail {

/// An output, and where what made it is recorded.
struct RecordedOutput {
  enum class Kind { kFile, kFolder, kReport };
  std::string path;
  Kind kind = Kind::kFile;
  std::string role{};  ///< of a file: the name of its flag, without dashes
};

/// The role of the output that a flag gives this name; empty if none does.
std::string role_of_output(const std::vector<GivenPath>& paths, const std::string& path);

/// The outputs of a run whose cases are not looked at one by one.
std::vector<RecordedOutput> recorded_outputs(const PlannedOutputs& planned,
                                             const std::vector<GivenPath>& paths,
                                             const std::string& report);

/// What --skip-existing and --force say about outputs that may be there. Outputs that are the same
/// run's, in the same role and with the content that it wrote, are skipped if all are there, with
/// the companions that their sidecars name, and computed again if a part is missing; by name alone
/// companions do not count. A sidecar or a companion that no sidecar of this toolkit vouches for is
/// in the way of what is missing. Throws InputError.
EarlierOutputs earlier_outputs(const std::vector<RecordedOutput>& outputs,
                               const std::vector<std::string>& companions,
                               const ResultsBasis& basis, InputDigests& digests);

/// The sidecar of outputs that are being replaced: should the run be killed before the new sidecar
/// has its name, nobody takes the old one for that of the new output. `names`: as in the new one.
std::string sidecar_of_replaced(const std::string& app, const std::vector<std::string>& names);

/// Whether a file is a sidecar of this toolkit.
bool is_sidecar(const std::string& path);

/// Whether a file is a sidecar of this toolkit that names `output`.
bool is_sidecar_of(const std::string& sidecar, const std::string& output);

/// Whether a file is a sidecar of this toolkit that names `output`, and `output` is not there, as a
/// run leaves it that was killed in between. It may be replaced unasked.
bool is_orphan(const std::string& sidecar, const std::string& output);

/// The sidecars of these outputs that are orphans.
std::vector<std::string> orphans_of(const std::vector<std::string>& outputs);

}  // namespace larch::detail
