// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/team_math.h"

namespace larch::cuda {

constexpr int kTeamPlaces = 2 * kTeamWarp;

/// A block of kTeamThreads threads that does one job, with the same sums as OneThread.
struct BlockTeam {
  double* warps;                ///< kTeamPlaces of shared memory
  mutable bool second = false;  ///< sums take their halves in turn, so that one barrier is enough

  template <class F>
  __device__ void each(int count, const F& f) const {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kTeamThreads) f(i);
    __syncthreads();
  }
  template <class F>
  __device__ double sum(int count, const F& f) const {
    double own = 0;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kTeamThreads) own += f(i);
    own = sum_of_warp(own);
    double* const half = second ? warps + kTeamWarp : warps;
    second = !second;
    if (threadIdx.x % kTeamWarp == 0) half[threadIdx.x / kTeamWarp] = own;
    __syncthreads();
    return sum_of_warp(half[threadIdx.x % kTeamWarp]);
  }
  template <class F>
  __device__ void sums(int sums, int count, const F& f, double* out) const {
    const int warp = static_cast<int>(threadIdx.x) / kTeamWarp;
    for (int k = warp; k < sums; k += kTeamThreads / kTeamWarp) {
      double own = 0;
      for (int i = static_cast<int>(threadIdx.x) % kTeamWarp; i < count; i += kTeamWarp) {
        own += f(k, i);
      }
      own = sum_of_warp(own);
      if (threadIdx.x % kTeamWarp == 0) out[k] = own;
    }
    __syncthreads();
  }

 private:
  /// Both lanes of a pair add the same two numbers, so that all have the sum of sum_of_lanes.
  __device__ static double sum_of_warp(double own) {
    for (int apart = kTeamWarp / 2; apart > 0; apart /= 2) {
      own += __shfl_xor_sync(0xffffffffU, own, apart);
    }
    return own;
  }
};

}  // namespace larch::cuda
