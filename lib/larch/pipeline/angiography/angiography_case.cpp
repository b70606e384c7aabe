// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/angiography_case.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/pipeline/angiography/outputs/native_output.h"

namespace larch::pipeline {
namespace {

AngiographyFiles files_of(const cases::CaseJob& c) {
  return {c.file("output"),  c.file("field"),     c.file("validity"), c.file("grid"),
          c.file("preview"), c.file("animation"), c.file("native")};
}

SequenceRequest sequence_of(const cases::CaseJob& c, const AngiographyRequest& request) {
  SequenceRequest sequence = request.sequence;
  sequence.files = files_of(c);
  sequence.input.path = c.row.image;
  sequence.input.read = c.read;
  return sequence;
}

VolumeRequest volume_of(const cases::CaseJob& c, const AngiographyRequest& request) {
  return {c.row.image, request.mask_volume,          request.sequence.input.region.roi,
          files_of(c), request.sequence.field_units, c.read};
}

/// Throws UsageError for settings that the literal method sets to other values.
void check_literal(const dsa::DsaConfig& given) {
  const auto said = config::to_json(given), usual = config::to_json(dsa::DsaConfig{});
  const auto literal = config::to_json(dsa::literal_config(given));
  for (const auto& [key, value] : said.items()) {
    if (value == usual[key] || value == literal[key]) continue;
    throw UsageError("--literal sets --" + key + " to " + literal[key].dump() + ", not to " +
                     value.dump() + "; leave one of the two out");
  }
}

/// Throws UsageError for settings that are of sequences of pictures alone.
void check_volume_options(const SequenceRequest& request, const dsa::DsaConfig& config) {
  const AngiographyInput& input = request.input;
  const dsa::DsaConfig usual;
  for (const auto& [is_said, flag] :
       {std::pair(!input.frames.empty(), "--frames"),
        std::pair(!input.mask_frames.empty(), "--mask-frames"),
        std::pair(input.mask != MaskChoice::kFile, "--mask"),
        std::pair(!input.region.rectangle.empty(), "--roi-rectangle"),
        std::pair(!input.region.polygon.empty(), "--roi-polygon"),
        std::pair(input.region.shutter != ShutterChoice::kAuto, "--shutter"),
        std::pair(request.batch_frames != 0, "--batch-frames"),
        std::pair(request.memory_bytes != 0, "--memory"),
        std::pair(config.init != usual.init, "--init"),
        std::pair(config.domain != usual.domain, "--domain"),
        std::pair(config.stored != usual.stored, "--stored"),
        std::pair(config.dark != usual.dark, "--dark")}) {
    if (!is_said) continue;
    throw UsageError(std::string(flag) +
                     " is for sequences of pictures and has no effect on volumes (--mask-volume); "
                     "leave it out");
  }
}

}  // namespace

dsa::DsaConfig AngiographyRequest::settings() const {
  return is_literal ? dsa::literal_config(config) : config;
}

void check_angiography(const AngiographyRequest& request) {
  const bool is_volume = !request.mask_volume.empty();
  check_angiography_input(request.sequence.input);
  if (request.is_literal) check_literal(request.config);
  dsa::passes_of(request.settings(), is_volume);
  if (is_volume) check_volume_options(request.sequence, request.config);
}

void check_angiography_names(const cases::CaseJob& c, const AngiographyRequest& request) {
  check_angiography_files(files_of(c), !request.mask_volume.empty());
}

Outputs subtract_case(const cases::CaseJob& c, const AngiographyRequest& request) {
  const cases::Turn turn = c.turn();
  if (!request.mask_volume.empty()) {
    return subtract_volume(volume_of(c, request), request.settings(), turn.context());
  }
  return subtract_sequence(sequence_of(c, request), request.settings(), turn.context());
}

cases::CaseLook look_at_angiography(const cases::CaseJob& c, const AngiographyRequest& request) {
  const dsa::DsaConfig config = request.settings();
  if (!request.mask_volume.empty()) {
    check_volume(volume_of(c, request), config, c.context());
    return look_at_image(c);
  }
  const SequenceRequest sequence = sequence_of(c, request);
  AngiographyInput input = sequence.input;
  const bool is_auto = input.mask_frames.empty() && input.mask == MaskChoice::kAuto;
  if (is_auto) input.mask = MaskChoice::kFirst;  // the frames are not read now
  OpenAngiogram open = open_angiogram(input, config, c.context());
  const Angiogram& about = open.reader.about();
  const Vec3i size = about.grid.size;
  const auto subtracted = static_cast<int64_t>(open.plan.frames().size());
  check_angiography_files_hold(sequence.files, about.grid, subtracted);
  check_native(about, sequence.files.native);
  require_masks_fit(sequence, open.plan, about.grid);
  cases::CaseLook look;
  look.bytes = plan_batches(sequence, config, size, subtracted, c.context()).bytes;
  look.cells = {{"pixels", std::to_string(size.x) + "x" + std::to_string(size.y)},
                {"frames", std::to_string(about.frames)},
                {"subtracted", std::to_string(subtracted)},
                {"mask", is_auto ? "auto" : open.plan.source}};
  return look;
}

}  // namespace larch::pipeline
