// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/angiography_case.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "larch/angiography.h"
#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/sequence/sequence_writer.h"
#include "larch/pipeline/angiography/input/mask_plan.h"
#include "larch/pipeline/angiography/outputs/sequence_outputs.h"

namespace larch::pipeline {
namespace {

/// Throws UsageError for settings that are of sequences of pictures alone.
void check_volume_options(const AngiographyOptions& o) {
  const dsa::DsaConfig usual;
  for (const auto& [is_said, flag] : {std::pair(!o.frames.empty(), "--frames"),
                                      std::pair(!o.mask_frames.empty(), "--mask-frames"),
                                      std::pair(o.mask != MaskChoice::kFile, "--mask"),
                                      std::pair(!o.roi_rectangle.empty(), "--roi-rectangle"),
                                      std::pair(!o.roi_polygon.empty(), "--roi-polygon"),
                                      std::pair(o.shutter != ShutterChoice::kAuto, "--shutter"),
                                      std::pair(o.contrast != ContrastChoice::kFile, "--contrast"),
                                      std::pair(o.batch_frames != 0, "--batch-frames"),
                                      std::pair(o.images.memory.count != 0, "--memory"),
                                      std::pair(o.config.domain != usual.domain, "--domain"),
                                      std::pair(o.config.stored != usual.stored, "--stored"),
                                      std::pair(o.config.dark != usual.dark, "--dark")}) {
    if (!is_said) continue;
    throw UsageError(std::string(flag) +
                     " is for sequences of pictures and has no effect on volumes (--mask-volume); "
                     "leave it out");
  }
}

/// The options of a case: what its row of a list says stands for the flags.
AngiographyOptions options_of_case(const cases::CaseJob& c, const AngiographyOptions& given) {
  AngiographyOptions o = given;
  const auto take = [&](const char* column, std::string& to) {
    const auto cell = c.row.further.find(column);
    if (cell != c.row.further.end() && !cell->second.empty() && cell->second != "n/a") {
      to = cell->second;
    }
  };
  take("mask_frames", o.mask_frames);
  take("frames", o.frames);
  take("roi", o.roi.path);
  return o;
}

}  // namespace

Grid AngiographyOptions::field_grid(const Grid& grid) const {
  if (field_units == FieldUnits::kMm) return grid;
  return {.size = grid.size};
}

std::string subtracted_on_cpu_alone(const AngiographyOptions& o) {
  return dsa::runs_on_cpu_alone(o.config, static_cast<bool>(o.mask_volume));
}

void check_angiography(const AngiographyOptions& o, const GivenFlags&) {
  if (!o.frames.empty()) parse_frames(o.frames, 0, "--frames");
  if (!o.mask_frames.empty()) {
    parse_frames(o.mask_frames, 0, "--mask-frames");
    if (o.mask != MaskChoice::kFile && o.mask != MaskChoice::kBest) {
      throw UsageError("give either --mask-frames or --mask; both go with --mask best");
    }
  }
  const size_t numbers = o.roi_polygon.size();
  if (numbers % 2 != 0 || (numbers > 0 && numbers < 6)) {
    throw UsageError("--roi-polygon takes x,y of three corners or more: x,y,x,y,x,y");
  }
  if (o.config.literal && o.config.method != dsa::Method::kBlock) {
    throw UsageError("--literal is a way of --method block; leave one of the two out");
  }
  dsa::passes_of(o.config, static_cast<bool>(o.mask_volume));
  if (o.mask_volume) check_volume_options(o);
  if (o.images.is_list() && (o.roi || o.mask_volume)) {
    throw UsageError(
        "--roi and --mask-volume are for one image; leave them out beside --list, whose column roi "
        "has the region of each case");
  }
}

std::vector<CaseColumn> angiography_columns() {
  return {{"mask_frames"}, {"frames"}, {"roi", /*is_file=*/true}};
}

void check_angiography_names(const cases::CaseJob& c, const AngiographyOptions& given,
                             const std::set<std::string>&) {
  const AngiographyOptions o = options_of_case(c, given);
  const std::string of_case = "case '" + c.row.id + "', ";
  if (c.is_of_list && !o.frames.empty()) parse_frames(o.frames, 0, of_case + "frames");
  if (c.is_of_list && !o.mask_frames.empty()) {
    parse_frames(o.mask_frames, 0, of_case + "mask_frames");
  }
  for (const auto& [flag, ending] :
       {std::pair("grid", ".csv"), std::pair("animation", ".gif"), std::pair("native", ".dcm")}) {
    if (!c.wants(flag) || file_extension(c.file(flag)) == ending) continue;
    throw UsageError("cannot write '" + c.file(flag) + "': --" + flag +
                     " writes a file that ends in " + ending);
  }
  if (file_extension(c.file("validity")) == ".dcm") {
    throw UsageError("cannot write '" + c.file("validity") +
                     "': --validity writes labels: .mha .nrrd .nii.gz");
  }
  Angiogram smallest;
  smallest.grid.size = {1, 1, 1};
  if (!o.mask_volume) return check_sequence_files(c, smallest, 1);
  for (const char* flag : {"animation", "native"}) {
    if (!c.wants(flag)) continue;
    throw UsageError(std::string("--") + flag + " is for sequences, not for volumes");
  }
  for (const char* flag : {"output", "validity"}) {
    if (c.wants(flag)) require_image_extension(c.file(flag));
  }
  if (c.wants("field")) require_sequence_path(c.file("field"), smallest.grid, 1, /*vectors=*/true);
}

Outputs subtract_case(const cases::CaseJob& c, const AngiographyOptions& given,
                      const cases::Nothing&) {
  const AngiographyOptions o = options_of_case(c, given);
  const Turn turn = c.context().turn();
  return o.mask_volume ? subtract_volume(c, o, turn.context())
                       : subtract_sequence(c, o, turn.context());
}

cases::CaseLook look_at_angiography(const cases::CaseJob& c, const AngiographyOptions& given,
                                    const cases::Nothing&) {
  const AngiographyOptions o = options_of_case(c, given);
  return o.mask_volume ? look_at_volume(c, o) : look_at_sequence(c, o);
}

}  // namespace larch::pipeline
