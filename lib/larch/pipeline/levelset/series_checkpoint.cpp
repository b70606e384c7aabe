// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/series_checkpoint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/levelset/brick_layout.h"
#include "larch/levelset/initial/first_surfaces.h"
#include "larch/models/bytes.h"
#include "larch/models/file.h"
#include "larch/pipeline/levelset/segmentation_checkpoint.h"

namespace larch::pipeline {
namespace {

constexpr uint32_t kKindVersion = 1;

/// Voxels as runs of one value: label maps and level sets are constant over most of an image.
template <class T>
void put_runs(const Volume<T>& volume, models::ByteWriter& out) {
  static_assert(sizeof(T) == sizeof(uint32_t) && std::is_trivially_copyable_v<T>);
  constexpr int64_t kLongest = int64_t{1} << 30;
  for (int64_t i = 0; i < volume.voxels();) {
    const auto value = std::bit_cast<uint32_t>(volume[i]);
    int64_t end = i + 1;
    while (end < volume.voxels() && end - i < kLongest &&
           std::bit_cast<uint32_t>(volume[end]) == value) {
      ++end;
    }
    out.u32(static_cast<uint32_t>(end - i));
    out.u32(value);
    i = end;
  }
}

template <class T>
Volume<T> take_runs(models::ByteReader& in, const Grid& grid) {
  Volume<T> volume(grid);
  for (int64_t i = 0; i < volume.voxels();) {
    const int64_t count = in.u32();
    const T value = std::bit_cast<T>(in.u32());
    if (count == 0 || count > volume.voxels() - i) in.fail("it is of an image of another size");
    std::fill_n(volume.begin() + i, count, value);
    i += count;
  }
  return volume;
}

std::string encoded_frames(const SeriesProgress& progress) {
  models::ByteWriter out;
  out.u64(progress.labels.size());
  for (const LabelVolume& labels : progress.labels) put_runs(labels, out);
  out.f64(progress.volume_ml);
  out.f64(progress.iterations);
  return std::move(out).take();
}

std::string encoded_last(const levelset::SegmentResult& last) {
  models::ByteWriter out;
  out.u64(last.by_label.size());
  for (size_t f = 0; f < last.by_label.size(); ++f) {
    const auto& window = last.resolved.labels[f].window;
    out.integer(last.by_label[f].label);
    out.integer(static_cast<uint8_t>(window.has_value()));
    out.f64(window ? window->lower : 0);
    out.f64(window ? window->upper : 0);
    put_runs(last.by_label[f].phi_mm, out);
  }
  return std::move(out).take();
}

void take_frames(const std::string& bytes, const Grid& grid, int frames, SeriesProgress& progress) {
  models::ByteReader in(bytes, "its frames");
  const size_t count = in.count(8);
  if (count >= static_cast<size_t>(frames)) in.fail("it has more frames than the image");
  for (size_t i = 0; i < count; ++i) progress.labels.push_back(take_runs<int32_t>(in, grid));
  progress.volume_ml = in.f64();
  progress.iterations = in.f64();
  for (const double figure : {progress.volume_ml, progress.iterations}) {
    if (!std::isfinite(figure) || figure < 0) in.fail("its figures cannot be");
  }
  in.finish();
}

/// Frames hold the labels of the last surfaces and nothing else.
void require_labels(const models::ByteReader& in, const SeriesProgress& progress) {
  std::vector<int32_t> known = {0};
  for (const levelset::LabelResult& label : progress.last.by_label) known.push_back(label.label);
  for (const LabelVolume& frame : progress.labels) {
    const bool is_known = std::all_of(frame.begin(), frame.end(), [&](int32_t label) {
      return std::binary_search(known.begin(), known.end(), label);
    });
    if (!is_known) in.fail("its frames have labels that its surfaces have not");
  }
}

/// A run that has no surface left does not go on.
void require_surface(const models::ByteReader& in, const SeriesProgress& progress) {
  if (progress.labels.empty()) return;
  const auto is_left = [](const levelset::LabelResult& label) {
    return levelset::has_inside(label.phi_mm);
  };
  const auto& last = progress.last.by_label;
  if (std::none_of(last.begin(), last.end(), is_left)) {
    in.fail("it has no surfaces to go on from");
  }
}

void take_last(const std::string& bytes, const Grid& grid, size_t labels,
               SeriesProgress& progress) {
  models::ByteReader in(bytes, "its surfaces");
  const size_t count = in.count(8);
  if (count > labels) in.fail("it has more labels than the seeds");
  if ((count == 0) != progress.labels.empty()) in.fail("it has no surfaces to go on from");
  for (size_t f = 0; f < count; ++f) {
    levelset::LabelResult label;
    levelset::ResolvedLabel resolved;
    label.label = resolved.label = in.integer<int32_t>();
    const int32_t before = f > 0 ? progress.last.by_label.back().label : 0;
    if (label.label <= before) in.fail("its labels are not ascending numbers above 0");
    const bool has_window = in.integer<uint8_t>() != 0;
    const double lower = in.f64(), upper = in.f64();
    if (has_window) resolved.window = levelset::Window{lower, upper};
    if (has_window && !(std::isfinite(lower) && std::isfinite(upper) && lower < upper)) {
      in.fail("a window of it cannot be");
    }
    label.phi_mm = take_runs<float>(in, grid);
    if (std::any_of(label.phi_mm.begin(), label.phi_mm.end(),
                    [](float phi) { return !std::isfinite(phi); })) {
      in.fail("a level set of it is not a number");
    }
    progress.last.by_label.push_back(std::move(label));
    progress.last.resolved.labels.push_back(resolved);
  }
  in.finish();
  require_surface(in, progress);
  require_labels(in, progress);
}

/// A report per finished frame, as JSON. Values of a report are nested four deep; a damaged file
/// can be nested so deep that copying it ends the stack.
void require_reports(const SeriesProgress& progress) {
  using nlohmann::json;
  const auto refuse_deep = [](int depth, json::parse_event_t, json&) {
    constexpr int kDeepest = 32;
    if (depth > kDeepest) throw InputError("its reports are nested too deep; delete it");
    return true;
  };
  const json reports = json::parse(progress.reports, refuse_deep, false);
  if (!reports.is_array() || reports.size() != progress.labels.size()) {
    throw InputError("its reports are no list of one per frame; delete it");
  }
}

}  // namespace

levelset::SegmentResult kept_of(const levelset::SegmentResult& result,
                                const levelset::SegmentResult& before) {
  std::map<int32_t, std::pair<const levelset::LabelResult*, const levelset::ResolvedLabel*>> all;
  for (const levelset::SegmentResult* from : {&result, &before}) {
    for (size_t f = 0; f < from->by_label.size(); ++f) {
      all.try_emplace(from->by_label[f].label, &from->by_label[f], &from->resolved.labels.at(f));
    }
  }
  levelset::SegmentResult kept;
  for (const auto& [number, label] : all) {
    kept.by_label.push_back({.label = number, .phi_mm = label.first->phi_mm});
    kept.resolved.labels.push_back(*label.second);
  }
  return kept;
}

void write_series_checkpoint(const std::string& path, const std::string& fingerprint,
                             const SeriesProgress& progress) {
  models::Container container;
  container.kind = kSeriesCheckpointKind;
  container.kind_version = kKindVersion;
  put_fingerprint(fingerprint, container);
  container.sections["frames"].bytes = encoded_frames(progress);
  container.sections["reports"].bytes = progress.reports;
  container.sections["last"].bytes = encoded_last(progress.last);
  put_fields(progress.fields, container);
  models::write_container(path, container);
}

StoredSeries read_series_checkpoint(const std::string& path, const Grid& grid, int frames,
                                    size_t labels) {
  return models::naming_file("checkpoint", path, [&] {
    const models::Container container = models::read_container(path);
    if (container.kind != kSeriesCheckpointKind || container.kind_version != kKindVersion) {
      throw InputError(
          "it is no checkpoint of a time series; delete it, or segment without --resume");
    }
    StoredSeries stored{take_fingerprint(container)};
    take_frames(container.at("frames").bytes, grid, frames, stored.progress);
    take_last(container.at("last").bytes, grid, labels, stored.progress);
    stored.progress.reports = container.at("reports").bytes;
    require_reports(stored.progress);
    stored.progress.fields = take_fields(
        container, {static_cast<size_t>(levelset::make_brick_layout(grid.size).bricks()), labels});
    return stored;
  });
}

}  // namespace larch::pipeline
