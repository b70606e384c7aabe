// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "larch/core/device.h"
#include "larch/dsa/match/match.h"
#include "larch/dsa/scores.h"
#include "larch/dsa/sequence.h"

// What is told of a subtraction: grid of vectors as CSV, figures of each frame as JSON.
namespace larch::pipeline {

/// The first line of the grid: frame (as in the file, counted from 0), block (i, j, of volumes k),
/// its centre, vector and vector before repair in pixels, similarity at the start vector and at the
/// vector found (EHD or entropy), confidence, pixels that count, share of them beyond the bins, and
/// status: ok, replaced (by its neighbours), unreliable (its vector is that of its neighbours too)
/// or outside.
std::string grid_header(bool is_volume);

/// The lines of the blocks of one frame. The same numbers are the same text on every machine.
std::string grid_rows(int frame, const dsa::BlockGrid& grid,
                      std::span<const dsa::BlockMatch> matches, dsa::Metric metric);

/// Blocks of a frame by their status; at_edge ones are among them.
struct BlockCounts {
  int64_t all = 0, replaced = 0, unreliable = 0, outside = 0, at_edge = 0;
};

/// Figures of a frame that is subtracted.
struct FrameRecord {
  int frame = 0;  ///< in the file, counted from 0
  BlockCounts blocks{};
  dsa::FrameFigures figures{};
  Vec3i shift{};  ///< rigid, Q16 pixels
  bool has_shift = false;
  double before = 0;  ///< mean similarity of the searched blocks at their start vectors
  double after = 0;   ///< at the vectors that were found
  bool has_similarity = false;
  dsa::FrameScores scores{};
  bool has_scores = false;
};

/// Fills blocks, figures, shift and similarity from the results of a frame.
FrameRecord record_of(int frame, std::span<const dsa::BlockMatch> matches,
                      const dsa::FrameFigures& figures, const Vec3i& shift, dsa::Metric metric);

nlohmann::ordered_json to_json(const FrameRecord& record, int fraction_bits);

/// The lower median of those that are numbers; NaN of none.
double median_of(std::vector<double> values);

/// EHD, or the entropy of a histogram in natural units.
double similarity_of(const dsa::Score& score, dsa::Metric metric);

/// Seconds that the stages of a sequence took. From `read` on they overlap: each is the time of the
/// thread that does it, until its work on the device is done.
struct SequenceTimes {
  double device = 0;  ///< until the device can be used, beside `open`
  double open = 0;    ///< header, collimator, mask chosen, outputs begun
  double read = 0;    ///< frames, decompressed
  double upload = 0;
  double compute = 0;
  double download = 0;
  double score = 0;
  double write = 0;                                       ///< frames to files
  double streaming = 0;                                   ///< all of these but `open`, side by side
  double waited_for_reading = 0, waited_for_writing = 0;  ///< by the thread that computes
};

/// In milliseconds, for the report. On the CPU nothing is uploaded and downloaded.
nlohmann::ordered_json to_json(const SequenceTimes& times, const Device& device);

}  // namespace larch::pipeline
