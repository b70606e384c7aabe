// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/cases/case_inputs.h"
#include "larch/cases/memory.h"
#include "larch/cases/stages.h"
#include "larch/core/context.h"
#include "larch/io/table/case_list.h"

namespace larch::cases {

/// A column of status.tsv: the figure that the outputs of a case have under this name
/// (Outputs::metric).
struct FigureColumn {
  std::string name;
  bool is_count = false;  ///< a whole number; else six digits are written
};

/// A folder that receives the files of each case.
struct CaseFolder {
  std::string path;   ///< exists
  CaseWriter writer;  ///< of the skeleton
  /// The names of what a case writes, all of them below `path`.
  std::function<CaseFiles(const Case&)> files;
  /// What a case is made from, for its records.
  std::function<std::vector<RunInput>(const Case&)> inputs = inputs_of_image;
  std::vector<FigureColumn> figures{};
  /// Columns of the list (Case::further) that status.tsv gets as well.
  std::vector<std::string> carried{};
  /// What is said of rejected cases at the end of "in 2 ...".
  std::string rejection = "the result was rejected";
};

/// A run over many cases.
struct CaseRun {
  std::vector<Case> cases;
  /// What the cases in flight may take on the host together, unless one takes more by itself; 0:
  /// half of what is free.
  int64_t memory_bytes = 0;
  /// None: the cases make one result together, and the first failure ends the run.
  std::optional<CaseFolder> folder{};
};

/// What a program does with each case, which is given by its number in CaseRun::cases. A `Job` is
/// what is known of a case on its way. `read`, `survey` and `finish` run in threads beside the
/// computing one, several at a time for different cases; their context has one of the threads each,
/// or a few. `compute` has all threads and the device; one case is computed at a time. No step sees
/// the stop flag. What a step throws is the failure of its case, but a DeviceError ends the run.
template <class Job>
struct CaseSteps {
  /// Known before the case is read. What it throws is left for `read` to find again.
  std::function<MemoryNeed(size_t)> bytes;
  std::function<Job(size_t, const Context&)> read;
  std::function<void(size_t, Job&, const Context&)> compute;
  /// Bytes that finishing really takes, asked where the bound of `bytes` does not fit; may be
  /// empty.
  std::function<int64_t(size_t, Job&, const Context&)> survey{};
  /// The files of the case, which are written at once, in the same thread; their writers may share
  /// the job. None if `grow` did not grant what was asked for: then the case is done again later,
  /// alone. Without a folder nothing is written, and the step may be left out.
  std::function<std::optional<Outputs>(size_t, const std::shared_ptr<Job>&, const Grow&,
                                       const Context&)>
      finish{};
};

/// Checks the names of all files before anything is done. Throws InputError (an id that cannot be a
/// file name), UsageError (two files of one name, an output that would replace an input, a carried
/// column that the list does not have or status.tsv has already) and
/// OutputError (an output is there that may not be replaced; only if the folder has a writer).
void check_cases(const CaseRun& run);

/// What is to be done about one of the cases, which has a folder. A companion has no record of its
/// own: where it is missing, not all outputs are there.
EarlierOutputs earlier_of(const CaseRun& run, const Case& c);

namespace detail {

/// CaseSteps without the type of the job.
struct AnySteps {
  std::function<MemoryNeed(size_t)> bytes;
  std::function<std::shared_ptr<void>(size_t, const Context&)> read;
  std::function<void(size_t, void*, const Context&)> compute;
  std::function<int64_t(size_t, void*, const Context&)> survey{};
  std::function<std::optional<Outputs>(size_t, const std::shared_ptr<void>&, const Grow&,
                                       const Context&)>
      finish;
};
Outputs run_any_cases(const CaseRun& run, const AnySteps& steps, const Context& context);

}  // namespace detail

/// Leads all cases through the steps after check_cases: reading and finishing of other cases go on
/// while one is computed, in threads beside those of `context`; with one thread on the CPU all goes
/// one after the other. The results do not depend on that.
///
/// With a folder, a case whose outputs are there already is skipped as --skip-existing says, a case
/// that fails does not stop the others, and the folder gets status.tsv (status_table.h): id, status
/// (ok, rejected, failed, skipped), message, seconds, the figures, ended. Returns the figures of
/// the run; its status is rejected, with exit code 7, if a case failed or was rejected, and with
/// exit code 5 if memory is all that was missing. Without a folder the failure that is rethrown is
/// that of the first case in the list among those that failed.
///
/// Throws Stopped when the stop flag of `context` is set, after the cases that are being computed
/// or finished; std::logic_error if there is a folder and no `finish` to fill it.
template <class Job>
Outputs run_cases(const CaseRun& run, const CaseSteps<Job>& steps, const Context& context) {
  detail::AnySteps any;
  any.bytes = steps.bytes;
  any.read = [&](size_t i, const Context& side) {
    return std::make_shared<Job>(steps.read(i, side));
  };
  any.compute = [&](size_t i, void* job, const Context& all) {
    steps.compute(i, *static_cast<Job*>(job), all);
  };
  if (steps.survey) {
    any.survey = [&](size_t i, void* job, const Context& side) {
      return steps.survey(i, *static_cast<Job*>(job), side);
    };
  }
  if (steps.finish) {
    any.finish = [&](size_t i, const std::shared_ptr<void>& job, const Grow& grow,
                     const Context& side) {
      return steps.finish(i, std::static_pointer_cast<Job>(job), grow, side);
    };
  }
  return detail::run_any_cases(run, any, context);
}

}  // namespace larch::cases
