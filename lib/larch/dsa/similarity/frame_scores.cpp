// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/similarity/frame_scores.h"

#include "larch/core/dispatch.h"

namespace larch::dsa {
namespace {

constexpr Dispatch<void(const ShrinkJob&, const Context&)> kShrinkFrames{
    "dsa::shrink", cpu::shrink, LARCH_CUDA_FN(cuda::shrink)};
constexpr Dispatch<void(const FrameScoresJob&, const Context&)> kFrameScores{
    "dsa::frame_scores", cpu::frame_scores, LARCH_CUDA_FN(cuda::frame_scores)};

}  // namespace

void shrink(const ShrinkJob& job, const Context& context) {
  kShrinkFrames(context.device, job, context);
}

void frame_scores(const FrameScoresJob& job, const Context& context) {
  kFrameScores(context.device, job, context);
}

}  // namespace larch::dsa
