// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Writes DICOM angiograms for other people's readers:
//   write-xa derived SOURCE OUT   frames - first frame of SOURCE, derived from it
//   write-xa original OUT         3 made-up frames of 12 bits with two mask items
//   write-xa labels OUT           the same without times
//   write-xa vector OUT           the same with uneven times
// The exit code is that of the error, as of the programs.
#include <cstdio>
#include <string>
#include <vector>

#include "larch/core/error.h"
#include "larch/io/sequence/sequence_reader.h"
#include "larch/io/sequence/sequence_writer.h"

namespace {
using namespace larch;

void derive(const std::string& source, const std::string& out) {
  SequenceReader reader(source);
  const Angiogram& about = reader.about();
  const auto pixels = static_cast<size_t>(reader.frame_pixels());
  SequenceHeader header{about.grid, about.frames, about.times_ms,
                        derived_xa_header(about, "the digest of a run",
                                          "Each frame minus the first, for a test", true)};
  SequenceWriter writer(out, header);
  std::vector<uint16_t> first(pixels), frame(pixels);
  reader.read(0, 1, first);
  for (int64_t i = 0; i < about.frames; ++i) {
    reader.read(i, 1, frame);
    std::vector<int16_t> difference(pixels);
    for (size_t k = 0; k < pixels; ++k) difference[k] = static_cast<int16_t>(frame[k] - first[k]);
    writer.write(std::span<const int16_t>(difference));
  }
  writer.finish();
}

void make_original(const std::string& kind, const std::string& out) {
  SequenceHeader header;
  header.grid.size = {31, 19, 1};
  header.grid.spacing_mm = {0.2, 0.3, 1};
  header.frames = 3;
  if (kind == "original") header.times_ms = {0, 133.25, 266.5};
  if (kind == "vector") header.times_ms = {0, 100, 350};
  XaHeader xa;
  xa.bits = 12;
  xa.identity = "made up";
  xa.series_description = "Made up";
  xa.patient_name = "Made^Up";
  xa.patient_id = "made-up";
  xa.display_rate_hz = 7.6;
  xa.window = XaWindow{2047.5, 4096};
  MaskItem average;
  average.operation = MaskOperation::kAverage;
  average.mask_frames = {0, 1};
  average.ranges = {{2, 2}};
  average.shift_px = {-0.5, 1.25, 0};
  average.explanation = "for a test";
  MaskItem tid;
  tid.operation = MaskOperation::kTid;
  tid.tid_offset = -1;
  xa.masks = {average, tid};
  header.xa = xa;
  SequenceWriter writer(out, header);
  std::vector<uint16_t> frame(31 * 19);
  for (int i = 0; i < 3; ++i) {
    for (size_t k = 0; k < frame.size(); ++k) {
      frame[k] = static_cast<uint16_t>((k * 7 + static_cast<size_t>(i) * 1000) % 4096);
    }
    writer.write(std::span<const uint16_t>(frame));
  }
  writer.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "derived") {
      derive(words[1], words[2]);
    } else if (words.size() == 2) {
      make_original(words[0], words[1]);
    } else {
      return 2;
    }
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
