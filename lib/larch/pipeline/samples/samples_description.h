// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace larch::pipeline {

/// The description of make-samples in --help and on its page.
inline constexpr const char* kSamplesDescription =
    "With --kind organs each image shows a body with an organ (label 1), a distractor, a bright "
    "column and a cavity, in noise and a smooth intensity field. Organ and distractor have the "
    "same mean intensity, so that no threshold finds the organ. The folder gets images/, labels/, "
    "train.tsv, test.tsv, dataset.json and labels.tsv. With --format dicom, images/ has a folder "
    "per case, and label maps are NIfTI.\n\n"
    "With --kind angiography each sequence shows a body at rest (the mask frames), then moving "
    "while a contrast agent passes through vessels, with the noise of X-ray photons. The folder "
    "gets images/ (DICOM files name their mask frames), labels/ (vessels), fields/, truth/ and "
    "cases.tsv. In fields/ is the true motion in mm of every pixel and frame, by which the mask is "
    "read, in truth/ the same as formulas (JSON). --truth=false leaves out all but images.\n\n"
    "With --kind phantom each image is a head as in T1-weighted MR, with white matter (label 1), "
    "folded grey matter (2) and fluid (3), a smooth intensity field and Rician noise. The folder "
    "gets images/, labels/, cases.tsv and labels.tsv.\n\n"
    "The same seed gives the same files, and with other --axes the same voxels in another order.";

}  // namespace larch::pipeline
