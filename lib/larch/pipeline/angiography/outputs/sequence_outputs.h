// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/dsa/sequence.h"
#include "larch/io/sequence/sequence_writer.h"
#include "larch/pipeline/angiography/outputs/angiography_preview.h"
#include "larch/pipeline/angiography/outputs/angiography_report.h"
#include "larch/pipeline/angiography/subtract_sequence.h"

namespace larch::pipeline {

/// What of each frame is computed for the files and scores of a request.
dsa::SequenceWants outputs_wants(const SequenceRequest& request);

/// The files and figures of a sequence, filled batch after batch.
class SequenceOutputs {
 public:
  /// Opens the files. The arguments must outlive the object. Throws OutputError.
  SequenceOutputs(const SequenceRequest& request, const dsa::DsaConfig& config,
                  const OpenAngiogram& open, const Context& context);
  ~SequenceOutputs();
  SequenceOutputs(const SequenceOutputs&) = delete;
  SequenceOutputs& operator=(const SequenceOutputs&) = delete;

  /// The images of the next frames. Throws OutputError.
  void write(const dsa::SubtractedFrames& result);
  /// All else of the same frames, by their numbers in the file. Throws OutputError.
  void add(const std::vector<int>& frames, const dsa::SubtractedFrames& result,
           const std::vector<dsa::FrameScores>& scores);
  /// Ends the files; warns of what the user should know. Throws OutputError.
  Outputs finish();
  /// Those of the frames that were added.
  const std::vector<FrameRecord>& records() const { return records_; }

 private:
  struct File {
    GrowingOutput output{};
    std::optional<SequenceWriter> writer{};
  };
  File open_file(const std::string& path, bool is_difference) const;
  void add_frame(int frame, size_t at, const dsa::SubtractedFrames& result,
                 const dsa::FrameScores& scores);
  void keep_preview(int frame, size_t at, const dsa::SubtractedFrames& result);
  void warn_of_frames() const;
  void add_figures(Outputs& outputs) const;

  const SequenceRequest& request_;
  const dsa::DsaConfig& config_;
  const OpenAngiogram& open_;
  const Context& context_;
  std::vector<int> frames_;
  size_t pixels_;
  dsa::BlockGrid grid_, correction_grid_;
  File difference_, field_, validity_;
  GrowingOutput grid_csv_, animation_;
  std::ofstream csv_;
  std::unique_ptr<AnimationFrames> shown_;
  std::shared_ptr<PreviewFrame> preview_ = std::make_shared<PreviewFrame>();
  int64_t most_vessels_ = -1;
  std::vector<FrameRecord> records_;
};

}  // namespace larch::pipeline
