// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Images of several frames. The first byte chooses the ending, and whether the third axis is
// declared to be time; the second one frame. A sequence has a time per frame or none, and one frame
// alone is read as it is in the sequence.
#include <algorithm>
#include <cmath>

#include "larch/io/sequence/frame_sequence.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;

void require_whole(const Frames& frames) {
  fuzz::require_sound(frames.grid);
  fuzz::require(frames.grid.size.z == 1, "the frames are no pictures");
  fuzz::require(frames.count() >= 1 && frames.count() * frames.grid.voxels() ==
                                           static_cast<int64_t>(frames.pixels.size()),
                "a part of a frame was read");
  const auto is_finite = [](auto value) { return std::isfinite(value); };
  fuzz::require(std::all_of(frames.pixels.begin(), frames.pixels.end(), is_finite),
                "a pixel that is not finite was read");
  fuzz::require(
      frames.times_ms.empty() || static_cast<int64_t>(frames.times_ms.size()) == frames.count(),
      "not every frame has a time");
  fuzz::require(std::all_of(frames.times_ms.begin(), frames.times_ms.end(), is_finite),
                "a time that is not finite was read");
  fuzz::require(std::is_sorted(frames.times_ms.begin(), frames.times_ms.end()),
                "a frame was taken before the one before it");
}

void require_same(const Frames& frames, int64_t number, const Volume<float>& one) {
  fuzz::require(one.size() == frames.grid.size, "a frame alone has another size");
  const auto picture = frames.pixels.begin() + number * frames.grid.voxels();
  fuzz::require(std::equal(one.begin(), one.end(), picture), "a frame alone has other pixels");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr const char* kNames[] = {"case.nii", "case.nrrd", "case.mha", "case.dcm"};
  fuzz::Source in(data, size);
  const auto choice = in.take<uint8_t>();
  const auto chosen = in.take<uint8_t>();
  const std::string name = kNames[choice % 4];
  const std::string path = fuzz::file_of(name, in.bytes(size));
  const ThirdAxis axis = (choice & 4) != 0 ? ThirdAxis::kTime : ThirdAxis::kAsInFile;
  ReadOptions options;
  options.nan_value = 0;
  Frames frames;
  const bool whole =
      fuzz::accepts({ExitCode::kInput}, name, [&] { frames = read_frames(path, options, axis); });
  if (whole) require_whole(frames);
  const int64_t number = whole ? chosen % frames.count() : chosen;
  options.frame = static_cast<int>(number) + 1;
  Volume<float> one;
  const bool read =
      fuzz::accepts({ExitCode::kInput}, name, [&] { one = read_volume<float>(path, options); });
  if (axis == ThirdAxis::kTime || !whole) return 0;
  fuzz::require(read, "a sequence was read of which no frame can be read alone");
  require_same(frames, number, one);
  return 0;
}
