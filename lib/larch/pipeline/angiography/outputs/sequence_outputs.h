// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/app/outputs/outputs.h"
#include "larch/dsa/scores.h"
#include "larch/io/sequence/sequence_writer.h"
#include "larch/pipeline/angiography/angiography_case.h"
#include "larch/pipeline/angiography/input/angiography_input.h"
#include "larch/pipeline/angiography/outputs/angiography_preview.h"
#include "larch/pipeline/angiography/outputs/angiography_report.h"

namespace larch::pipeline {

/// Tells whether frames are measured: for the report, or since they are checked.
bool measures_frames(const AngiographyOptions& o);
/// The parts of each frame that are computed for the files and scores.
dsa::SequenceWants outputs_wants(const cases::CaseJob& c, const AngiographyOptions& o);

/// Throws UsageError if so many subtracted frames do not fit the formats of the files, and
/// InputError if --native would show other pixels than `about` (a Modality LUT that is no straight
/// line).
void check_sequence_files(const cases::CaseJob& c, const Angiogram& about, int64_t frames);

/// The files and figures of a sequence, filled batch after batch.
class SequenceOutputs {
 public:
  /// Opens the files. The arguments must outlive the object. Throws OutputError.
  SequenceOutputs(const cases::CaseJob& c, const AngiographyOptions& o, OpenAngiogram& open,
                  const Context& context);

  const dsa::SequenceWants& wants() const { return wants_; }
  /// The images of the next frames. Throws OutputError.
  void write(const dsa::SubtractedFrames& result);
  /// All else of the same frames, by their numbers in the file. Throws OutputError.
  void add(const std::vector<int>& frames, const dsa::SubtractedFrames& result,
           const std::vector<dsa::FrameScores>& scores);
  /// Ends the files; warns of what the user should know. Throws OutputError; Stopped while frames
  /// are copied for --native.
  Outputs finish();

 private:
  struct File {
    GrowingOutput output{};
    std::optional<SequenceWriter> writer{};
  };
  File open_file(const std::string& flag) const;
  void add_frame(int frame, size_t at, const dsa::SubtractedFrames& result,
                 const dsa::FrameScores& scores);
  nlohmann::ordered_json frame_json(int frame, size_t at, const dsa::SubtractedFrames& result,
                                    const dsa::FrameScores& scores,
                                    const BlockCounts& blocks) const;
  void write_native() const;
  void warn_of_frames() const;
  void add_figures(Outputs& outputs) const;

  const cases::CaseJob& case_;
  const AngiographyOptions& options_;
  OpenAngiogram& open_;
  const Context& context_;
  const dsa::SequenceWants wants_;
  const Vec3i size_;
  const dsa::BlockGrid grid_, correction_grid_;
  File difference_, field_, validity_;
  GrowingOutput grid_csv_, animation_, native_;
  std::ofstream csv_{};
  std::optional<AnimationFrames> shown_{};
  PreviewFrame preview_{};
  int64_t most_vessels_ = -1;

  // These are sums and lists over the frames that were added.
  nlohmann::ordered_json frames_ = nlohmann::ordered_json::array();
  std::map<int, Vec3i> shifts_{};  // Q16, by frame
  BlockCounts blocks_{};
  int64_t at_edge_ = 0, folded_ = 0, empty_ = 0, worse_ = 0;  // frames: see warn_of_frames()
  std::array<int64_t, 3> corrections_{};                      // frames, by dsa::Correction
  double longest_px_ = 0;
  std::array<std::vector<double>, 3> rms_{};  // without correction, by the shift, and by all of it
};

}  // namespace larch::pipeline
