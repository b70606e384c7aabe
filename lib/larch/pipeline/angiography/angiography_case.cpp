// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/angiography_case.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/angiography.h"
#include "larch/cases/case_loop.h"
#include "larch/config/config.h"
#include "larch/core/context.h"
#include "larch/core/device.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/io/sequence/sequence_writer.h"
#include "larch/pipeline/angiography/input/angiography_input.h"
#include "larch/pipeline/angiography/outputs/frame_outputs.h"
#include "larch/pipeline/angiography/outputs/sequence_outputs.h"

namespace larch::pipeline {
namespace {

/// Sequences of more batches give the memory of each back.
constexpr size_t kBatchesOfShortSequence = 8;

/// In milliseconds, for the report. On the CPU nothing is uploaded and downloaded.
nlohmann::ordered_json to_json(double device, double open, const dsa::SequenceTimes& times,
                               bool is_cuda) {
  nlohmann::ordered_json json;
  const auto add = [&](const char* name, double seconds) {
    json[name] = std::round(1e6 * seconds) / 1e3;
  };
  if (is_cuda) add("device", device);
  add("open", open);
  add("read", times.read);
  if (is_cuda) add("upload", times.upload);
  add("compute", times.compute);
  if (is_cuda) add("download", times.download);
  add("score", times.score);
  add("write", times.write);
  add("streaming", times.streaming);
  add("waited_for_reading", times.waited_for_reading);
  add("waited_for_writing", times.waited_for_writing);
  return json;
}

cases::CaseLook look_at_sequence(const cases::CaseJob& c, const AngiographyOptions& o) {
  const OpenAngiogram open = open_angiogram(c, o, c.context());
  const Angiogram& about = open.about();
  cases::CaseLook look;
  look.bytes = dsa::check_sequence(open.request, c.context()).bytes;
  look.cells = {
      {"pixels", std::to_string(about.grid.size.x) + "x" + std::to_string(about.grid.size.y)},
      {"frames", std::to_string(about.frames)},
      {"subtracted", std::to_string(open.frames)},
      {"mask", open.request.mask_source}};
  return look;
}

/// Reads a sequence, registers its mask to every contrast frame and writes what is asked for, in
/// batches: while one is computed the next is read and uploaded, and the one before downloaded,
/// scored and written. The report says how long each of that took (stages_ms); they overlap. The
/// files are filled when this returns and get their names with the Outputs. Results do not depend
/// on the batches, nor on device and threads. Throws InputError, UsageError, OutputError,
/// MemoryError; Stopped when the stop flag of `context` is set.
Outputs subtract_sequence(const cases::CaseJob& c, const AngiographyOptions& o,
                          const Context& context) {
  // Until the device can be used, and beside it: header, collimator, mask chosen, outputs begun.
  double device = 0, before = 0;
  const bool is_cuda = context.device.is_cuda();
  // The device starts beside what is done on the host meanwhile, which takes as long.
  auto starting =
      std::async(is_cuda ? std::launch::async | std::launch::deferred : std::launch::deferred, [&] {
        const Stopwatch watch(device);
        const Stream first(context.device);
      });
  std::optional<Stopwatch> opening(before);
  const OpenAngiogram open = open_angiogram(c, o, context);
  std::optional<SequenceOutputs> outputs;
  const auto begin = [&](const dsa::PreparedSequence& prepared) {
    // Buffers that come and go in several threads would stay with the allocator, more of them the
    // longer the sequence. In a short one it is faster to keep them.
    if (prepared.batches > kBatchesOfShortSequence) cases::give_memory_back(prepared.plan.bytes);
    outputs.emplace(c, o, open, prepared, context);
    opening.reset();
    starting.get();
  };
  const auto take = [&](std::span<const dsa::FrameRow> rows, const dsa::SubtractedFrames& result) {
    outputs->add(rows, result);
  };
  const dsa::SequenceTimes times = dsa::subtract_sequence(open.request, begin, take, context);
  Outputs files = outputs->finish();
  files.report("stages_ms", to_json(device, before, times, is_cuda));
  context.progress(1, "done");
  return files;
}

std::vector<uint8_t> volume_region(const cases::CaseJob& c, const std::string& name,
                                   const Grid& grid) {
  if (name.empty()) return {};
  const LabelVolume roi = read_labels(name, label_options(c.read, grid));
  cases::require_same_grid(name, roi.grid(), c.row.image, grid);
  std::vector<uint8_t> inside = region_of_labels(roi);
  if (dsa::count_inside(inside) == 0) {
    throw InputError("'" + name + "': no voxel is left inside of the region");
  }
  return inside;
}

template <class T>
Volume<T> on_grid(const Grid& grid, const std::vector<T>& values) {
  Volume<T> volume(grid);
  std::copy(values.begin(), values.end(), volume.begin());
  return volume;
}

/// `grid`: the one that the field is written on.
VectorField field_of(const dsa::SubtractedFrames& result, const Grid& grid) {
  VectorField field = on_grid(grid, result.field_px);
  for (Vec3f& v : field) {
    const Vec3d spacing = grid.spacing_mm;
    v = (grid.direction * Vec3d{v.x * spacing.x, v.y * spacing.y, v.z * spacing.z}).cast<float>();
  }
  return field;
}

void add_volume_files(const cases::CaseJob& c, const AngiographyOptions& o, const Grid& grid,
                      const std::shared_ptr<const dsa::SubtractedFrames>& result, int threads,
                      Outputs& outputs) {
  const dsa::BlockGrid blocks = dsa::last_grid(o.config, grid.size);
  outputs.add(c.file("output"), [=](const std::string& path) {
    write_volume(path, on_grid(grid, result->difference), threads);
  });
  outputs.add(c.file("field"), [=, on = o.field_grid(grid)](const std::string& path) {
    write_vector_field(path, field_of(*result, on), threads);
  });
  outputs.add(c.file("validity"), [=](const std::string& path) {
    write_volume(path, on_grid(grid, result->validity), threads);
  });
  outputs.add(c.file("grid"), [=, metric = o.config.metric](const std::string& path) {
    write_file(path,
               grid_header(/*is_volume=*/true) + grid_rows(0, blocks, result->matches, metric));
  });
  outputs.add(c.file("preview"), [=](const std::string& path) {
    // The slice in the middle.
    const int z = grid.size.z / 2;
    const PreviewFrame slice =
        preview_frame(z, *result, static_cast<size_t>(z), {grid.size.x, grid.size.y, 1}, {});
    write_png(path, preview_picture(slice, blocks));
  });
}

cases::CaseLook look_at_volume(const cases::CaseJob& c, const AngiographyOptions& o) {
  const Grid fill = probe_image(c.row.image, c.read).grid;
  cases::require_same_grid(o.mask_volume, probe_image(o.mask_volume, c.read).grid, c.row.image,
                           fill);
  dsa::check_volume_config(o.config, fill.size, c.context());
  volume_region(c, o.roi, fill);
  return look_at_image(c);
}

/// Registers the mask volume to the fill volume and subtracts it: US 2008/0037845, claims 11 and
/// 15. Contrast agent raises the values of volumes. Both are on one grid, of whole numbers whose
/// range fits 16 bits. Throws InputError, UsageError, MemoryError.
Outputs subtract_volume(const cases::CaseJob& c, const AngiographyOptions& o,
                        const Context& context) {
  dsa::VolumeRequest request;
  request.fill_name = c.row.image;
  request.mask_name = o.mask_volume;
  request.fill = read_volume<int32_t>(c.row.image, c.read);
  request.mask = read_volume<int32_t>(o.mask_volume, c.read);
  const Grid grid = request.fill.grid();
  cases::require_same_grid(o.mask_volume, request.mask.grid(), c.row.image, grid);
  request.region = volume_region(c, o.roi, grid);
  request.wants_field = c.wants("field");
  request.config = o.config;
  const auto result =
      std::make_shared<const dsa::SubtractedFrames>(dsa::subtract_volume(request, context));
  const dsa::BlockCounts blocks = dsa::count_blocks(result->matches, result->figures[0]);
  Outputs outputs;
  outputs.grid(c.row.image, describe(grid))
      .metric("blocks", static_cast<double>(blocks.all))
      .metric("unreliable", static_cast<double>(blocks.unreliable))
      .metric("edge_hits", static_cast<double>(blocks.at_edge))
      .metric("longest_motion_px", result->figures[0].field.longest_px);
  add_volume_files(c, o, grid, result, context.threads, outputs);
  return outputs;
}

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

/// Returns the options of a case: what its row of a list says stands for the flags.
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
  const auto start = std::chrono::steady_clock::now();
  return (o.mask_volume ? subtract_volume : subtract_sequence)(c, o, turn.context())
      .step("subtraction", seconds_since(start));
}

cases::CaseLook look_at_angiography(const cases::CaseJob& c, const AngiographyOptions& given,
                                    const cases::Nothing&) {
  const AngiographyOptions o = options_of_case(c, given);
  return o.mask_volume ? look_at_volume(c, o) : look_at_sequence(c, o);
}

}  // namespace larch::pipeline
