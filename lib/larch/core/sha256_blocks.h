// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// The inner loop of SHA-256 (FIPS 180-4, 6.2.2): portable, and by the processor's own instructions
// where it has them. Inputs and outputs of a run are hashed, which may be gigabytes.
namespace larch::detail {

/// a to h.
using Sha256State = std::array<uint32_t, 8>;

/// Works `blocks` blocks of 64 bytes into the state.
using Sha256Blocks = void (*)(Sha256State& state, const uint8_t* data, size_t blocks);

extern const std::array<uint32_t, 64> kSha256Rounds;
void sha256_blocks_portable(Sha256State& state, const uint8_t* data, size_t blocks);
/// By the SHA extensions of x86 processors, which must be there; in builds for these alone.
void sha256_blocks_x86(Sha256State& state, const uint8_t* data, size_t blocks);

/// Returns all implementations that this processor can run, the fastest last; all give the same.
std::span<const Sha256Blocks> all_sha256_blocks();

}  // namespace larch::detail
