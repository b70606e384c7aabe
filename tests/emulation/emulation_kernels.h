// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Launches of what emulation_kernels.cu has.
namespace larch::test {

struct GridRun {
  uint32_t* sums;
  int32_t steps;
};

void run_lanes(uint32_t* out);
void run_neighbour(uint32_t* out, bool has_barrier);
void run_lane(uint32_t* out, bool has_barrier);
void run_add(uint32_t* sum, bool is_atomic);
void run_forgotten(uint32_t* out);
void run_beyond(uint32_t* out, int32_t count);
void run_unwritten(uint32_t* out);
void run_addresses(const uint32_t* from, uint32_t* out, bool waits);
void run_no_address(uint32_t* out);
void run_words(const uint32_t* pairs, uint32_t* out, uint32_t count);
void run_block(const int32_t* keys, uint32_t* out, bool has_barrier);
void run_graph(uint32_t* sum, uint32_t* out);
void run_grid(const GridRun& run, uint32_t blocks);

}  // namespace larch::test
