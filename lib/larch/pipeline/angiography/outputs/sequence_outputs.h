// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "larch/angiography.h"
#include "larch/app/outputs/outputs.h"
#include "larch/io/sequence/sequence_writer.h"
#include "larch/pipeline/angiography/angiography_case.h"
#include "larch/pipeline/angiography/input/angiography_input.h"
#include "larch/pipeline/angiography/outputs/frame_outputs.h"

namespace larch::pipeline {

/// Returns the parts of each frame that are computed for the files and scores.
dsa::SequenceWants outputs_wants(const cases::CaseJob& c, const AngiographyOptions& o);

/// Throws UsageError if so many subtracted frames do not fit the formats of the files, and
/// InputError if --native would show other pixels than `about` (a Modality LUT that is no straight
/// line).
void check_sequence_files(const cases::CaseJob& c, const Angiogram& about, int64_t frames);

/// The files and figures of a sequence, filled batch after batch.
class SequenceOutputs {
 public:
  /// Opens the files. The arguments must outlive the object. Throws OutputError.
  SequenceOutputs(const cases::CaseJob& c, const AngiographyOptions& o, const OpenAngiogram& open,
                  const dsa::PreparedSequence& prepared, const Context& context);

  /// The next frames. Throws OutputError.
  void add(std::span<const dsa::FrameRow> rows, const dsa::SubtractedFrames& result);
  /// Ends the files; warns of what the user should know. Throws OutputError; Stopped while frames
  /// are copied for --native.
  Outputs finish();

 private:
  struct File {
    GrowingOutput output{};
    std::optional<SequenceWriter> writer{};
  };
  File open_file(const std::string& flag) const;
  void write_native() const;
  void warn_of_frames() const;
  void add_figures(Outputs& outputs) const;

  const cases::CaseJob& case_;
  const AngiographyOptions& options_;
  const OpenAngiogram& open_;
  const dsa::PreparedSequence prepared_;
  const Context& context_;
  const Vec3i size_;
  const dsa::BlockGrid grid_, correction_grid_;
  File difference_, field_, validity_;
  GrowingOutput grid_csv_, animation_, native_;
  std::ofstream csv_{};
  std::optional<AnimationFrames> shown_{};
  PreviewFrame preview_{};
  int64_t most_vessels_ = -1;
  std::vector<dsa::FrameRow> rows_{};  // of all frames that were added
};

}  // namespace larch::pipeline
