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

using dsa::MaskGroup;

/// More frames than any device makes: a longer range is a mistake of typing.
constexpr int kMaximumFrames = 1'000'000;

int parse_number(const std::string& text, const std::string& whole, const std::string& flag) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw UsageError(flag + " '" + whole + "': give frames from 1 and ranges, such as 1-3,7");
  }
  if (number < 1 || number > kMaximumFrames) {
    throw UsageError(flag + " '" + whole + "': frames are counted from 1");
  }
  return number;
}

[[noreturn]] void contradict(const Angiogram& about, const std::string& what) {
  throw InputError("'" + about.path + "': its Mask Subtraction Sequence contradicts the file: " +
                   what + "; name the mask with --mask-frames");
}

/// The contrast frames of an item with their mask frames.
std::map<int, std::vector<int>> masks_of_item(const Angiogram& about, const MaskItem& item) {
  std::map<int, std::vector<int>> masks;
  if (item.operation == MaskOperation::kNone) return masks;
  const auto last = static_cast<int>(about.frames) - 1;
  const bool is_open = item.ranges.empty();
  const auto ranges = is_open ? std::vector<FrameSpan>{{0, last}} : item.ranges;
  for (const FrameSpan& span : ranges) {
    for (int frame = span.first; frame <= span.last; ++frame) {
      if (item.operation == MaskOperation::kAverage) {
        if (frame + item.contrast_averaging - 1 <= last) {
          masks[frame] = item.mask_frames;
        } else if (!is_open) {
          contradict(about, "Contrast Frame Averaging goes beyond the last frame");
        }
        continue;
      }
      // Backwards from the first frame of the first range on, whatever the ranges leave out.
      const bool is_reverse = item.operation == MaskOperation::kReverseTid;
      const int back = is_reverse ? 2 * (frame - ranges.front().first) : 0;
      const int mask = frame - item.tid_offset - back;
      if (mask >= 0 && mask <= last) {
        masks[frame] = {mask};
      } else if (!is_open) {
        contradict(about, "the mask of frame " + std::to_string(frame + 1) + " would be frame " +
                              std::to_string(mask + 1) + " of " + std::to_string(about.frames));
      }
    }
  }
  return masks;
}

}  // namespace

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

MaskPlan plan_by_file(const Angiogram& about, const std::vector<int>& wanted) {
  MaskPlan plan{.source = "the Mask Subtraction Sequence of the file"};
  if (!about.mask_problem.empty()) throw InputError(about.mask_problem);
  const std::set<int> asked(wanted.begin(), wanted.end());
  std::map<int, MaskGroup> by_frame;  // of each contrast frame, without its frames
  std::set<int> named;
  bool overlap = false;
  for (const MaskItem& item : about.masks) {
    for (const auto& [frame, mask] : masks_of_item(about, item)) {
      const bool is_mean = item.operation == MaskOperation::kAverage;
      MaskGroup group{.mask_frames = mask,
                      .averaging = is_mean ? item.contrast_averaging : 1,
                      .shift_px = item.shift_px};
      std::sort(group.mask_frames.begin(), group.mask_frames.end());
      named.insert(frame);
      if (asked.contains(frame)) overlap |= !by_frame.emplace(frame, group).second;
    }
  }
  if (by_frame.empty() && !named.empty()) {
    throw UsageError("'" + about.path + "': its Mask Subtraction Sequence is for frames " +
                     dsa::frames_text({named.begin(), named.end()}) +
                     ", none of which --frames names; name the mask with --mask-frames");
  }
  for (const auto& [frame, group] : by_frame) {
    const auto same =
        std::find_if(plan.groups.begin(), plan.groups.end(), [&group = group](const auto& other) {
          return other.mask_frames == group.mask_frames && other.averaging == group.averaging &&
                 other.shift_px == group.shift_px;
        });
    MaskGroup& to = same != plan.groups.end() ? *same : plan.groups.emplace_back(group);
    to.frames.push_back(frame);
  }
  if (overlap) {
    plan.warnings.push_back(
        "'" + about.path +
        "': several items of its Mask Subtraction Sequence name the same frames; the first counts");
  }
  return plan;
}

}  // namespace larch::pipeline
