// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/config/config.h"
#include "larch/config/json_text.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/core/portable_math.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/io/sequence/sequence_reader.h"
#include "larch/io/sequence/sequence_writer.h"
#include "larch/pipeline/samples/samples.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// Vessels count as seen from here on: twice the noise of 10 000 photons.
constexpr double kVisible = 0.02;  // nepers

/// "fields/case_007.mha".
std::string name_in(const std::string& folder, int number, const std::string& ending) {
  return folder + "/" + sample_case_name(number) + "." + ending;
}

/// Returns the first picture of a file in nepers. Values of which the file does not say that they
/// are logarithms are taken as proportional to the photons; how logarithms are scaled no file says,
/// so that they are taken to be scaled like the samples.
phantom::Plane read_body(const std::string& path, const phantom::AngiogramConfig& config) {
  SequenceReader reader(path);
  const Angiogram& about = reader.about();
  std::vector<uint16_t> pixels(static_cast<size_t>(reader.frame_pixels()));
  reader.read(0, 1, pixels);
  phantom::Plane plane{about.grid.size.x, about.grid.size.y, {}};
  const bool is_inverted = contrast_raises(about);
  const int most = (1 << about.bits) - 1;
  for (const uint16_t pixel : pixels) {
    const int value = is_inverted ? most - pixel : pixel;
    plane.values.push_back(about.intensity == PixelIntensity::kLog
                               ? -value / (config.log_scale * (most + 1) / 4096)
                               : -log_of(std::max(value, 1)));
  }
  return plane;
}

/// Returns one frame.
Grid frame_grid(const phantom::AngiogramConfig& config) {
  Grid grid;
  grid.size = {config.size[0], config.size[1], 1};
  grid.spacing_mm = {config.spacing_mm, config.spacing_mm, 1};
  return grid;
}

SequenceHeader sequence_header(const phantom::AngiogramConfig& config) {
  SequenceHeader header{frame_grid(config), config.frames, {}, {}};
  for (int frame = 0; frame < config.frames; ++frame) {
    header.times_ms.push_back(frame * config.frame_ms);
  }
  return header;
}

/// Returns the header of a DICOM file, which tells also which frames are the mask of the others.
/// `body`: the digest of the picture whose body it has; may be empty.
XaHeader xa_header(const phantom::Angiogram& a, const std::string& body) {
  const phantom::AngiogramConfig& config = a.config;
  XaHeader header;
  header.bits = config.bits;
  header.intensity =
      config.stored == phantom::Stored::kLog ? PixelIntensity::kLog : PixelIntensity::kLinear;
  header.intensity_sign = 1;
  header.series_description = "make-samples, seed " + std::to_string(a.seed);
  MaskItem item;
  item.operation = MaskOperation::kAverage;
  item.ranges = {{config.mask_frames, config.frames - 1}};
  for (int frame = 0; frame < config.mask_frames; ++frame) item.mask_frames.push_back(frame);
  header.masks = {item};
  header.identity = "make-samples " + std::to_string(a.seed) + " " + std::to_string(a.number) +
                    " " + detail::json_text(config::to_json(config)) + body;
  header.display_rate_hz = std::round(1000 / config.frame_ms);
  header.patient_name = "Larch^Sample";
  header.patient_id = sample_case_name(a.number);
  return header;
}

void write_frames(const std::string& path, const phantom::Angiogram& a, const std::string& body,
                  int threads) {
  SequenceHeader header = sequence_header(a.config);
  header.xa = xa_header(a, body);
  SequenceWriter writer(path, header, threads);
  for (int frame = 0; frame < a.config.frames; ++frame) {
    writer.write(std::span<const uint16_t>(phantom::stored_frame(a, frame, threads)));
  }
  writer.finish();
}

void write_fields(const std::string& path, const phantom::Angiogram& a, int threads) {
  SequenceWriter writer(path, sequence_header(a.config), threads);
  for (int frame = 0; frame < a.config.frames; ++frame) {
    writer.write(std::span<const Vec3f>(phantom::true_field_px(a, frame, threads)));
  }
  writer.finish();
}

void write_vessels(const std::string& path, const phantom::Angiogram& a, int threads) {
  Grid grid = frame_grid(a.config);
  grid.size.z = a.config.frames;
  grid.spacing_mm.z = a.config.frame_ms;
  Volume<uint8_t> stack(grid);
  uint8_t* to = stack.data();
  for (int frame = 0; frame < a.config.frames; ++frame) {
    const auto labels = phantom::vessel_labels(a, frame, kVisible, threads);
    to = std::copy(labels.begin(), labels.end(), to);
  }
  write_volume(path, stack, threads);
}

Json waves_json(const std::array<phantom::MotionWave, 3>& waves) {
  Json list = Json::array();
  for (const phantom::MotionWave& wave : waves) {
    list.push_back(
        {{"turns_per_px", {wave.x, wave.y}}, {"phase_turns", {wave.phase_x, wave.phase_y}}});
  }
  return list;
}

/// The motion as lib/larch/phantom/README.md has it in formulas.
std::string truth_text(const phantom::Angiogram& a) {
  const phantom::AngiogramConfig& config = a.config;
  Json shares = Json::array();
  for (int frame = 0; frame < config.frames; ++frame) {
    const phantom::MotionShares share = phantom::motion_shares(config, frame);
    shares.push_back({{"breathing", share.breathing}, {"swallow", share.swallow}});
  }
  const Json json{
      {"about", "motion pulls: what is at x in a frame is at x + d(x) in the mask; pixels"},
      {"seed", a.seed},
      {"number", a.number},
      {"mask_frames", "1-" + std::to_string(config.mask_frames)},
      {"vessel_threshold_nepers", kVisible},
      {"mean_attenuation_nepers", a.mean_attenuation},
      {"waves", waves_json(a.waves)},
      {"swallow", waves_json(a.swallow)},
      {"shares", shares},
      {"settings", config::to_json(config)}};
  return json.dump(2) + "\n";
}

std::string cases_tsv(const AngiogramsRequest& request) {
  std::string text = "image\tfield\tlabel\ttruth\n";
  for (int i = 0; i < request.cases; ++i) {
    text += name_in("images", i, request.format) + "\t" + name_in("fields", i, "mha") + "\t" +
            name_in("labels", i, "mha") + "\t" + name_in("truth", i, "json") + "\n";
  }
  return text;
}

/// The files of a case, which is made with the first of them and kept for all.
void add_case(const AngiogramsRequest& request, int number, const Context& context,
              Outputs& outputs) {
  const int threads = context.threads;
  const auto made = [
    =, config = request.config, picture = request.picture, seed = context.seed,
    kept = std::make_shared<phantom::Angiogram>()
  ]() -> const auto& {
    if (!kept->anatomy.coefficients.empty()) return *kept;
    *kept = picture.empty() ? phantom::make_angiogram(config, seed, number, threads)
                            : phantom::make_angiogram(config, read_body(picture, config), seed,
                                                      number, threads);
    return *kept;
  };
  outputs.add(name_in("images", number, request.format), [=, picture = request.picture](
                                                             const std::string& path) {
    const phantom::Angiogram& a = made();
    write_frames(path, a, picture.empty() ? "" : " " + sha256_of_file(picture), threads);
  });
  if (!request.has_truth) return;
  outputs.add(name_in("fields", number, "mha"),
              [=](const std::string& path) { write_fields(path, made(), threads); });
  outputs.add(name_in("labels", number, "mha"),
              [=](const std::string& path) { write_vessels(path, made(), threads); });
  outputs.add(name_in("truth", number, "json"),
              [=](const std::string& path) { write_file(path, truth_text(made())); });
}

}  // namespace

void check(const AngiogramsRequest& request) {
  phantom::check(request.config);
  require_sequence_path("case." + request.format, frame_grid(request.config),
                        request.config.frames);
  // run_app tells of a picture that is missing.
  if (request.picture.empty() || !is_file(request.picture)) return;
  const Vec3i size = SequenceReader(request.picture).about().grid.size;
  if (size.x != request.config.size[0] || size.y != request.config.size[1]) {
    throw UsageError("'" + request.picture + "' has " + std::to_string(size.x) + "x" +
                     std::to_string(size.y) + " pixels; give --angiography.size " +
                     std::to_string(size.x) + "," + std::to_string(size.y));
  }
}

Outputs make_samples(const AngiogramsRequest& request, const Context& context) {
  Outputs outputs;
  for (int i = 0; i < request.cases; ++i) add_case(request, i, context, outputs);
  if (request.has_truth) {
    outputs.add("cases.tsv",
                [text = cases_tsv(request)](const std::string& path) { write_file(path, text); });
  }
  return outputs.metric("cases", request.cases);
}

}  // namespace larch::pipeline
