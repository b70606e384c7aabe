// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/angiography_identity.h"

#include <nlohmann/json.hpp>

#include "larch/app/build_info.h"
#include "larch/config/config.h"
#include "larch/core/digest.h"
#include "larch/io/image/image.h"

namespace larch::pipeline {
namespace {

std::string words_of(const MaskGroup& group) {
  std::string text = "|" + std::to_string(group.averaging) + " " +
                     std::to_string(group.shift_px.x) + " " + std::to_string(group.shift_px.y);
  for (const int frame : group.mask_frames) text += " " + std::to_string(frame);
  text += ":";
  for (const int frame : group.frames) text += " " + std::to_string(frame);
  return text;
}

}  // namespace

std::string angiography_identity(const std::string& path, const dsa::DsaConfig& config,
                                 const OpenAngiogram& open) {
  std::string text = version() + " " + sha256_of_file(path);
  for (const std::string& file : detached_files(path)) text += sha256_of_file(file);
  text += config::to_json(config).dump();
  for (const MaskGroup& group : open.plan.groups) text += words_of(group);
  Sha256 hash;
  hash.update(text.data(), text.size());
  // Each with its size: none, which is everywhere, is not the same as one beside the other.
  for (const auto* region : {&open.region, &open.unshuttered}) {
    const std::string size = "|" + std::to_string(region->size()) + "|";
    hash.update(size.data(), size.size());
    hash.update(region->data(), region->size());
  }
  return hex(hash.digest());
}

}  // namespace larch::pipeline
