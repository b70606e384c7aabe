// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/pbt/evaluate/walk.cuh"
#include "larch/core/buffer.h"

namespace larch::pbt::cuda {
namespace {

/// A tree that is a single leaf gives one value everywhere.
__global__ void constant_kernel(WalkArguments a, uint64_t q60, int64_t voxels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < voxels) store(a, i, a.roi == nullptr || a.roi[i] != 0 ? q60 : 0);
}

/// The mean of an ensemble's trees from their sum, which is 0 outside the region of interest.
__global__ void mean_kernel(WalkArguments a, const uint64_t* sum, uint64_t trees, int64_t voxels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < voxels) store(a, i, tree::ensemble_mean_q60(sum[i], trees));
}

/// Leads the voxels through the only tree of the job.
void walk_tree(const EvaluateJob& job, const WalkArguments& arguments, int64_t voxels,
               const Device& device) {
  const NodeRecord& root = job.trees[0].nodes[0];
  if (root.left < 0) {
    constant_kernel<<<blocks_for(voxels, 256), 256, 0, larch::cuda::stream_of(device)>>>(
        arguments, static_cast<uint64_t>(kOneQ30) * root.q, voxels);
    larch::cuda::check_launch("constant_kernel");
  } else if (job.walk == Walk::kStack) {
    stack_walk(job, arguments, device);
  } else if (job.walk == Walk::kQueue) {
    queue_walk(job, arguments, device);
  } else {
    tile_walk(job, arguments, device);
  }
}

/// Leads the voxels through one tree after the other.
void walk_ensemble(const EvaluateJob& job, WalkArguments arguments, int64_t voxels,
                   const Device& device) {
  Buffer<uint64_t> sum(device, static_cast<size_t>(voxels));
  sum.set_zero();
  arguments.sum = sum.data();
  for (size_t t = 0; t < job.trees.size(); ++t) {
    EvaluateJob one = job;
    one.trees = job.trees.subspan(t, 1);
    walk_tree(one, arguments, voxels, device);
  }
  arguments.sum = nullptr;
  mean_kernel<<<blocks_for(voxels, 256), 256, 0, larch::cuda::stream_of(device)>>>(
      arguments, sum.data(), job.trees.size(), voxels);
  larch::cuda::check_launch("mean_kernel");
}

}  // namespace

std::shared_ptr<const Prepared> prepare_direct(const EvaluateJob& job, Walk walk,
                                               const Device& device) {
  return prepared<Prepared>(job, walk, device, [&] {
    auto made = std::make_shared<Prepared>();
    made->packed = pack_tree(job.trees[0], {job.layouts, static_cast<size_t>(job.channel_count)},
                             nullptr, device);
    return made;
  });
}

void evaluate(const EvaluateJob& job, const Context& context) {
  if (job.channel_count > kMaxChannels) {
    throw UsageError("pbt::evaluate: more than 64 channels on a CUDA device");
  }
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  const int64_t voxels = static_cast<int64_t>(job.size.x) * job.size.y * job.size.z;
  Buffer<uint8_t> roi;
  if (job.roi != nullptr) {
    roi = Buffer<uint8_t>(device, std::span<const uint8_t>(job.roi, static_cast<size_t>(voxels)));
  }
  Buffer<uint8_t> out;
  WalkArguments arguments;
  arguments.out = job.device_out;
  const size_t bytes = static_cast<size_t>(voxels) * bytes_of(job.type);
  if (job.device_out == nullptr) {
    out = Buffer<uint8_t>(device, bytes);
    arguments.out = out.data();
  }
  arguments.integral = job.integral;
  for (int c = 0; c < job.channel_count; ++c) arguments.layouts[c] = job.layouts[c];
  arguments.size = job.size;
  arguments.roi = job.roi != nullptr ? roi.data() : nullptr;
  arguments.type = job.type;
  if (job.trees.size() == 1) {
    walk_tree(job, arguments, voxels, device);
  } else {
    walk_ensemble(job, arguments, voxels, device);
  }
  if (job.host_out != nullptr) {
    out.download(std::span<uint8_t>(static_cast<uint8_t*>(job.host_out), bytes));
  } else {
    LARCH_CUDA_CHECK(cudaStreamSynchronize(larch::cuda::stream_of(device)));
  }
}

}  // namespace larch::pbt::cuda
