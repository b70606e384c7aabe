// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/input/mask_plan.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "larch/core/error.h"

namespace larch::pipeline {
namespace {

/// More frames than any device makes: a longer range is a mistake of typing.
constexpr int kMostFrames = 1'000'000;

int parse_number(const std::string& text, const std::string& whole, const std::string& flag) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw UsageError(flag + " '" + whole + "': give frames from 1 and ranges, such as 1-3,7");
  }
  if (number < 1 || number > kMostFrames) {
    throw UsageError(flag + " '" + whole + "': frames are counted from 1");
  }
  return number;
}

std::string frame_text(int frame) {
  return "frame " + std::to_string(frame + 1);
}

[[noreturn]] void contradict(const Angiogram& about, const std::string& what) {
  throw InputError("'" + about.path + "': its Mask Subtraction Sequence contradicts the file: " +
                   what + "; name the mask with --mask-frames");
}

/// The frames that the ranges of an item name, in their order.
std::vector<int> frames_of_ranges(const Angiogram& about, const MaskItem& item) {
  std::vector<int> frames;
  for (const FrameSpan& span : item.ranges) {
    if (span.first < 0 || span.last < span.first || span.last >= about.frames) {
      contradict(about, "it names frames " + std::to_string(span.first + 1) + " to " +
                            std::to_string(span.last + 1) + " of " + std::to_string(about.frames));
    }
    for (int frame = span.first; frame <= span.last; ++frame) frames.push_back(frame);
  }
  return frames;
}

void require_mask(const Angiogram& about, int mask, int frame) {
  if (mask >= 0 && mask < about.frames) return;
  contradict(about, "the mask of " + frame_text(frame) + " would be " + frame_text(mask) + " of " +
                        std::to_string(about.frames));
}

/// The contrast frames of an item with their mask frames.
std::map<int, std::vector<int>> masks_of_item(const Angiogram& about, const MaskItem& item) {
  std::vector<int> frames = frames_of_ranges(about, item);
  const bool is_open = frames.empty();
  const auto last = static_cast<int>(about.frames) - 1;
  if (is_open) {
    if (item.operation == MaskOperation::kReverseTid) {
      contradict(about, "REV_TID without Applicable Frame Range");
    }
    for (int frame = 0; frame <= last; ++frame) frames.push_back(frame);
  }
  std::map<int, std::vector<int>> masks;
  const int first = frames.front();
  for (const int frame : frames) {
    switch (item.operation) {
      case MaskOperation::kNone:
        break;
      case MaskOperation::kAverage:
        if (item.mask_frames.empty()) contradict(about, "AVG_SUB without Mask Frame Numbers");
        for (const int mask : item.mask_frames) require_mask(about, mask, frame);
        if (frame + item.contrast_averaging - 1 <= last) {
          masks[frame] = item.mask_frames;
        } else if (!is_open) {
          contradict(about, "Contrast Frame Averaging goes beyond the last frame");
        }
        break;
      case MaskOperation::kTid:
      case MaskOperation::kReverseTid: {
        // Backwards from the first frame of the first range on, whatever the ranges leave out.
        const bool is_reverse = item.operation == MaskOperation::kReverseTid;
        const int mask = frame - item.tid_offset - (is_reverse ? 2 * (frame - first) : 0);
        if (is_open && (mask < 0 || mask > last)) break;
        require_mask(about, mask, frame);
        masks[frame] = {mask};
        break;
      }
    }
  }
  return masks;
}

}  // namespace

std::vector<int> MaskPlan::frames() const {
  std::vector<int> all;
  for (const MaskGroup& group : groups) {
    all.insert(all.end(), group.frames.begin(), group.frames.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int> parse_frames(const std::string& text, int64_t count, const std::string& flag) {
  std::set<int> frames;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const size_t dash = part.find('-');
    const int first = parse_number(part.substr(0, dash), text, flag);
    const int last =
        dash == std::string::npos ? first : parse_number(part.substr(dash + 1), text, flag);
    if (last < first) throw UsageError(flag + " '" + text + "': a range goes from low to high");
    if (count > 0 && last > count) {
      throw UsageError(flag + " '" + text + "': there is no frame " + std::to_string(last) +
                       "; the sequence has " + std::to_string(count) + ", counted from 1");
    }
    for (int frame = first; frame <= last; ++frame) frames.insert(frame - 1);
    at = end + 1;
  }
  return {frames.begin(), frames.end()};
}

std::string frames_text(const std::vector<int>& frames) {
  std::string text;
  for (size_t i = 0; i < frames.size(); ++i) {
    size_t last = i;
    while (last + 1 < frames.size() && frames[last + 1] == frames[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(frames[i] + 1);
    if (last > i) text += "-" + std::to_string(frames[last] + 1);
    i = last;
  }
  return text;
}

MaskPlan plan_by_frames(const std::vector<int>& mask_frames, const std::vector<int>& wanted,
                        const std::string& source) {
  MaskPlan plan;
  plan.source = source;
  MaskGroup group;
  group.mask_frames = mask_frames;
  const std::set<int> masks(mask_frames.begin(), mask_frames.end());
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(group.frames),
               [&](int frame) { return !masks.contains(frame); });
  if (group.frames.empty()) {
    throw InputError(
        "no contrast frame is left: the mask takes all frames; a sequence needs a mask frame and "
        "at least one more");
  }
  plan.groups.push_back(group);
  return plan;
}

MaskPlan plan_by_file(const Angiogram& about, const std::vector<int>& wanted) {
  MaskPlan plan;
  plan.source = "the Mask Subtraction Sequence of the file";
  if (!about.mask_problem.empty()) throw InputError(about.mask_problem);
  const std::set<int> asked(wanted.begin(), wanted.end());
  std::map<int, MaskGroup> by_frame;  // of each contrast frame, without its frames
  std::set<int> named;
  bool overlap = false;
  for (const MaskItem& item : about.masks) {
    for (const auto& [frame, mask] : masks_of_item(about, item)) {
      MaskGroup group;
      group.mask_frames = mask;
      std::sort(group.mask_frames.begin(), group.mask_frames.end());
      group.averaging = item.operation == MaskOperation::kAverage ? item.contrast_averaging : 1;
      group.shift_px = item.shift_px;
      named.insert(frame);
      if (asked.contains(frame)) overlap |= !by_frame.emplace(frame, group).second;
    }
  }
  if (by_frame.empty() && !named.empty()) {
    throw UsageError("'" + about.path + "': its Mask Subtraction Sequence is for frames " +
                     frames_text({named.begin(), named.end()}) +
                     ", none of which --frames names; name the mask with --mask-frames");
  }
  for (const auto& entry : by_frame) {
    const MaskGroup& group = entry.second;
    const auto same = std::find_if(plan.groups.begin(), plan.groups.end(), [&](const auto& other) {
      return other.mask_frames == group.mask_frames && other.averaging == group.averaging &&
             other.shift_px == group.shift_px;
    });
    MaskGroup& to = same != plan.groups.end() ? *same : plan.groups.emplace_back(group);
    to.frames.push_back(entry.first);
  }
  if (overlap) {
    plan.warnings.push_back(
        "'" + about.path +
        "': several items of its Mask Subtraction Sequence name the same frames; the first counts");
  }
  return plan;
}

}  // namespace larch::pipeline
