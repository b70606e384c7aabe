// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "larch/core/context.h"
#include "larch/core/device.h"
#include "larch/core/error.h"
#include "larch/dsa/image_agreement.h"
#include "larch/dsa/preparation.h"
#include "larch/dsa/samples.h"

namespace larch::dsa {
namespace {

/// Contrast frames that follow each other in the sequence of all contrast frames and have one mask.
struct FrameBatch {
  size_t group = 0;
  std::vector<int> frames{};
};

std::vector<FrameBatch> make_batches(const std::vector<MaskGroup>& groups, int most) {
  std::map<int, size_t> group_of;  // by frame
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const int frame : groups[g].frames) group_of[frame] = g;
  }
  std::vector<FrameBatch> batches;
  for (const auto& [frame, group] : group_of) {
    if (batches.empty() || batches.back().group != group ||
        batches.back().frames.size() >= static_cast<size_t>(most)) {
      batches.push_back({group, {}});
    }
    batches.back().frames.push_back(frame);
  }
  return batches;
}

/// A batch on its way.
struct BatchData {
  std::vector<uint16_t> mask{};  ///< frames of a new mask; empty: that of the batch before
  std::optional<SequenceMask> scored_mask{};  ///< the same mask on the host, to measure frames
  std::vector<uint16_t> stored{};             ///< contrast frames
  Buffer<uint16_t> uploaded{};                ///< the same on the device
  SubtractedBatch result{};
};

/// The queues of the device, one for each stage, so that copies go on while frames are computed.
struct StageQueues {
  Stream up, work, down;
  explicit StageQueues(const Device& device) : up(device), work(device), down(device) {}
};

/// The stages of a sequence; each is called for the batches in their order, by one thread.
class SequenceRun {
 public:
  SequenceRun(const SequenceRequest& request, const PreparedSequence& prepared,
              const TakeFrames& take, const StageQueues& queues, const Context& context)
      : request_(request),
        prepared_(prepared),
        take_(take),
        queues_(queues),
        context_(context),
        is_measured_(measures_frames(request.config, request.scores)),
        pixels_(request.source.pixels()) {
    context_.device = queues.work.device();
  }

  SequenceTimes run(std::vector<FrameBatch> batches) {
    batches_ = std::move(batches);
    data_.resize(batches_.size());
    stream();
    context_.throw_if_stopped("stopped after " + std::to_string(done_) + " of " +
                              std::to_string(prepared_.frames.size()) +
                              " frames; no output was written");
    return times_;
  }

 private:
  /// While a batch is computed the next one is read, and the one before is finished.
  void stream() {
    const bool overlaps = prepared_.plan.overlaps && works_beside();
    const auto when = overlaps ? std::launch::async : std::launch::deferred;
    const Stopwatch watch(times_.streaming);
    std::future<void> reading = std::async(when, [this] { read(0); }), finishing;
    for (size_t i = 0; i < batches_.size() && !context_.stop_requested(); ++i) {
      wait(reading, times_.waited_for_reading);
      if (i + 1 < batches_.size()) reading = std::async(when, [this, i] { read(i + 1); });
      compute(i);
      wait(finishing, times_.waited_for_writing);
      finishing = std::async(when, [this, i] { finish(i); });
      if (!overlaps) finishing.get();
    }
    wait(finishing, times_.waited_for_writing);
  }

  static void wait(std::future<void>& work, double& seconds) {
    const Stopwatch watch(seconds);
    if (work.valid()) work.get();
  }
  /// Tells whether other threads than that of the computation may be used.
  bool works_beside() const { return context_.threads > 1 || context_.device.is_cuda(); }
  const MaskGroup& group_of(size_t i) const { return prepared_.groups[batches_[i].group]; }

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
      request_.source.read(frames[i], static_cast<int64_t>(count),
                           std::span(pixels).subspan(i * pixels_, count * pixels_));
    }
    return pixels;
  }

  void read_mean(int first, int count, std::span<uint16_t> to) {
    if (stored_of_.empty()) stored_of_ = stored_of_samples(prepared_.table);
    FrameSum sum;
    for (int i = 0; i < count; ++i) {
      request_.source.read(first + i, 1, to);
      add_frame(to, prepared_.table, sum);
    }
    mean_frame(sum, stored_of_, to);
  }

  void compute(size_t i) {
    const Stopwatch watch(times_.compute);
    BatchData& data = *data_[i];
    const std::vector<int>& frames = batches_[i].frames;
    context_.progress(static_cast<double>(done_) / static_cast<double>(prepared_.frames.size()),
                      "frame " + std::to_string(frames.front() + 1));
    if (!data.mask.empty()) {
      make_mask(group_of(i), data.mask);
      if (is_measured_) data.scored_mask = on_host(mask_);
      data.mask = {};
    }
    data.result = subtract_on_device(mask_, data.uploaded, request_.config,
                                     made_of_frames(request_), context_);
    wait_for(context_.device);
    data.uploaded = {};
    if (!is_measured_) data.stored = {};
    done_ += frames.size();
  }

  /// `stored`: frames of a mask.
  MaskInput input_of(const MaskGroup& group, std::span<const uint16_t> stored) const {
    MaskInput input = dsa::mask_input(request_, prepared_);
    for (size_t at = 0; at < stored.size(); at += pixels_) {
      input.stored.push_back(stored.subspan(at, pixels_));
    }
    // The file tells by how much the mask is moved; vectors pull.
    const auto q16 = [](double px) {
      return static_cast<int32_t>(std::lround(std::ldexp(px, kVectorBits)));
    };
    input.start = {q16(-group.shift_px.x), q16(-group.shift_px.y), 0};
    return input;
  }

  void make_mask(const MaskGroup& group, std::span<uint16_t> stored) {
    for (size_t at = 0; at < stored.size() && !prepared_.unshuttered.empty(); at += pixels_) {
      fill_covered(stored.subspan(at, pixels_), request_.source.size, prepared_.unshuttered);
    }
    mask_ = {};
    mask_ = dsa::make_mask(input_of(group, stored), request_.config, context_);
    const std::vector<uint16_t> samples = mask_.samples.to_vector();
    if (std::ranges::any_of(samples, [](uint16_t sample) { return sample != kNoSample; })) {
      return;
    }
    throw InputError("'" + request_.source.name + "': no pixel of the mask (" +
                     frame_words(group.mask_frames) +
                     ") counts: all are black, saturated or behind the collimator; name other "
                     "frames with --mask-frames");
  }

  /// Behind the collimator there is nothing to be seen.
  void blank_covered(SubtractedFrames& result) const {
    if (prepared_.unshuttered.empty()) return;
    for (auto* frames : {&result.difference, &result.shifted, &result.uncorrected}) {
      for (size_t first = 0; first < frames->size(); first += pixels_) {
        for (size_t p = 0; p < pixels_; ++p) {
          if (prepared_.unshuttered[p] == 0) (*frames)[first + p] = 0;
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
    const std::vector<FrameScores> scores = scores_of(i);
    const Stopwatch watch(times_.write);
    take_(rows_of(i, scores), result_);
    data_[i].reset();
  }

  /// Returns the figures of the frames of a batch.
  std::span<const FrameRow> rows_of(size_t i, const std::vector<FrameScores>& scores) {
    const auto blocks =
        static_cast<size_t>(last_grid(request_.config, request_.source.size).blocks());
    rows_.clear();
    for (size_t at = 0; at < scores.size(); ++at) {
      FrameRow& row = rows_.emplace_back();
      row.frame = batches_[i].frames[at];
      row.mask_frames = group_of(i).mask_frames;
      row.averaging = group_of(i).averaging;
      row.figures = result_.figures[at];
      row.shift = result_.shift[at];
      row.scores = scores[at];
      std::span<const BlockMatch> matches(result_.matches);
      if (!matches.empty()) matches = matches.subspan(at * blocks, blocks);
      add_blocks(matches, row);
    }
    return rows_;
  }

  /// Counts the blocks of a frame, and takes the mean similarity of those that were searched.
  void add_blocks(std::span<const BlockMatch> matches, FrameRow& row) const {
    row.blocks = count_blocks(matches, row.figures);
    for (const BlockMatch& match : matches) {
      if ((match.flags & kBlockOutside) != 0 || match.best.count == 0) continue;
      row.similarity_before += similarity_of(match.before, request_.config.metric);
      row.similarity_after += similarity_of(match.best, request_.config.metric);
      ++row.compared_blocks;
    }
    const auto compared = static_cast<double>(std::max<int64_t>(row.compared_blocks, 1));
    row.similarity_before /= compared;
    row.similarity_after /= compared;
  }

  /// Scores of the frames, of which some are subtracted again.
  std::vector<FrameScores> scores_of(size_t i) {
    if (!is_measured_) return std::vector<FrameScores>(batches_[i].frames.size());
    const Stopwatch watch(times_.score);
    BatchData& data = *data_[i];
    if (data.scored_mask) {
      basis_ = make_score_basis(std::move(*data.scored_mask), context_,
                                request_.scores ? ScoreKind::kAll : ScoreKind::kSpread);
    }
    auto scores = score_frames(basis_, data.stored, result_, request_.config, context_);
    confirm_frames(basis_, data.stored, result_, scores, request_.config, context_);
    blank_covered(result_);
    return scores;
  }

  const SequenceRequest& request_;
  const PreparedSequence& prepared_;
  const TakeFrames& take_;
  const StageQueues& queues_;
  Context context_;  // on the queue of the computation
  SequenceTimes times_{};
  const bool is_measured_;
  const size_t pixels_;
  SequenceMask mask_{};
  ScoreBasis basis_{};                 // of the mask of the frames that are scored
  std::vector<uint16_t> stored_of_{};  // by sample; made where frames are averaged
  std::vector<FrameRow> rows_{};       // of the batch that was finished last
  SubtractedFrames result_{};          // what finish() works on; its memory serves all batches
  std::vector<FrameBatch> batches_{};
  std::vector<std::unique_ptr<BatchData>> data_{};
  size_t done_ = 0;  // frames that are computed
};

}  // namespace

SequenceTimes subtract_sequence(const SequenceRequest& request, const BeginFrames& begin,
                                const TakeFrames& take, const Context& whole) {
  const Turn turn = whole.turn();
  const Context& context = turn.context();
  const FrameSource& source = request.source;
  PreparedSequence prepared = prepare_sequence(request, context);
  std::vector<FrameBatch> batches = make_batches(prepared.groups, prepared.plan.frames);
  prepared.batches = batches.size();
  context.info(std::to_string(prepared.frames.size()) + " of " + std::to_string(source.frames) +
               " frames of " + std::to_string(source.size.x) + "x" + std::to_string(source.size.y) +
               ", " + std::to_string(prepared.plan.frames) +
               " at a time; mask: " + request.mask_source);
  if (begin) begin(prepared);
  const StageQueues queues(context.device);
  return SequenceRun(request, prepared, take, queues, context).run(std::move(batches));
}

bool measures_frames(const DsaConfig& config, bool scores) {
  return scores || confirms(config, {1, 1, 1});
}

BlockCounts count_blocks(std::span<const BlockMatch> matches, const FrameFigures& figures) {
  BlockCounts counts;
  counts.at_edge += figures.edge_hits;
  counts.all += static_cast<int64_t>(matches.size());
  for (const BlockMatch& match : matches) {
    const auto has = [&](BlockFlag flag) { return (match.flags & flag) != 0 ? 1 : 0; };
    counts.outside += has(kBlockOutside);
    if (has(kBlockOutside) != 0) continue;
    counts.unreliable += has(kBlockUnreliable);
    if (has(kBlockUnreliable) == 0) counts.replaced += has(kBlockReplaced);
  }
  return counts;
}

double similarity_of(const Score& score, Metric metric) {
  if (score.count == 0) return 0;
  const auto n = static_cast<double>(score.count), sum = static_cast<double>(score.sum);
  if (metric == Metric::kEhd) return sum / (n * n);
  return std::log(n) - sum / std::ldexp(1, 20) / n;
}

}  // namespace larch::dsa
