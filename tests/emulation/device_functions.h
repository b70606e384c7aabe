// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/emulation/device_memory.h"
#include "tests/emulation/device_threads.h"
#include "tests/emulation/device_words.h"

// What kernels are written with beside C++. Names and meanings are those of the CUDA C++
// programming guide.

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's
#define __host__
#define __device__
#define __global__
#define __constant__ const
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

#define threadIdx (::larch::emulation::running->index)
#define blockIdx (::larch::emulation::block_index())

// Numbers.

template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
inline int __popc(uint32_t bits) {
  return std::popcount(bits);
}
inline int __ffs(uint32_t bits) {
  return bits == 0 ? 0 : std::countr_zero(bits) + 1;
}
inline int __clz(uint32_t bits) {
  return std::countl_zero(bits);
}
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (shift % 32));
}
inline uint32_t __float_as_uint(float value) {
  return std::bit_cast<uint32_t>(value);
}
inline int __float_as_int(float value) {
  return std::bit_cast<int>(value);
}
inline float __uint_as_float(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline float __int_as_float(int bits) {
  return std::bit_cast<float>(bits);
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline float __fsqrt_rn(float a) {
  return std::sqrt(a);
}

// Memory that others may touch as well: here another thread may come first.

template <class T>
T __ldg(const T* from) {
  return *from;
}
template <class T>
T __ldcg(const T* from) {
  larch::emulation::switch_point();
  return *from;
}
template <class T>
void __stcg(T* to, std::type_identity_t<T> value) {
  larch::emulation::switch_point();
  *to = value;
}
inline void __threadfence() {
  larch::emulation::switch_point();
}
inline void __threadfence_block() {
  larch::emulation::switch_point();
}
inline void __nanosleep(uint32_t /*nanoseconds*/) {
  larch::emulation::switch_point();
}

namespace larch::emulation {
/// Replaces *at by function(*at) and returns what was there. Not checked as other accesses are.
template <class T, class F>
[[gnu::noinline, gnu::no_sanitize_thread]] T change(T* at, const F& function) {
  use_atomic(at, sizeof(T), __builtin_return_address(0));
  const T before = *at;
  *at = function(before);
  return before;
}
}  // namespace larch::emulation

template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return larch::emulation::change(at, [=](T before) { return static_cast<T>(before + value); });
}
template <class T>
T atomicSub(T* at, std::type_identity_t<T> value) {
  return larch::emulation::change(at, [=](T before) { return static_cast<T>(before - value); });
}
template <class T>
T atomicExch(T* at, std::type_identity_t<T> value) {
  return larch::emulation::change(at, [=](T) { return value; });
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return larch::emulation::change(at,
                                  [=](T before) { return before == expected ? value : before; });
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return larch::emulation::change(at, [=](T before) { return min(before, value); });
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return larch::emulation::change(at, [=](T before) { return max(before, value); });
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  return larch::emulation::change(at, [=](T before) { return before | value; });
}
template <class T>
T atomicAnd(T* at, std::type_identity_t<T> value) {
  return larch::emulation::change(at, [=](T before) { return before & value; });
}

// Threads of a block.

inline void __syncthreads() {
  larch::emulation::barrier(0);
}
inline int __syncthreads_or(int value) {
  return larch::emulation::any_of_block(value != 0) ? 1 : 0;
}
inline int __syncthreads_and(int value) {
  return larch::emulation::any_of_block(value == 0) ? 0 : 1;
}

// Lanes of a warp.

inline void __syncwarp(uint32_t mask = 0xffffffffU) {
  larch::emulation::collective(larch::emulation::Collective::kSync, mask, 0);
}
inline uint32_t __ballot_sync(uint32_t mask, int value) {
  return static_cast<uint32_t>(larch::emulation::collective(
      larch::emulation::Collective::kBallot, mask, static_cast<uint64_t>(value != 0)));
}
inline int __any_sync(uint32_t mask, int value) {
  return __ballot_sync(mask, value) != 0 ? 1 : 0;
}
inline int __all_sync(uint32_t mask, int value) {
  return __ballot_sync(mask, value == 0 ? 1 : 0) == 0 ? 1 : 0;
}
inline uint32_t __reduce_add_sync(uint32_t mask, uint32_t value) {
  return static_cast<uint32_t>(
      larch::emulation::collective(larch::emulation::Collective::kAdd, mask, value));
}
inline int __reduce_add_sync(uint32_t mask, int value) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<uint32_t>(value)));
}
inline uint32_t __reduce_or_sync(uint32_t mask, uint32_t value) {
  return static_cast<uint32_t>(
      larch::emulation::collective(larch::emulation::Collective::kOr, mask, value));
}
inline uint32_t __reduce_and_sync(uint32_t mask, uint32_t value) {
  return static_cast<uint32_t>(
      larch::emulation::collective(larch::emulation::Collective::kAnd, mask, value));
}
inline uint32_t __reduce_min_sync(uint32_t mask, uint32_t value) {
  return static_cast<uint32_t>(
      larch::emulation::collective(larch::emulation::Collective::kMin, mask, value));
}
inline uint32_t __reduce_max_sync(uint32_t mask, uint32_t value) {
  return static_cast<uint32_t>(
      larch::emulation::collective(larch::emulation::Collective::kMax, mask, value));
}
// With the sign bit turned, numbers with a sign are in the order of those without.
inline int __reduce_min_sync(uint32_t mask, int value) {
  return static_cast<int>(__reduce_min_sync(mask, static_cast<uint32_t>(value) ^ 1U << 31) ^
                          1U << 31);
}
inline int __reduce_max_sync(uint32_t mask, int value) {
  return static_cast<int>(__reduce_max_sync(mask, static_cast<uint32_t>(value) ^ 1U << 31) ^
                          1U << 31);
}

namespace larch::emulation {
/// The value of lane `source`, which is below 32.
template <class T>
T value_of_lane(uint32_t mask, T value, uint32_t source) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  word = collective(Collective::kShuffle, mask, word, source);
  std::memcpy(&value, &word, sizeof(T));
  return value;
}
}  // namespace larch::emulation

template <class T>
T __shfl_sync(uint32_t mask, T value, int source, int width = 32) {
  const uint32_t lane = larch::emulation::running->lane, part = static_cast<uint32_t>(width) - 1;
  return larch::emulation::value_of_lane(mask, value,
                                         (lane & ~part) | (static_cast<uint32_t>(source) & part));
}
template <class T>
T __shfl_up_sync(uint32_t mask, T value, uint32_t by, int width = 32) {
  const uint32_t lane = larch::emulation::running->lane, part = static_cast<uint32_t>(width) - 1;
  return larch::emulation::value_of_lane(mask, value, (lane & part) >= by ? lane - by : lane);
}
template <class T>
T __shfl_down_sync(uint32_t mask, T value, uint32_t by, int width = 32) {
  const uint32_t lane = larch::emulation::running->lane, part = static_cast<uint32_t>(width) - 1;
  return larch::emulation::value_of_lane(mask, value,
                                         (lane & part) + by <= part ? lane + by : lane);
}
template <class T>
T __shfl_xor_sync(uint32_t mask, T value, int bits, int width = 32) {
  const uint32_t lane = larch::emulation::running->lane, part = static_cast<uint32_t>(width) - 1;
  const uint32_t source = lane ^ static_cast<uint32_t>(bits);
  // Lower parts may be read, higher ones may not.
  return larch::emulation::value_of_lane(mask, value, source <= (lane | part) ? source : lane);
}
// NOLINTEND(bugprone-reserved-identifier)
