// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "larch/cases/case_loop.h"
#include "larch/cases/stages.h"
#include "larch/config/bytes.h"
#include "larch/core/error.h"
#include "larch/core/step.h"
#include "larch/core/stream.h"
#include "larch/dsa/confirmation.h"
#include "larch/dsa/frame_mean.h"
#include "larch/dsa/region.h"
#include "larch/dsa/scores.h"
#include "larch/dsa/sequence.h"
#include "larch/pipeline/angiography/angiography_case.h"
#include "larch/pipeline/angiography/input/angiography_input.h"
#include "larch/pipeline/angiography/outputs/sequence_outputs.h"

namespace larch::pipeline {
namespace {

/// Frames of a batch at most. More of them keep a device no busier, and the first batch is waited
/// for before anything is computed, the last one while nothing is.
constexpr int kDeviceBatch = 8, kMostBatch = 64;
/// Measuring frames takes so many times the bytes of stored pixels: samples, filtered samples and
/// their passes, seven labels of each pixel, and a vector of a spline.
constexpr int64_t kScoreBytes = 14;
/// Frames of a mask take so many times the bytes of their stored pixels: samples, and values or
/// filtered samples, beside these and a copy of these.
constexpr int64_t kMaskBytes = 4;
/// Batches take this much where no promise is made.
constexpr int64_t kUsualBytes = int64_t{1} << 30;
/// Sequences of more batches give the memory of each back.
constexpr size_t kBatchesOfShortSequence = 8;

/// Contrast frames that follow each other in the sequence of all contrast frames and have one mask.
struct Batch {
  size_t group = 0;
  std::vector<int> frames{};
};

std::vector<Batch> make_batches(const MaskPlan& plan, int most) {
  std::map<int, size_t> group_of;  // by frame
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    for (const int frame : plan.groups[g].frames) group_of[frame] = g;
  }
  std::vector<Batch> batches;
  for (const auto& [frame, group] : group_of) {
    if (batches.empty() || batches.back().group != group ||
        batches.back().frames.size() >= static_cast<size_t>(most)) {
      batches.push_back({group, {}});
    }
    batches.back().frames.push_back(frame);
  }
  return batches;
}

/// Seconds that the stages of a sequence took. From `read` on they overlap: each is the time of the
/// thread that does it, until its work on the device is done.
struct SequenceTimes {
  double device = 0;  ///< until the device can be used, beside `open`
  double open = 0;    ///< header, collimator, mask chosen, outputs begun
  double read = 0, upload = 0, compute = 0, download = 0, score = 0, write = 0;
  cases::StageTimes streaming{};  ///< all of these but `open`, side by side
};

/// In milliseconds, for the report. On the CPU nothing is uploaded and downloaded.
nlohmann::ordered_json to_json(const SequenceTimes& times, bool is_cuda) {
  nlohmann::ordered_json json;
  const auto add = [&](const char* name, double seconds) {
    json[name] = std::round(1e6 * seconds) / 1e3;
  };
  if (is_cuda) add("device", times.device);
  add("open", times.open);
  add("read", times.read);
  if (is_cuda) add("upload", times.upload);
  add("compute", times.compute);
  if (is_cuda) add("download", times.download);
  add("score", times.score);
  add("write", times.write);
  add("streaming", times.streaming.seconds);
  add("waited_for_reading", times.streaming.waited_for_reading);
  add("waited_for_writing", times.streaming.waited_for_finishing);
  return json;
}

/// Frames of a batch and the bytes that the batches in flight take on the host.
struct BatchPlan {
  int frames = 1;
  bool overlaps = true;  ///< a batch is read and one is finished while another is computed
  int64_t bytes = 0;
};

/// The bytes that the frames in work may take.
int64_t budget_of(const AngiographyOptions& o) {
  if (o.images.memory) return o.images.memory.count;
  return std::min(kUsualBytes, static_cast<int64_t>(free_memory_bytes(Device::cpu()) / 2));
}

/// The device, and what is wanted of the frames, decide. Throws MemoryError if batches of one frame
/// take more than --memory.
BatchPlan plan_batches(const cases::CaseJob& c, const AngiographyOptions& o,
                       const OpenAngiogram& open, const Context& context) {
  const dsa::FrameBytes work =
      dsa::bytes_per_frame(o.config, open.reader.about().grid.size, outputs_wants(c, o));
  const bool is_cuda = context.device.is_cuda();
  const int64_t stored = 2 * open.reader.frame_pixels();
  const int64_t uploaded = is_cuda ? 0 : stored, images = is_cuda ? 0 : work.images;
  // Bytes of one frame; what is on the device counts on the CPU alone.
  const int64_t reading = stored + uploaded;
  const int64_t computing = stored + work.figures + (is_cuda ? 0 : work.on_device);
  const int64_t resting = stored + work.figures + std::max(uploaded, images);
  const int64_t finishing = resting + work.images + (measures_frames(o) ? kScoreBytes * stored : 0);
  // A batch is read, one computed, one written, and one waits. Where that is too much, they follow
  // each other.
  const int64_t all = reading + computing + resting + finishing;
  const int64_t alone = std::max({reading, computing, finishing});
  const int64_t budget = budget_of(o);
  if (o.images.memory && o.batch_frames == 0 && alone > budget) {
    throw MemoryError("a frame of '" + c.row.image + "' takes " + bytes_text(alone) +
                      " while it is worked on, --memory allows " + bytes_text(budget));
  }
  const int64_t most =
      is_cuda ? kDeviceBatch : std::clamp(context.threads, kDeviceBatch, kMostBatch);
  const int64_t wanted =
      o.batch_frames > 0 ? o.batch_frames : std::min(most, std::max<int64_t>(1, budget / all));
  BatchPlan plan;
  plan.frames = static_cast<int>(std::min(wanted, static_cast<int64_t>(open.frames.size())));
  plan.overlaps = o.batch_frames > 0 || all <= budget;
  plan.bytes = plan.frames * (plan.overlaps ? all : alone);
  return plan;
}

/// Throws MemoryError if the frames of a mask, which are held together while their mean is made,
/// take more than is allowed.
void require_masks_fit(const AngiographyOptions& o, const OpenAngiogram& open) {
  size_t most = 0;
  for (const MaskGroup& group : open.plan.groups) most = std::max(most, group.mask_frames.size());
  const int64_t bytes = static_cast<int64_t>(most) * 2 * kMaskBytes * open.reader.frame_pixels();
  const int64_t budget = budget_of(o);
  if (most <= 1 || bytes <= budget) return;
  throw MemoryError("the " + std::to_string(most) + " frames of the mask of '" +
                    open.reader.about().path + "' take " + bytes_text(bytes) +
                    " while their mean is made, " + bytes_text(budget) +
                    " are allowed; name fewer with --mask-frames, or give more --memory");
}

/// Checks what the header decides: files that cannot hold the frames, and memory.
BatchPlan check_and_plan(const cases::CaseJob& c, const AngiographyOptions& o,
                         const OpenAngiogram& open, const Context& context) {
  check_sequence_files(c, open.reader.about(), static_cast<int64_t>(open.frames.size()));
  require_masks_fit(o, open);
  return plan_batches(c, o, open, context);
}

/// A batch on its way.
struct BatchData {
  std::vector<uint16_t> mask{};  ///< frames of a new mask; empty: that of the batch before
  std::optional<dsa::SequenceMask> scored_mask{};  ///< the same mask on the host, to measure frames
  std::vector<uint16_t> stored{};                  ///< contrast frames
  Buffer<uint16_t> uploaded{};                     ///< the same on the device
  dsa::SubtractedBatch result{};
};

/// The queues of the device, one for each stage, so that copies go on while frames are computed.
struct StageQueues {
  Stream up, work, down;
  explicit StageQueues(const Device& device) : up(device), work(device), down(device) {}
};

/// The stages of a sequence; each is called for the batches in their order, by one thread.
class SequenceRun {
 public:
  SequenceRun(const AngiographyOptions& options, OpenAngiogram& open, SequenceOutputs& outputs,
              const StageQueues& queues, const Context& context, SequenceTimes& times)
      : options_(options),
        open_(open),
        outputs_(outputs),
        queues_(queues),
        context_(context),
        times_(times),
        pixels_(static_cast<size_t>(open.reader.frame_pixels())) {
    context_.device = queues.work.device();
  }

  void run(std::vector<Batch> batches, bool overlaps) {
    batches_ = std::move(batches);
    data_.resize(batches_.size());
    const cases::Stages stages{[this](size_t i) { read(i); }, [this](size_t i) { compute(i); },
                               [this](size_t i) { finish(i); }};
    times_.streaming = cases::run_stages(batches_.size(), stages, overlaps && works_beside(),
                                         [this] { return context_.stop_requested(); });
    context_.throw_if_stopped("stopped after " + std::to_string(done_) + " of " +
                              std::to_string(open_.frames.size()) +
                              " frames; no output was written");
  }

 private:
  /// Tells whether other threads than that of the computation may be used.
  bool works_beside() const { return context_.threads > 1 || context_.device.is_cuda(); }
  const MaskGroup& group_of(size_t i) const { return open_.plan.groups[batches_[i].group]; }

  void read(size_t i) {
    const MaskGroup& group = group_of(i);
    auto data = std::make_unique<BatchData>();
    {
      const Stopwatch watch(times_.read);
      if (i == 0 || batches_[i - 1].group != batches_[i].group) {
        data->mask = read_frames(group.mask_frames, 1);
      }
      data->stored = read_frames(batches_[i].frames, group.averaging);
    }
    const Stopwatch watch(times_.upload);
    data->uploaded = Buffer<uint16_t>(queues_.up.device(), data->stored);
    wait_for(queues_.up.device());
    data_[i] = std::move(data);
  }

  /// Each is the mean of `averaging` frames from it on. Frames that follow each other are read at
  /// once.
  std::vector<uint16_t> read_frames(const std::vector<int>& frames, int averaging) {
    std::vector<uint16_t> pixels(frames.size() * pixels_);
    for (size_t i = 0, count = 1; i < frames.size(); i += count, count = 1) {
      if (averaging > 1) {
        read_mean(frames[i], averaging, std::span(pixels).subspan(i * pixels_, pixels_));
        continue;
      }
      while (i + count < frames.size() && frames[i + count] == frames[i + count - 1] + 1) ++count;
      open_.reader.read(frames[i], static_cast<int64_t>(count),
                        std::span(pixels).subspan(i * pixels_, count * pixels_));
    }
    return pixels;
  }

  void read_mean(int first, int count, std::span<uint16_t> to) {
    if (stored_of_.empty()) stored_of_ = dsa::stored_of_samples(open_.table);
    dsa::FrameSum sum;
    for (int i = 0; i < count; ++i) {
      open_.reader.read(first + i, 1, to);
      dsa::add_frame(to, open_.table, sum);
    }
    dsa::mean_frame(sum, stored_of_, to);
  }

  void compute(size_t i) {
    const Stopwatch watch(times_.compute);
    BatchData& data = *data_[i];
    const std::vector<int>& frames = batches_[i].frames;
    context_.progress(static_cast<double>(done_) / static_cast<double>(open_.frames.size()),
                      "frame " + std::to_string(frames.front() + 1));
    if (!data.mask.empty()) {
      make_mask(group_of(i), data.mask);
      if (measures_frames(options_)) data.scored_mask = dsa::on_host(mask_);
      data.mask = {};
    }
    data.result =
        dsa::subtract_on_device(mask_, data.uploaded, options_.config, outputs_.wants(), context_);
    wait_for(context_.device);
    data.uploaded = {};
    if (!measures_frames(options_)) data.stored = {};
    done_ += frames.size();
  }

  /// `stored`: frames of a mask.
  dsa::MaskInput mask_input(const MaskGroup& group, std::span<const uint16_t> stored) const {
    dsa::MaskInput input;
    input.size = open_.reader.about().grid.size;
    input.table = open_.table;
    input.region = open_.region;
    input.open = open_.unshuttered;
    for (size_t at = 0; at < stored.size(); at += pixels_) {
      input.stored.push_back(stored.subspan(at, pixels_));
    }
    // The file tells by how much the mask is moved; vectors pull.
    const auto q16 = [](double px) {
      return static_cast<int32_t>(std::lround(std::ldexp(px, dsa::kVectorBits)));
    };
    input.start = {q16(-group.shift_px.x), q16(-group.shift_px.y), 0};
    return input;
  }

  void make_mask(const MaskGroup& group, std::span<uint16_t> stored) {
    const Angiogram& about = open_.reader.about();
    for (size_t at = 0; at < stored.size() && !open_.unshuttered.empty(); at += pixels_) {
      dsa::fill_covered(stored.subspan(at, pixels_), about.grid.size, open_.unshuttered);
    }
    mask_ = {};
    mask_ = dsa::make_mask(mask_input(group, stored), options_.config, context_);
    const std::vector<uint16_t> samples = mask_.samples.to_vector();
    if (std::any_of(samples.begin(), samples.end(),
                    [](uint16_t sample) { return sample != dsa::kNoSample; })) {
      return;
    }
    throw InputError("'" + about.path + "': no pixel of the mask (" +
                     frame_words(group.mask_frames) +
                     ") counts: all are black, saturated or behind the collimator; name other "
                     "frames with --mask-frames");
  }

  /// Behind the collimator there is nothing to be seen.
  void blank_covered(dsa::SubtractedFrames& result) const {
    if (open_.unshuttered.empty()) return;
    for (auto* frames : {&result.difference, &result.shifted, &result.uncorrected}) {
      for (size_t first = 0; first < frames->size(); first += pixels_) {
        for (size_t p = 0; p < pixels_; ++p) {
          if (open_.unshuttered[p] == 0) (*frames)[first + p] = 0;
        }
      }
    }
  }

  void finish(size_t i) {
    {
      const Stopwatch watch(times_.download);
      dsa::download(data_[i]->result, result_, queues_.down.device());
    }
    blank_covered(result_);
    const std::vector<dsa::FrameScores> scores = scores_of(i);
    const Stopwatch watch(times_.write);
    outputs_.write(result_);
    outputs_.add(batches_[i].frames, result_, scores);
    data_[i].reset();
  }

  /// Scores of the frames, of which some are subtracted again.
  std::vector<dsa::FrameScores> scores_of(size_t i) {
    if (!measures_frames(options_)) return std::vector<dsa::FrameScores>(batches_[i].frames.size());
    const Stopwatch watch(times_.score);
    BatchData& data = *data_[i];
    if (data.scored_mask) {
      basis_ =
          dsa::make_score_basis(std::move(*data.scored_mask), context_,
                                options_.scores ? dsa::ScoreKind::kAll : dsa::ScoreKind::kSpread);
    }
    auto scores = dsa::score_frames(basis_, data.stored, result_, options_.config, context_);
    dsa::confirm_frames(basis_, data.stored, result_, scores, options_.config, context_);
    blank_covered(result_);
    return scores;
  }

  const AngiographyOptions& options_;
  OpenAngiogram& open_;
  SequenceOutputs& outputs_;
  const StageQueues& queues_;
  Context context_;  // on the queue of the computation
  SequenceTimes& times_;
  const size_t pixels_;
  dsa::SequenceMask mask_{};
  dsa::ScoreBasis basis_{};            // of the mask of the frames that are scored
  std::vector<uint16_t> stored_of_{};  // by sample; made where frames are averaged
  dsa::SubtractedFrames result_{};     // what finish() works on; its memory serves all batches
  std::vector<Batch> batches_{};
  std::vector<std::unique_ptr<BatchData>> data_{};
  size_t done_ = 0;  // frames that are computed
};

}  // namespace

cases::CaseLook look_at_sequence(const cases::CaseJob& c, const AngiographyOptions& o) {
  const OpenAngiogram open = open_angiogram(c, o, c.context());
  const Angiogram& about = open.reader.about();
  region_of_interest(c, o, about.grid);
  cases::CaseLook look;
  look.bytes = check_and_plan(c, o, open, c.context()).bytes;
  look.cells = {
      {"pixels", std::to_string(about.grid.size.x) + "x" + std::to_string(about.grid.size.y)},
      {"frames", std::to_string(about.frames)},
      {"subtracted", std::to_string(open.frames.size())},
      {"mask", open.plan.source}};
  return look;
}

Outputs subtract_sequence(const cases::CaseJob& c, const AngiographyOptions& o,
                          const Context& context) {
  SequenceTimes times;
  const bool is_cuda = context.device.is_cuda();
  // The device starts beside what is done on the host meanwhile, which takes as long.
  auto starting =
      std::async(is_cuda ? std::launch::async | std::launch::deferred : std::launch::deferred, [&] {
        const Stopwatch watch(times.device);
        return std::make_unique<const StageQueues>(context.device);
      });
  std::optional<Stopwatch> opening(times.open);
  OpenAngiogram open = open_angiogram(c, o, context);
  find_region(c, o, open, context);
  find_mask(o, open, context);
  const Angiogram& about = open.reader.about();
  const BatchPlan plan = check_and_plan(c, o, open, context);
  context.info(std::to_string(open.frames.size()) + " of " + std::to_string(about.frames) +
               " frames of " + std::to_string(about.grid.size.x) + "x" +
               std::to_string(about.grid.size.y) + ", " + std::to_string(plan.frames) +
               " at a time; mask: " + open.plan.source);
  if (o.mask == MaskChoice::kBest) choose_masks(open, context);
  std::vector<Batch> batches = make_batches(open.plan, plan.frames);
  // Buffers that come and go in several threads would stay with the allocator, more of them the
  // longer the sequence. In a short one it is faster to keep them.
  if (batches.size() > kBatchesOfShortSequence) cases::give_memory_back(plan.bytes);
  SequenceOutputs outputs(c, o, open, context);
  opening.reset();
  const auto queues = starting.get();
  SequenceRun(o, open, outputs, *queues, context, times).run(std::move(batches), plan.overlaps);
  Outputs files = outputs.finish();
  files.report("stages_ms", to_json(times, is_cuda));
  context.progress(1, "done");
  return files;
}

}  // namespace larch::pipeline
