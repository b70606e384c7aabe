// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/records/case_record.h"
#include "larch/cases/case_program.h"

namespace larch::cases {

/// Throws InputError for an id that cannot be a file name.
void check_id(const std::string& id);

/// The cases of a list with the names of their files.
struct ListedCases {
  std::vector<Case> cases;
  std::vector<CaseFiles> files;  ///< of each case
  ReadOptions read;
  const std::vector<CaseColumn>& columns;
  const RunAbout about;

  /// Reads the list and checks all names before anything is done, then keeps the cases of --part.
  /// Throws InputError (an id that cannot be a file name), UsageError (two files of one name, an
  /// output that would replace an input, a carried column that the list does not have or status.tsv
  /// has already) and OutputError (an output is there and neither --force nor --skip-existing is
  /// given).
  ListedCases(const detail::AnyCaseProgram& program, const larch::detail::CheckedRun& run,
              const Context& whole);

  /// Returns the inputs of case `i`, for its record.
  std::vector<RunInput> inputs(size_t i) const;
  CaseJob job(size_t i, const Context& context) const {
    return {cases[i], files[i].outputs, read, context, about};
  }
};

/// Does one case; warns before it of an image that --memory cannot hold.
Outputs process(const detail::AnyCaseProgram& program, const CaseJob& job);

/// Does all cases. Returns the figures of the run; its status is rejected if a case failed or was
/// rejected, with the exit code of run_case_app. Throws Stopped when the stop flag of `context` is
/// set, after the cases in work.
Outputs run_listed_cases(const ListedCases& list, const detail::AnyCaseProgram& program,
                         const larch::detail::CheckedRun& run, const Context& context);

}  // namespace larch::cases
