// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/host_device.h"

namespace larch {

constexpr int kTeamThreads = 1024, kTeamWarp = 32;

/// Returns the order of sums over 32 lanes: pairs 16 apart are added, then 8, 4, 2 and 1 apart.
LARCH_HD double sum_of_lanes(double (&lanes)[kTeamWarp]) {
  for (int apart = kTeamWarp / 2; apart > 0; apart /= 2)
    for (int lane = 0; lane < apart; ++lane) lanes[lane] += lanes[lane + apart];
  return lanes[0];
}

/// The threads that do one job together: on the CPU one thread, on a GPU a block of 1024 (its twin
/// is cuda/core/team.cuh). All threads make the same calls. What a call writes is seen by all
/// threads after it. Sums are taken in one order: thread t adds the terms t, t + 1024, ...; then
/// those of the 32 threads of a warp, and of the 32 warps, are added as sum_of_lanes does.
struct OneThread {
  /// f(i) for 0 <= i < count.
  template <class F>
  LARCH_HD void each(int count, const F& f) const {
    for (int i = 0; i < count; ++i) f(i);
  }
  /// Returns the sum of f(i), which may write what belongs to i.
  template <class F>
  LARCH_HD double sum(int count, const F& f) const {
    double warps[kTeamWarp];
    for (int warp = 0; warp < kTeamWarp; ++warp) {
      double lanes[kTeamWarp];
      for (int lane = 0; lane < kTeamWarp; ++lane) {
        lanes[lane] = 0;
        for (int i = warp * kTeamWarp + lane; i < count; i += kTeamThreads) lanes[lane] += f(i);
      }
      warps[warp] = sum_of_lanes(lanes);
    }
    return sum_of_lanes(warps);
  }
  /// out[k], 0 <= k < sums: the sum of f(k, i) over i, of which each warp takes one k: lane l adds
  /// the terms l, l + 32, ...
  template <class F>
  LARCH_HD void sums(int sums, int count, const F& f, double* out) const {
    for (int k = 0; k < sums; ++k) {
      double lanes[kTeamWarp];
      for (int lane = 0; lane < kTeamWarp; ++lane) {
        lanes[lane] = 0;
        for (int i = lane; i < count; i += kTeamWarp) lanes[lane] += f(k, i);
      }
      out[k] = sum_of_lanes(lanes);
    }
  }
};

}  // namespace larch
