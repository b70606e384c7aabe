// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/pipeline/angiography/input/angiography_input.h"
#include "larch/pipeline/angiography/outputs/angiography_report.h"

// The frames as they are stored, with what a viewer needs to subtract them by itself.
namespace larch::pipeline {

/// Throws InputError for a sequence whose pixels an X-Ray Angiographic image would show otherwise
/// (a Modality LUT that is no straight line), and UsageError as require_sequence_path does. No
/// `path`: nothing is wanted.
void check_native(const Angiogram& about, const std::string& path);

/// Writes all frames of the sequence, pixel by pixel those of the file, to `path` (.dcm) with a
/// Mask Subtraction Sequence that has an item for each subtracted frame: its mask frames and, as
/// MaskSubPixelShift, the best rigid shift of the frame. `identity` makes the UIDs. Throws
/// InputError, OutputError, Stopped.
void write_native(const std::string& path, const std::vector<FrameRecord>& records,
                  const std::string& identity, OpenAngiogram& open, const Context& context);

}  // namespace larch::pipeline
