// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/cases/case_program.h"
#include "larch/config/fields.h"
#include "larch/hdn/detect.h"

namespace larch::pipeline {

/// The files that a detection of poses can write.
inline constexpr cases::Product kPoseProducts[] = {
    {"output,o", "poses", ".poses.json", PathRole::kOutputFile,
     "poses, their status and confidence (JSON, LPS mm)"},
    {"markups", "markups", ".mrk.json", PathRole::kOutputFile,
     "box and long axis of each structure for 3D Slicer (.mrk.json)"},
    {"labelmap", "labelmap", ".nii.gz", PathRole::kOutputLabelmap,
     "the boxes on the grid of the input, numbered from 1 in the order of the model", ".tsv"},
    {"qc", "qc", ".png", PathRole::kOutputPicture,
     "picture of the slices through each structure with its box (.png)"}};

/// All settings of hdn-detect.
struct PoseDetectConfig {
  struct Evaluate {
    bool hard = false;
    double e1 = 0;

    template <class F>
    void fields(F&& f) {
      f(Field{"hard", hard, "descend one child only: the plain boosting tree"},
        Field{"e1", e1, "certainty beyond which one child gets the whole weight; 0: the model's", 0,
              0.5});
    }
  } evaluate;
  double gpu_share = 1;

  template <class F>
  void fields(F&& f) {
    f(Field{"evaluate", evaluate, "how the trees are evaluated"},
      Field{"gpu_share", gpu_share,
            "of the hypotheses of orientation that the GPU tries, while the CPU tries the others",
            0, 1}
          .no_effect_on_results());
  }
};

/// Reads a model and puts it on a device. Throws InputError as models::read_model.
hdn::ResidentModel load_network(const std::string& path, const PoseDetectConfig& config,
                                const Device& device, const DigestSink& digest);

/// Reads the image of a case and looks for all structures: the files that are wanted, with figures
/// and a report of each structure. Rejected if none has a pose or, where `strict`, if one has none.
/// Throws InputError, MemoryError.
Outputs detect_poses(const cases::CaseJob& c, const hdn::ResidentModel& network, bool strict);

/// Looks at the header of the image, and says what memory the detection takes.
cases::CaseLook look_at_poses(const cases::CaseJob& c, const hdn::ResidentModel& network);

}  // namespace larch::pipeline
