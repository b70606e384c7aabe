// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/angiography_options.h"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/config/config.h"
#include "larch/core/error.h"

namespace larch::pipeline {

void check_literal(const dsa::DsaConfig& given) {
  const auto said = config::to_json(given), usual = config::to_json(dsa::DsaConfig{});
  const auto literal = config::to_json(dsa::literal_config(given));
  for (const auto& [key, value] : said.items()) {
    if (value == usual[key] || value == literal[key]) continue;
    throw UsageError("--literal sets --" + key + " to " + literal[key].dump() + ", not to " +
                     value.dump() + "; leave one of the two out");
  }
}

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

}  // namespace larch::pipeline
