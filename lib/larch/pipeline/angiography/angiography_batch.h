// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/app/outputs/outputs.h"
#include "larch/app/plan.h"
#include "larch/cases/option_groups.h"
#include "larch/cases/run_cases.h"
#include "larch/pipeline/angiography/subtract_sequence.h"

namespace larch::pipeline {

/// Subtractions of many sequences in one run.
struct AngiographyBatch {
  cases::ImageBatch<AngiographyProduct> images{};
  SequenceRequest each{};  ///< what is asked of every sequence; its path and files are the case's

  SequenceRequest request_of(const Case& c) const;
  /// The run over the cases; this must outlive it.
  cases::CaseRun run(const CaseWriter& writer) const;
};

/// As cases::check_cases; throws UsageError as well if a format cannot be written.
void check_batch(const AngiographyBatch& batch, const CaseWriter& writer);

/// Subtracts every sequence as cases::run_cases does it: the files of a case are the same as those
/// of a run by itself.
Outputs subtract_batch(const AngiographyBatch& batch, const dsa::DsaConfig& config,
                       const CaseWriter& writer, const Context& context);

/// What subtract_batch would do. Throws what concerns all cases.
Plan plan_angiography_batch(const AngiographyBatch& batch, const dsa::DsaConfig& config,
                            const CaseWriter& writer, const Context& context);

/// What subtract_sequence would do. Throws as that would before it computes.
Plan plan_sequence(const SequenceRequest& request, const dsa::DsaConfig& config,
                   const Context& context);

}  // namespace larch::pipeline
