// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "larch/angiography.h"
#include "larch/io/sequence/sequence_reader.h"
#include "larch/pipeline/angiography/angiography_case.h"
#include "larch/pipeline/angiography/input/mask_plan.h"

namespace larch::pipeline {

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

/// The pixels of a label map that are not 0, as regions of larch/dsa have them.
std::vector<uint8_t> region_of_labels(const LabelVolume& labels);

/// The sha256, as text, of all that decides the pixels of a subtraction: the bytes of the file and
/// of those that its header names, configuration, masks, region and collimator, and the version of
/// Larch. UIDs are made of it, so that the same run gives the same file, and no other run one with
/// the same UIDs. Throws InputError if a file cannot be read.
std::string angiography_identity(const dsa::DsaConfig& config, const Angiogram& about,
                                 const dsa::PreparedSequence& prepared);

}  // namespace larch::pipeline
