// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/cases/labelmaps.h"
#include "larch/config/text.h"
#include "larch/core/error.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/picture/qc.h"

namespace larch::pipeline {
namespace {

/// Frames in the picture of a series, at most.
constexpr int kMaximumShown = 6;

/// Throws UsageError if an image on this grid does not fit the format of its file.
void check_segmentation_fits(const cases::CaseJob& c, const Grid& grid) {
  cases::require_labelmap_holds(c, "output", grid.size);
  for (const char* flag : {"level-set", "distance"}) {
    if (c.wants(flag)) require_image_holds(c.file(flag), grid.size);
  }
}

/// Returns the first of `names` that is the file of some label beside `path`: the labels of a label
/// map are not known before it is read.
std::string file_of_label(const std::string& path, const std::set<std::string>& names) {
  const std::string ending = file_extension(path);
  const std::string resolved = resolved_name(path);
  const std::string start = resolved.substr(0, resolved.size() - ending.size()) + ".label";
  for (auto at = names.lower_bound(start); at != names.end() && at->starts_with(start); ++at) {
    const std::string rest = at->substr(start.size());
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits > 0 && rest.substr(digits) == ending) return *at;
  }
  return "";
}

/// Returns the header of the image; what is odd in it is said when the image is read.
ImageInfo probe_quietly(const cases::CaseJob& c) {
  ReadOptions read = c.read;
  read.warn = nullptr;
  return probe_image(c.row.image, read);
}

/// Returns the header of the 4-D image of a case. Throws InputError if it has but one frame.
ImageInfo probe_series(const cases::CaseJob& c) {
  ImageInfo info = probe_quietly(c);
  if (info.frames > 1) return info;
  throw InputError("'" + c.row.image + "' has one frame; leave --time-series out");
}

/// Throws UsageError unless the case writes a label map that can have four axes, and no more than
/// a picture beside it.
void check_series(const cases::CaseJob& c) {
  if (!c.wants("output") || c.files.size() != (c.wants("qc") ? 2 : 1)) {
    throw UsageError(
        "--time-series writes --output, a label map of four axes, and --qc, and nothing else");
  }
  const std::string ending = file_extension(c.file("output"));
  if (ending != ".nii" && ending != ".nii.gz") {
    throw UsageError("--time-series writes .nii or .nii.gz, not '" + c.file("output") + "'");
  }
  if (c.read.frame) throw UsageError("--time-series takes all frames; leave --frame out");
}

/// The finished frames of a series.
struct Frames {
  std::vector<LabelVolume> labels{};
  nlohmann::ordered_json reports = nlohmann::ordered_json::array();
  double volume_ml = 0, iterations = 0;
  StepSeconds seconds{};
  std::set<int32_t> left{};         ///< labels that are there in all of them
  std::vector<std::string> gone{};  ///< says of each of the others in which frame it vanished
  // The picture: frames from the first to the last at even distances, as many as fit.
  std::vector<RgbImage> rows{};
  std::vector<std::string> titles{};

  /// Draws the frame that was added last, of `count`, if it is one of those in the picture.
  void draw(const Volume<float>& image, int count) {
    const auto frame = static_cast<int>(labels.size()) - 1, row = static_cast<int>(rows.size());
    const int fit = row == 0 ? 1 : picture::most_stacked(rows[0].height);
    const int shown = std::min({count, kMaximumShown, fit});
    if (row > 0 && (row >= shown || frame != row * (count - 1) / (shown - 1))) return;
    const picture::QcOptions options{.most_height = picture::kMaximumPixels / kMaximumShown - 30};
    rows.push_back(picture::qc_picture(image, labels.back(), options));
    titles.push_back("frame " + std::to_string(frame + 1));
  }
  /// Takes the labels of the result.
  void add(levelset::SegmentResult& result, const levelset::LevelsetConfig& config) {
    for (const levelset::LabelResult& label : result.by_label) {
      volume_ml += label.volume_ml;
      if (labels.empty()) left.insert(label.label);
    }
    iterations += static_cast<double>(result.progress.iterations);
    reports.push_back(segmentation_report(result, config));
    labels.push_back(std::move(result.labels));
    seconds.insert(seconds.end(), result.seconds.begin(), result.seconds.end());
    const std::set<int32_t> there(labels.back().begin(), labels.back().end());
    std::erase_if(left, [&](int32_t label) {
      if (there.contains(label)) return false;
      gone.push_back("frame " + std::to_string(labels.size()) + ": nothing is left of label " +
                     std::to_string(label));
      return true;
    });
  }
};

Outputs segment_series(const cases::CaseJob& c, const SegmentationRequest& request) {
  const Context& context = c.context();
  const ImageInfo info = probe_series(c);
  const int count = info.frames;
  ReadOptions read = c.read;
  read.frame = 1;
  const auto frames = std::make_shared<Frames>();
  std::optional<Step> first(std::in_place, frames->seconds, "reading", 0, context);
  levelset::SegmentRequest next =
      read_segmentation(c.row.image, request.seeds, request.config, read, context.threads);
  first.reset();
  const Grid grid = next.image.grid();
  context.info(describe(grid));
  while (true) {
    context.info("frame " + std::to_string(*read.frame) + " of " + std::to_string(count));
    levelset::SegmentResult result = levelset::segment(next, context);
    frames->add(result, next.config);
    if (c.wants("qc")) frames->draw(next.image, count);
    if (*read.frame == count || frames->left.empty()) break;
    ++*read.frame;
    const Step reading(frames->seconds, "reading", 0, context);
    next = levelset::next_frame(std::move(next), result,
                                read_image(c.row.image, request.seeds, read, context.threads));
  }
  for (int frame = *read.frame; frame < count; ++frame) {  // nothing is left for these
    frames->labels.emplace_back(grid);
    frames->reports.push_back({{"labels", nlohmann::ordered_json::array()}});
  }
  Outputs outputs;
  outputs.grid(c.row.image, describe(grid));
  outputs.metric("frames", count)
      .metric("mean_volume_ml", frames->volume_ml / count)
      .metric("iterations", frames->iterations);
  outputs.report("frames", frames->reports);
  outputs.steps = frames->seconds;
  outputs.add(c.file("output"), [=, threads = context.threads](const std::string& path) {
    write_labelmap_series(path, frames->labels, info.times, threads);
  });
  outputs.add(c.file("qc"), [frames](const std::string& path) {
    write_png(path, picture::stacked(frames->rows, frames->titles));
  });
  if (!frames->gone.empty()) {
    outputs.status("rejected", config::join(frames->gone, "; ") +
                                   "; it is missing from there on: segment the frames before it "
                                   "alone (--frame), or choose --lower and --upper that fit all "
                                   "of them");
  }
  return outputs;
}

}  // namespace

void check_segmentation_names(const cases::CaseJob& c, const SegmentationRequest& request,
                              const std::set<std::string>& names) {
  if (!seeds_of_case(request.seeds, c.row).has_start()) {
    throw InputError(
        "'" + c.row.image +
        "' has nothing to start from: give the list a column 'sphere_mm' with seeds or "
        "'label' with a label map to start from, or seeds of all images by "
        "--sphere-mm");
  }
  if (request.is_series) check_series(c);
  if (!request.by_label) return;
  if (!c.wants("level-set") && !c.wants("distance") && !c.wants("mesh")) {
    throw UsageError(
        "--by-label is for --level-set, --distance and --mesh (with --list: --write level-set, "
        "distance, mesh); the label map of --output has all labels");
  }
  for (const char* flag : {"level-set", "distance", "mesh"}) {
    const std::string file = c.wants(flag) ? file_of_label(c.file(flag), names) : "";
    if (file.empty()) continue;
    throw UsageError("--by-label: '" + file + "' may be the file of a label beside '" +
                     c.file(flag) + "', and would be replaced; choose other names");
  }
}

Outputs segment_case(const cases::CaseJob& c, const SegmentationRequest& request) {
  if (request.is_series) return segment_series(c, request);
  const auto job = std::make_shared<SegmentationJob>();
  {
    const Step step(job->seconds, "reading", 0, c.context());
    check_segmentation_fits(c, probe_quietly(c).grid);
    const SegmentationSeeds seeds = seeds_of_case(request.seeds, c.row);
    job->request =
        read_segmentation(c.row.image, seeds, request.config, c.read, c.context().threads);
    if (seeds.init_labelmap) job->names = probe_image(seeds.init_labelmap).labels;
    job->request.wants_surface = c.wants("mesh") || c.wants("level-set") || c.wants("distance");
    c.context().info(describe(job->request.image.grid()));
  }
  job->result = levelset::segment(job->request, c.context());
  return segmentation_outputs(c, request.by_label, job);
}

cases::CaseLook look_at_segmentation(const cases::CaseJob& c, const SegmentationRequest& request) {
  const ImageInfo info = request.is_series ? probe_image(c.row.image, c.read)
                                           : cases::probe_one_volume(c.row.image, c.read);
  check_segmentation_fits(c, info.grid);
  request_on_grid(seeds_of_case(request.seeds, c.row), request.config, c.row.image, info.grid,
                  c.read);
  if (request.is_series) probe_series(c);
  return cases::look_of(info.grid);
}

}  // namespace larch::pipeline
