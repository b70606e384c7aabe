// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/dsa/match/search_math.h"

namespace larch::dsa::cuda {

/// Displacements whose scores are asked for, in units of 1/kUnit pixel.
struct Question {
  Vec3i units[2];
  bool asks[2];
};

/// search_block for conjugate directions at whole pixels and tenths of a picture, as questions and
/// answers: a warp has it in its registers, while all warps evaluate what it asks for.
///
///   while (search.ask(question)) search.take(score of units[0], score of units[1])
class DirectionsSearch {
 public:
  __device__ DirectionsSearch(const SearchPlan& plan, const Ranking& ranking)
      : plan_(plan), ranking_(ranking), directions_({}, 2, plan.range, plan.rounds) {}

  /// The next question; false: there is none, and found() is what was found.
  __device__ bool ask(Question& question) {
    switch (stage_) {
      case Stage::kStart:
        question = {{units_at({}), {}}, {true, false}};
        return true;
      case Stage::kWhole:
        if (directions_.goes_on()) return ask_directions(question);
        found_.whole = directions_.current();
        found_.evaluations = 1 + directions_.evaluations();
        begin_tenths();
        [[fallthrough]];
      case Stage::kTenths:
        if (plan_.subpixel != SubPixel::kNone && directions_.goes_on()) {
          return ask_directions(question);
        }
        finish();
        return false;
    }
    return false;
  }

  __device__ void take(const Score& forward, const Score& back, const Question& question) {
    if (stage_ == Stage::kStart) {
      found_.at_start = forward;
      directions_ = Directions({{}, forward}, 2, plan_.range, plan_.rounds);
      stage_ = Stage::kWhole;
    } else {
      directions_.take(forward, back, ranking_);
    }
  }

  __device__ const Found& found() const { return found_; }
  /// The score at found().units.
  __device__ const Score& score() const { return directions_.current().score; }

 private:
  enum class Stage { kStart, kWhole, kTenths };

  __device__ Vec3i units_at(const Vec3i& steps) const { return origin() + steps * step(); }
  __device__ Vec3i origin() const {
    const Vec3i centre = plan_.centre * kUnit;
    return stage_ == Stage::kTenths ? centre + found_.whole.at * kUnit : centre;
  }
  __device__ int32_t step() const { return stage_ == Stage::kTenths ? kTenth : kUnit; }

  __device__ bool ask_directions(Question& question) const {
    question.asks[0] = directions_.asks(kForward);
    question.asks[1] = directions_.asks(kBack);
    question.units[0] = units_at(directions_.at(kForward));
    question.units[1] = units_at(directions_.at(kBack));
    return true;
  }

  __device__ void begin_tenths() {
    found_.at_edge = is_at_edge(plan_, found_.whole.at);
    stage_ = Stage::kTenths;
    directions_ = Directions({{}, found_.whole.score}, 2, kLatticeHalf, plan_.rounds);
  }
  __device__ void finish() {
    found_.units = units_at(directions_.current().at);
    found_.vector = q16_of(found_.units);
    found_.evaluations += directions_.evaluations();
  }

  const SearchPlan plan_;
  const Ranking ranking_;
  Stage stage_ = Stage::kStart;
  Directions directions_;
  Found found_;
};

}  // namespace larch::dsa::cuda
