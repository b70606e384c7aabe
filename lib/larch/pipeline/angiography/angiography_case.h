// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/cases/case_program.h"
#include "larch/pipeline/angiography/subtract_sequence.h"
#include "larch/pipeline/angiography/subtract_volume.h"

namespace larch::pipeline {

/// What a subtraction can write.
inline constexpr cases::Product kAngiographyProducts[] = {
    {"output,o", "difference", ".dcm", PathRole::kOutputImage,
     "subtracted frames: .dcm .mha .nrrd .nii.gz"},
    {"field", "field", ".field.mha", PathRole::kOutputImage,
     "motion of every pixel (see --field-units): .mha .nrrd"},
    {"validity", "validity", ".validity.mha", PathRole::kOutputImage,
     "by pixel: 0 valid, 1 beyond the mask, 2 saturated, 3 outside"},
    {"grid", "grid", ".csv", PathRole::kOutputFile, "CSV with a line per frame and block"},
    {"preview", "preview", ".png", PathRole::kOutputPicture,
     "picture before and after correction (.png)"},
    {"animation", "animation", ".gif", PathRole::kOutputFile,
     "the sequence before, shifted and corrected (.gif)"},
    {"native", "native", ".native.dcm", PathRole::kOutputFile,
     "all frames as they are, with masks and shifts for viewers that subtract (.dcm)"}};

/// What a subtraction is asked for, whatever the case: its files and image are those of the job.
struct AngiographyRequest {
  SequenceRequest sequence{};  ///< also of volumes, as far as it concerns them
  std::string mask_volume{};   ///< the image is a volume, and this one has no contrast agent
  bool is_literal = false;     ///< the method of US 2008/0037845 to the letter
  const dsa::DsaConfig& config;

  dsa::DsaConfig settings() const;
};

/// Throws UsageError for settings that contradict each other, whatever the image.
void check_angiography(const AngiographyRequest& request);
/// Throws UsageError for endings of files that cannot hold what they are for.
void check_angiography_names(const cases::CaseJob& c, const AngiographyRequest& request);

/// Subtracts a sequence or a volume: the files that are wanted, with figures. All of it is the turn
/// of the case, since frames are read while others are computed.
Outputs subtract_case(const cases::CaseJob& c, const AngiographyRequest& request);

/// What the header tells of a sequence or a volume. Throws what would be the failure of the case.
cases::CaseLook look_at_angiography(const cases::CaseJob& c, const AngiographyRequest& request);

}  // namespace larch::pipeline
