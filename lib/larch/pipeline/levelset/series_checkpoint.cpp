// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/series_checkpoint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <utility>

#include "larch/core/error.h"
#include "larch/levelset/brick_layout.h"
#include "larch/models/bytes.h"
#include "larch/models/file.h"
#include "larch/pipeline/levelset/segmentation_checkpoint.h"

namespace larch::pipeline {
namespace {

constexpr const char* kKind = "levelset-series";
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
  in.finish();
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
    const bool has_window = in.integer<uint8_t>() != 0;
    const double lower = in.f64(), upper = in.f64();
    if (has_window) resolved.window = levelset::Window{lower, upper};
    label.phi_mm = take_runs<float>(in, grid);
    progress.last.by_label.push_back(std::move(label));
    progress.last.resolved.labels.push_back(resolved);
  }
  in.finish();
}

}  // namespace

levelset::SegmentResult kept_of(const levelset::SegmentResult& result) {
  levelset::SegmentResult kept;
  for (const levelset::LabelResult& label : result.by_label) {
    kept.by_label.push_back({.label = label.label, .phi_mm = label.phi_mm});
  }
  kept.resolved.labels = result.resolved.labels;
  return kept;
}

void write_series_checkpoint(const std::string& path, const std::string& fingerprint,
                             const SeriesProgress& progress) {
  models::Container container;
  container.kind = kKind;
  container.kind_version = kKindVersion;
  container.sections["fingerprint"].bytes = fingerprint;
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
    if (container.kind != kKind || container.kind_version != kKindVersion) {
      throw InputError(
          "it is no checkpoint of a time series; delete it, or segment without --resume");
    }
    StoredSeries stored{container.at("fingerprint").bytes};
    take_frames(container.at("frames").bytes, grid, frames, stored.progress);
    take_last(container.at("last").bytes, grid, labels, stored.progress);
    stored.progress.reports = container.at("reports").bytes;
    stored.progress.fields = take_fields(
        container, {static_cast<size_t>(levelset::make_brick_layout(grid.size).bricks()), labels});
    return stored;
  });
}

}  // namespace larch::pipeline
