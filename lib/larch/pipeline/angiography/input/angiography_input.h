// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "larch/angiography.h"
#include "larch/io/sequence/sequence_reader.h"
#include "larch/io/xa/angiogram.h"
#include "larch/pipeline/angiography/angiography_case.h"

namespace larch::pipeline {

// The mask of each frame of an angiogram: that of the file (PS3.3, C.7.6.10) or of the user.

/// The groups in the order of their first frames; no frame is in two of them.
struct MaskPlan {
  std::vector<dsa::MaskGroup> groups{};
  std::string source{};                 ///< what decided it, for people
  std::vector<std::string> warnings{};  ///< what the user should know
};

/// "1-3,7" as the frames 0, 1, 2 and 6: rising, each once. Throws UsageError, which names `flag`,
/// for another text, and for frames beyond `count` (0: not known yet).
std::vector<int> parse_frames(const std::string& text, int64_t count, const std::string& flag);

/// As the Mask Subtraction Sequence of the file says, for those of the frames `wanted`:
/// - AVG_SUB: without ranges all frames, up to the last that can be averaged;
/// - TID: without ranges all frames whose mask frame is there;
/// - REV_TID: the mask of frame f is 2 first - tid_offset - f, where `first` is that of the first
///   range.
/// A frame that several items name belongs to the first of them, with a warning. Empty if no item
/// subtracts anything. Each item agrees with the file, as its reader has checked. Throws InputError
/// for Angiogram::mask_problem and for frames whose masks the file does not have, UsageError if the
/// sequence is for other frames than those of `wanted` alone.
MaskPlan plan_by_file(const Angiogram& about, const std::vector<int>& wanted);

/// A sequence whose header is read, with what is asked for of it.
struct OpenAngiogram {
  std::shared_ptr<SequenceReader> reader{};
  dsa::SequenceRequest request{};
  int64_t frames = 0;  ///< contrast frames, as far as the header tells

  const Angiogram& about() const { return reader->about(); }
};

/// Reads what the header decides, and the region of interest; checks the files. Throws InputError
/// and UsageError; warns through `context`.
OpenAngiogram open_angiogram(const cases::CaseJob& c, const AngiographyOptions& o,
                             const Context& context);

/// Returns the pixels of a label map that are not 0, as regions of larch/dsa have them.
std::vector<uint8_t> region_of_labels(const LabelVolume& labels);

/// Returns the sha256, as text, of all that decides the pixels of a subtraction: the bytes of the
/// file and of those that its header names, configuration, masks, region and collimator, and the
/// version of Larch. UIDs are made of it, so that the same run gives the same file, and no other
/// run one with the same UIDs. Throws InputError if a file cannot be read.
std::string angiography_identity(const dsa::DsaConfig& config, const Angiogram& about,
                                 const dsa::PreparedSequence& prepared);

}  // namespace larch::pipeline
