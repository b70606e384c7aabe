// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/dsa/samples.h"
#include "larch/io/sequence/sequence_reader.h"
#include "larch/pipeline/angiography/angiography_case.h"
#include "larch/pipeline/angiography/input/mask_plan.h"

namespace larch::pipeline {

/// A sequence before it is subtracted.
struct OpenAngiogram {
  SequenceReader reader;
  MaskPlan plan;
  std::vector<int> frames;  ///< contrast frames, rising
  dsa::SampleTable table;
  std::vector<uint8_t> region{};       ///< contrast pixels that count, by pixel; empty: all
  std::vector<uint8_t> unshuttered{};  ///< what the collimator leaves, by pixel; empty: all
  std::vector<std::string> notes{};    ///< what was decided, for the report
};

/// Reads what the header decides: the frames, their masks and the table of samples. For `mask`
/// kAuto the first frame stands for the mask until find_mask. Throws InputError and UsageError;
/// warns through `context`.
OpenAngiogram open_angiogram(const cases::CaseJob& c, const AngiographyOptions& o,
                             const Context& context);

/// The pixels of a frame in the region of interest. Throws UsageError for a rectangle or a polygon
/// that is not within the frame, and InputError for a mask that cannot be read, has another size or
/// leaves no pixel.
std::vector<uint8_t> region_of_interest(const cases::CaseJob& c, const AngiographyOptions& o,
                                        const Grid& grid);

/// Fills OpenAngiogram::region: region of interest and shutter, for which some frames are read.
/// Throws what region_of_interest does, and InputError if no pixel is left.
void find_region(const cases::CaseJob& c, const AngiographyOptions& o, OpenAngiogram& open,
                 const Context& context);

/// After find_region: for `mask` kAuto the frame before contrast agent arrives becomes the mask,
/// for which frames are read and subtracted up to ten after that; notes which frames the mask is.
/// Throws InputError where no frame is clearly the first with contrast agent; Stopped.
void find_mask(const AngiographyOptions& o, OpenAngiogram& open, const Context& context);

/// After find_mask, for `mask` kBest: each contrast frame gets those of the mask frames that it is
/// most like, up to four. All mask frames are held at once. Throws InputError; Stopped.
void choose_masks(OpenAngiogram& open, const Context& context);

/// The pixels of a label map that are not 0, as regions of larch/dsa have them.
std::vector<uint8_t> region_of_labels(const LabelVolume& labels);

/// The sha256, as text, of all that decides the pixels of a subtraction: the bytes of the file and
/// of those that its header names, configuration, masks, region and collimator, and the version of
/// Larch. UIDs are made of it, so that the same run gives the same file, and no other run one with
/// the same UIDs. Throws InputError if a file cannot be read.
std::string angiography_identity(const dsa::DsaConfig& config, const OpenAngiogram& open);

}  // namespace larch::pipeline
