// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/command_line.h"
#include "larch/app/outputs/paths_check.h"
#include "larch/app/records/input_digests.h"
#include "larch/config/config.h"

namespace larch::detail {

/// All that decides the bytes of the results of a run.
struct ResultsBasis {
  const Program& program;
  const CommandLine& line;
  std::vector<RunInput> inputs;  ///< all that are known, also those that do not count
  bool order_matters = true;     ///< of the cases of a list
};

/// The inputs that flags name, in their order, then the files of --config.
std::vector<RunInput> flag_inputs(const std::vector<GivenPath>& paths, const CommandLine& line);

/// The basis as records tell it: {"App", "ResultsVersion", "Options" (flags that are
/// neither files nor without effect on the results), "Config", "Seed", "Inputs"}. Reads inputs that
/// `digests` does not know. Throws InputError.
config::Json results_record(const ResultsBasis& basis, InputDigests& digests);

/// The text under a key of an object; empty if there is none.
std::string text_at(const config::Json& object, const char* key);

/// Tells, for people, how the run of `there`, a record as results_record writes it but from a file
/// that nobody vouches for, differs from that of `now`: "structure.threshold: 0.5 there, 0.6 now".
/// None: their results are the same. Inputs are read only if their stamps differ. Throws
/// InputError, also for an input that is not there.
std::vector<std::string> differences(const config::Json& there, const ResultsBasis& now,
                                     InputDigests& digests);

}  // namespace larch::detail
