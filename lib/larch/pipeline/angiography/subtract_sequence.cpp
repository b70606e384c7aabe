// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <future>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "larch/cases/case_loop.h"
#include "larch/core/context.h"
#include "larch/core/device.h"
#include "larch/core/error.h"
#include "larch/pipeline/angiography/angiography_case.h"
#include "larch/pipeline/angiography/input/angiography_input.h"
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

}  // namespace

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

}  // namespace larch::pipeline
