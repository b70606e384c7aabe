// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/subtract_sequence.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "larch/cases/case_loop.h"
#include "larch/cases/stages.h"
#include "larch/cases/step.h"
#include "larch/config/bytes.h"
#include "larch/core/error.h"
#include "larch/core/stream.h"
#include "larch/dsa/frame_mean.h"
#include "larch/dsa/scores.h"
#include "larch/dsa/sequence.h"
#include "larch/pipeline/angiography/outputs/native_output.h"
#include "larch/pipeline/angiography/outputs/sequence_outputs.h"

namespace larch::pipeline {
namespace {

/// Frames of a batch at most. More of them keep a device no busier, and the first batch is waited
/// for before anything is computed, the last one while nothing is.
constexpr int kDeviceBatch = 8, kMostBatch = 64;
/// Scoring takes so many times the bytes of stored pixels: samples, filtered samples and their
/// passes, and seven labels of each pixel.
constexpr int64_t kScoreBytes = 8;
/// The mean of a mask takes so many times the bytes of its stored pixels: samples and values.
constexpr int64_t kMaskBytes = 3;
/// What batches take where no promise is made.
constexpr int64_t kUsualBytes = int64_t{1} << 30;

int64_t pixels_of(const Vec3i& size) {
  return static_cast<int64_t>(size.x) * size.y;
}

/// Contrast frames that follow each other in the sequence of all contrast frames and have one mask.
struct Batch {
  size_t group = 0;
  std::vector<int> frames{};
};

std::vector<Batch> make_batches(const MaskPlan& plan, int most) {
  std::vector<std::pair<int, size_t>> all;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    for (const int frame : plan.groups[g].frames) all.emplace_back(frame, g);
  }
  std::sort(all.begin(), all.end());
  std::vector<Batch> batches;
  for (const auto& [frame, group] : all) {
    if (batches.empty() || batches.back().group != group ||
        batches.back().frames.size() >= static_cast<size_t>(most)) {
      batches.push_back({group, {}});
    }
    batches.back().frames.push_back(frame);
  }
  return batches;
}

/// Q16, as vectors are.
int32_t dsa_vector(double px) {
  return static_cast<int32_t>(std::lround(std::ldexp(px, dsa::kVectorBits)));
}

/// A batch on its way.
struct BatchData {
  std::vector<uint16_t> mask{};    ///< frames of a new mask; empty: that of the batch before
  std::vector<uint16_t> stored{};  ///< contrast frames
  Buffer<uint16_t> uploaded{};     ///< the same on the device
  dsa::SubtractedBatch result{};
};

/// The queues of the device, one for each stage, so that copies go on while frames are computed.
struct StageQueues {
  Stream up, work, down;
  explicit StageQueues(const Device& device) : up(device), work(device), down(device) {}
};

Context on_device(const Device& device, Context context) {
  context.device = device;
  return context;
}

/// The stages of a sequence; each is called for the batches in their order, by one thread.
class SequenceRun {
 public:
  SequenceRun(const SequenceRequest& request, const dsa::DsaConfig& config, OpenAngiogram& open,
              const std::vector<Batch>& batches, SequenceOutputs& outputs,
              const StageQueues& queues, const Context& context, SequenceTimes& times)
      : config_(config),
        open_(open),
        batches_(batches),
        outputs_(outputs),
        times_(times),
        queues_(queues),
        context_(on_device(queues_.work.device(), context)),
        pixels_(static_cast<size_t>(open.reader.frame_pixels())),
        has_scores_(request.has_scores),
        data_(batches.size()) {
    wants_ = outputs_wants(request);
    for (const Batch& batch : batches) frames_ += static_cast<int64_t>(batch.frames.size());
  }

  void run(const BatchPlan& plan) {
    cases::Stages stages;
    stages.read = [this](size_t i) { read(i); };
    stages.compute = [this](size_t i) { compute(i); };
    stages.finish = [this](size_t i) { finish(i); };
    const cases::StageTimes waited =
        cases::run_stages(batches_.size(), stages, plan.overlaps && works_beside(),
                          [this] { return context_.stop_requested(); });
    times_.streaming = waited.seconds;
    times_.waited_for_reading = waited.waited_for_reading;
    times_.waited_for_writing = waited.waited_for_finishing;
    if (context_.stop_requested()) {
      throw Stopped("stopped after " + std::to_string(done_) + " of " + std::to_string(frames_) +
                        " frames; no output was written",
                    static_cast<ExitCode>(context_.stop->load()));
    }
  }

 private:
  /// Whether other threads than that of the computation may be used.
  bool works_beside() const { return context_.threads > 1 || context_.device.is_cuda(); }

  void read(size_t i) {
    const Batch& batch = batches_[i];
    const MaskGroup& group = open_.plan.groups[batch.group];
    auto data = std::make_unique<BatchData>();
    {
      const cases::Stopwatch watch(times_.read);
      if (i == 0 || batches_[i - 1].group != batch.group) {
        data->mask = read_frames(group.mask_frames, 1);
      }
      data->stored = read_frames(batch.frames, group.averaging);
    }
    const cases::Stopwatch watch(times_.upload);
    data->uploaded = Buffer<uint16_t>(queues_.up.device(), data->stored);
    wait_for(queues_.up.device());
    data_[i] = std::move(data);
  }

  /// Frames that follow each other are read at once.
  std::vector<uint16_t> read_frames(const std::vector<int>& frames, int averaging) {
    std::vector<uint16_t> pixels(frames.size() * pixels_);
    const std::span all(pixels);
    if (averaging > 1) {
      for (size_t i = 0; i < frames.size(); ++i) {
        read_mean(frames[i], averaging, all.subspan(i * pixels_, pixels_));
      }
      return pixels;
    }
    for (size_t i = 0; i < frames.size();) {
      size_t count = 1;
      while (i + count < frames.size() &&
             frames[i + count] == frames[i] + static_cast<int>(count)) {
        ++count;
      }
      open_.reader.read(frames[i], static_cast<int64_t>(count),
                        all.subspan(i * pixels_, count * pixels_));
      i += count;
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
    const cases::Stopwatch watch(times_.compute);
    BatchData& data = *data_[i];
    const Batch& batch = batches_[i];
    context_.progress(static_cast<double>(done_) / static_cast<double>(frames_),
                      "frame " + std::to_string(batch.frames.front() + 1));
    if (!data.mask.empty()) make_mask(batch, data.mask);
    data.result =
        dsa::subtract_on_device(mask_, data.uploaded, config_, wants_, previous_, context_);
    wait_for(context_.device);
    data.uploaded = {};
    if (!has_scores_) data.mask = data.stored = {};
    done_ += static_cast<int64_t>(batch.frames.size());
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
    input.start = {dsa_vector(-group.shift_px.x), dsa_vector(-group.shift_px.y), 0};
    return input;
  }

  void make_mask(const Batch& batch, std::span<uint16_t> stored) {
    const MaskGroup& group = open_.plan.groups[batch.group];
    for (size_t at = 0; at < stored.size() && !open_.unshuttered.empty(); at += pixels_) {
      dsa::fill_covered(stored.subspan(at, pixels_), open_.reader.about().grid.size,
                        open_.unshuttered);
    }
    mask_ = {};
    mask_ = dsa::make_mask(mask_input(group, stored), config_, context_);
    require_samples(group);
    previous_.clear();
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

  void require_samples(const MaskGroup& group) const {
    const std::vector<uint16_t> samples = mask_.samples.to_vector();
    if (std::any_of(samples.begin(), samples.end(),
                    [](uint16_t sample) { return sample != dsa::kNoSample; })) {
      return;
    }
    const bool is_one = group.mask_frames.size() == 1;
    throw InputError("'" + open_.reader.about().path + "': no pixel of the mask (frame" +
                     (is_one ? " " : "s ") + frames_text(group.mask_frames) +
                     ") counts: all are black, saturated or behind the collimator; name other "
                     "frames with --mask-frames");
  }

  void finish(size_t i) {
    if (i != written_++) throw std::logic_error("batches of a sequence came out of order");
    BatchData& data = *data_[i];
    {
      const cases::Stopwatch watch(times_.download);
      dsa::download(data.result, result_, queues_.down.device());
    }
    blank_covered(result_);
    // Scores take all threads; files, which wait for the storage, are written beside them.
    const auto how =
        works_beside() ? std::launch::async | std::launch::deferred : std::launch::deferred;
    auto scoring = std::async(how, [&] { return scores_of(i, data); });
    {
      const cases::Stopwatch watch(times_.write);
      outputs_.write(result_);
    }
    const std::vector<dsa::FrameScores> scores = scoring.get();
    const cases::Stopwatch watch(times_.write);
    outputs_.add(batches_[i].frames, result_, scores);
    data_[i].reset();
  }

  std::vector<dsa::FrameScores> scores_of(size_t i, const BatchData& data) {
    if (!has_scores_) return std::vector<dsa::FrameScores>(batches_[i].frames.size());
    const cases::Stopwatch watch(times_.score);
    if (!data.mask.empty()) {
      const MaskGroup& group = open_.plan.groups[batches_[i].group];
      basis_ = dsa::make_score_basis(mask_input(group, data.mask), config_, context_);
    }
    return dsa::score_frames(basis_, data.stored, result_, config_, context_);
  }

  const dsa::DsaConfig& config_;
  OpenAngiogram& open_;
  const std::vector<Batch>& batches_;
  SequenceOutputs& outputs_;
  SequenceTimes& times_;
  const StageQueues& queues_;
  const Context context_;
  const size_t pixels_;
  dsa::SequenceWants wants_{};
  dsa::SequenceMask mask_{};
  dsa::ScoreBasis basis_{};  // of the mask of the frames that are scored
  const bool has_scores_;
  std::vector<Vec3i> previous_{};
  std::vector<uint16_t> stored_of_{};  ///< by sample; made where frames are averaged
  dsa::SubtractedFrames result_{};     // what finish() works on; its memory serves all batches
  std::vector<std::unique_ptr<BatchData>> data_;
  int64_t frames_ = 0, done_ = 0;
  size_t written_ = 0;
};

/// Sequences of more batches give the memory of each back.
constexpr size_t kBatchesOfShortSequence = 8;

/// What the frames in work may take.
int64_t budget_of(const SequenceRequest& request) {
  if (request.memory_bytes > 0) return request.memory_bytes;
  return std::min(kUsualBytes, static_cast<int64_t>(free_memory_bytes(Device::cpu()) / 2));
}

/// Starts the device beside what is done on the host meanwhile, which takes as long.
std::future<std::unique_ptr<const StageQueues>> start_device(const Device& device,
                                                             SequenceTimes& times) {
  const auto how =
      device.is_cuda() ? std::launch::async | std::launch::deferred : std::launch::deferred;
  return std::async(how, [device, &times] {
    const cases::Stopwatch watch(times.device);
    return std::make_unique<const StageQueues>(device);
  });
}

}  // namespace

BatchPlan plan_batches(const SequenceRequest& request, const dsa::DsaConfig& config,
                       const Vec3i& size, int64_t frames, const Context& context) {
  const dsa::FrameBytes work = dsa::bytes_per_frame(config, size, outputs_wants(request));
  const bool is_cuda = context.device.is_cuda();
  const int64_t stored = 2 * pixels_of(size);
  const int64_t uploaded = is_cuda ? 0 : stored, images = is_cuda ? 0 : work.images;
  // Bytes of one frame; what is on the device counts on the CPU alone.
  const int64_t reading = stored + uploaded;
  const int64_t computing = stored + work.figures + (is_cuda ? 0 : work.on_device);
  const int64_t resting = stored + work.figures + std::max(uploaded, images);
  const int64_t finishing = resting + work.images + (request.has_scores ? kScoreBytes * stored : 0);
  // A batch is read, one computed, one written, and one waits. Where that is too much, they follow
  // each other.
  const int64_t all = reading + computing + resting + finishing;
  const int64_t alone = std::max({reading, computing, finishing});
  const int64_t budget = budget_of(request);
  if (request.memory_bytes > 0 && request.batch_frames == 0 && alone > budget) {
    throw MemoryError("a frame of '" + request.input.path + "' takes " + bytes_text(alone) +
                      " while it is worked on, --memory allows " + bytes_text(budget));
  }
  const int64_t most =
      is_cuda ? kDeviceBatch : std::clamp(context.threads, kDeviceBatch, kMostBatch);
  BatchPlan plan;
  const int64_t wanted = request.batch_frames > 0
                             ? request.batch_frames
                             : std::min(most, std::max<int64_t>(1, budget / all));
  plan.frames = static_cast<int>(std::min(wanted, frames));
  plan.overlaps = request.batch_frames > 0 || all <= budget;
  plan.bytes = plan.frames * (plan.overlaps ? all : alone);
  return plan;
}

void require_masks_fit(const SequenceRequest& request, const MaskPlan& plan, const Grid& grid) {
  size_t most = 0;
  for (const MaskGroup& group : plan.groups) most = std::max(most, group.mask_frames.size());
  const int64_t bytes = static_cast<int64_t>(most) * 2 * kMaskBytes * grid.voxels();
  const int64_t budget = budget_of(request);
  if (most <= 1 || bytes <= budget) return;
  throw MemoryError("the " + std::to_string(most) + " frames of the mask of '" +
                    request.input.path + "' take " + bytes_text(bytes) +
                    " while their mean is made, " + bytes_text(budget) +
                    " are allowed; name fewer with --mask-frames, or give more --memory");
}

Outputs subtract_sequence(const SequenceRequest& request, const dsa::DsaConfig& config,
                          const Context& context) {
  cases::give_memory_back(request.memory_bytes);
  SequenceTimes times;
  auto starting = start_device(context.device, times);
  std::optional<cases::Stopwatch> opening(times.open);
  OpenAngiogram open = open_angiogram(request.input, config, context);
  find_region(request.input, open, context);
  const Angiogram& about = open.reader.about();
  const auto frames = static_cast<int64_t>(open.plan.frames().size());
  check_angiography_files_hold(request.files, about.grid, frames);
  check_native(about, request.files.native);
  require_masks_fit(request, open.plan, about.grid);
  const BatchPlan plan = plan_batches(request, config, about.grid.size, frames, context);
  context.info(std::to_string(frames) + " of " + std::to_string(about.frames) + " frames of " +
               std::to_string(about.grid.size.x) + "x" + std::to_string(about.grid.size.y) + ", " +
               std::to_string(plan.frames) + " at a time; mask: " + open.plan.source);
  const std::vector<Batch> batches = make_batches(open.plan, plan.frames);
  // Buffers that come and go in several threads would stay with the allocator, more of them the
  // longer the sequence. In a short one it is faster to keep them.
  if (batches.size() > kBatchesOfShortSequence) cases::give_memory_back(plan.bytes);
  SequenceOutputs outputs(request, config, open, context);
  const GrowingOutput native(request.files.native, context);
  opening.reset();
  const auto queues = starting.get();
  SequenceRun(request, config, open, batches, outputs, *queues, context, times).run(plan);
  native.fill([&] {
    write_native(native.temporary(), outputs.records(),
                 angiography_identity(request.input.path, config, open), open, context);
  });
  context.progress(1, "done");
  Outputs files = outputs.finish();
  files.add(native).report("stages_ms", to_json(times, context.device));
  return files;
}

}  // namespace larch::pipeline
