// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "larch/core/device.h"

namespace larch::pipeline {

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
