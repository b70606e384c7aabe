// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Sequences in batches. The first byte chooses the ending, the second the frames of a batch. What
// is accepted keeps the promises of Angiogram; its frames are the same one at a time and in
// batches, backwards too; and what is derived from it can be read again.
#include <algorithm>
#include <cmath>
#include <vector>

#include "larch/io/sequence/sequence_reader.h"
#include "larch/io/sequence/sequence_writer.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;

constexpr int64_t kReadAgain = 1 << 14;  // pixels; larger sequences would only cost time

void require_described(const Angiogram& about) {
  fuzz::require_sound(about.grid);
  fuzz::require(about.grid.size.z == 1 && about.frames >= 1, "the frames are no pictures");
  fuzz::require(about.bits >= 1 && about.bits <= 16, "pixels of more than 16 bits");
  fuzz::require(about.least_stored == 0 || about.least_stored == -(1 << (about.bits - 1)),
                "the least value is not that of the bits");
  fuzz::require(about.modality.empty() || about.modality.size() == size_t{1} << about.bits,
                "not every pixel has a value");
  const auto is_finite = [](auto value) { return std::isfinite(value); };
  fuzz::require(std::all_of(about.modality.begin(), about.modality.end(), is_finite),
                "a pixel has a value that is not finite");
  const auto& times = about.times_ms;
  fuzz::require(times.empty() || static_cast<int64_t>(times.size()) == about.frames,
                "not every frame has a time");
  fuzz::require(std::all_of(times.begin(), times.end(), is_finite) &&
                    std::is_sorted(times.begin(), times.end()),
                "times that are not finite or not in order");
  fuzz::require(about.masks.empty() || about.mask_problem.empty(), "masks that are a problem");
}

void require_masks(const Angiogram& about) {
  const auto is_there = [&](int frame) { return frame >= 0 && frame < about.frames; };
  for (const MaskItem& item : about.masks) {
    if (item.operation == MaskOperation::kNone) continue;
    for (const FrameSpan& span : item.ranges) {
      fuzz::require(is_there(span.first) && is_there(span.last) && span.first <= span.last,
                    "a range of frames that are not there");
    }
    fuzz::require(std::all_of(item.mask_frames.begin(), item.mask_frames.end(), is_there),
                  "a mask frame that is not there");
    fuzz::require(item.operation != MaskOperation::kAverage || !item.mask_frames.empty(),
                  "an average of no frames");
    fuzz::require(std::isfinite(item.shift_px.x) && std::isfinite(item.shift_px.y),
                  "a shift that is not finite");
    fuzz::require(
        item.tid_offset != 0 && std::abs(item.tid_offset) < std::max<int64_t>(about.frames, 2),
        "an offset out of the sequence");
  }
}

std::vector<uint16_t> read_all(SequenceReader& reader, int64_t batch, bool backwards) {
  const int64_t frames = reader.about().frames, pixels = reader.frame_pixels();
  std::vector<uint16_t> all(static_cast<size_t>(frames * pixels));
  const int64_t batches = (frames + batch - 1) / batch;
  for (int64_t i = 0; i < batches; ++i) {
    const int64_t first = (backwards ? batches - 1 - i : i) * batch;
    const int64_t count = std::min(batch, frames - first);
    reader.read(first, count,
                std::span(all).subspan(static_cast<size_t>(first * pixels),
                                       static_cast<size_t>(count * pixels)));
  }
  return all;
}

void require_derived(const Angiogram& about, const std::vector<uint16_t>& pixels) {
  const std::string path = fuzz::folder() + "/derived.dcm";
  SequenceHeader header{about.grid, about.frames, about.times_ms,
                        derived_xa_header(about, "fuzz", "as it was", false)};
  const bool written = fuzz::accepts({ExitCode::kUsage}, "derived.dcm", [&] {
    SequenceWriter writer(path, header);
    writer.write(std::span<const uint16_t>(pixels));
    writer.finish();
  });
  if (!written) return;  // times that DICOM has no room for
  SequenceReader back(path);
  fuzz::require(back.about().frames == about.frames, "a derived file has other frames");
  fuzz::require(read_all(back, about.frames, false) == pixels, "a derived file has other pixels");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr const char* kNames[] = {"case.dcm", "case.mha", "case.nrrd", "case.nii"};
  fuzz::Source in(data, size);
  const std::string name = kNames[in.take<uint8_t>() % 4];
  const auto chosen = in.take<uint8_t>();
  const std::string path = fuzz::file_of(name, in.bytes(size));
  fuzz::accepts({ExitCode::kInput}, name, [&] {
    SequenceReader reader(path);
    const Angiogram& about = reader.about();
    require_described(about);
    require_masks(about);
    if (about.frames > kReadAgain / reader.frame_pixels()) return;
    const int64_t batch = 1 + chosen % 4;
    const std::vector<uint16_t> pixels = read_all(reader, about.frames, false);
    const auto fits = [&](uint16_t pixel) { return pixel >> about.bits == 0; };
    fuzz::require(std::all_of(pixels.begin(), pixels.end(), fits), "a pixel beyond its bits");
    fuzz::require(read_all(reader, batch, true) == pixels, "a batch has other pixels");
    require_derived(about, pixels);
  });
  return 0;
}
