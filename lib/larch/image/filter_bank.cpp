// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/image/filter_bank.h"

#include <algorithm>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"

namespace larch::image {
namespace {

FilterInput input_of(const ChannelSpec& channel, Components components) {
  FilterInput input;
  input.luminance = channel.component == kLuminance && components.size() == 3;
  for (size_t k = 0; k < (input.luminance ? 3 : 1); ++k) {
    const size_t first = channel.component > 0 ? static_cast<size_t>(channel.component) : 0;
    input.component[k] = components[first + k].data;
  }
  return input;
}

}  // namespace

namespace cpu {

namespace {

void convolve(const Vec3i& size, int axis, const FilterPass& pass, const Context& context) {
  const double* half = pass.kernel.value;
  const int radius = pass.kernel.radius, width = size.x;
  const int64_t row = width, step = axis == 1 ? row : row * size.y;
  parallel_for(context.threads, int64_t{size.y} * size.z, 8, [&](int64_t begin, int64_t end) {
    std::vector<double> line(static_cast<size_t>(width + 2 * radius));
    for (int64_t r = begin; r < end; ++r) {
      // Rows that are added with a factor: along x the row itself moved by k, with its ends
      // repeated; along y and z those of its neighbours.
      for (int i = 0; axis == 0 && i < width + 2 * radius; ++i) {
        line[static_cast<size_t>(i)] = pass.from[r * row + clamp_index(i - radius, width)];
      }
      const int count = size[axis == 0 ? 1 : axis];
      const int at = static_cast<int>(axis == 1 ? r % size.y : r / size.y);
      const auto neighbour = [&](int k) {
        if (axis == 0) return static_cast<const double*>(line.data()) + radius + k;
        return pass.from + r * row + (clamp_index(at + k, count) - at) * step;
      };
      double* out = pass.to + r * row;
      const double* centre = neighbour(0);
      for (int x = 0; x < width; ++x) out[x] = half[0] * centre[x];
      for (int k = 1; k <= radius; ++k) {
        const double *low = neighbour(-k), *high = neighbour(k);
        for (int x = 0; x < width; ++x) {
          out[x] += half[k] * (pass.kernel.odd ? high[x] - low[x] : high[x] + low[x]);
        }
      }
    }
  });
}

}  // namespace

void filter(const FilterJob& job, const Context& context) {
  const auto for_voxels = [&](const auto& store) {
    parallel_for_each(context.threads, job.voxels(), 1 << 14, [&](int64_t i) { store(i); });
  };
  for (size_t k = 0; k < job.inputs.size(); ++k) {
    double* out = job.input_values + static_cast<int64_t>(k) * job.voxels();
    for_voxels([&](int64_t i) { out[i] = job.inputs[k](i); });
  }
  for (int axis = 0; axis < 3; ++axis) {
    for (const FilterPass& pass : job.passes[axis]) convolve(job.size, axis, pass, context);
  }
  for (const FilterSum& sum : job.sums) for_voxels([&](int64_t i) { sum.store(i); });
}

}  // namespace cpu

namespace {

constexpr Dispatch<void(const FilterJob&, const Context&)> kFilter{"image::filter", cpu::filter,
                                                                   LARCH_CUDA_FN(cuda::filter)};

}  // namespace

HalfKernel half_kernel(double sigma, Kernel kernel) {
  HalfKernel half;
  half.radius = filter_radius(sigma);
  half.odd = kernel == Kernel::kFirst;
  double m0 = 0, m2 = 0, m4 = 0;  // moments of the samples
  for (int k = 0; k <= half.radius; ++k) {
    const double x = k;
    half.value[k] = exp_of(-x * x / (2 * sigma * sigma));
    const double both = k == 0 ? half.value[k] : 2 * half.value[k];
    m0 += both;
    m2 += both * x * x;
    m4 += both * x * x * x * x;
  }
  // (a k^2 + b) G has sum a m2 + b m0 = 0 and second moment a m4 + b m2 = 2.
  const double a = 2 / (m4 - m2 * m2 / m0), b = -a * m2 / m0;
  for (int k = 0; k <= half.radius; ++k) {
    const double x = k, g = half.value[k];
    half.value[k] = kernel == Kernel::kGauss   ? g / m0
                    : kernel == Kernel::kFirst ? x * g / m2
                                               : (a * x * x + b) * g;
  }
  return half;
}

void filter(std::span<const ChannelSpec> channels, Components components, int32_t* out,
            const Context& context) {
  FilterJob job{components[0].size};
  const int64_t voxels = job.voxels();
  const auto most = static_cast<int64_t>(channels.size()) * kFilterBytes / 8;
  Buffer<double> memory(context.device, static_cast<size_t>(most * voxels));
  job.input_values = memory.data();
  const auto values_of = [&](const FilterInput& input) {
    const auto at = std::find(job.inputs.begin(), job.inputs.end(), input) - job.inputs.begin();
    if (static_cast<size_t>(at) == job.inputs.size()) job.inputs.push_back(input);
    return memory.data() + at * voxels;
  };
  double* next = memory.data() + 2 * static_cast<int64_t>(channels.size()) * voxels;
  for (const ChannelSpec& channel : channels) {
    FilterTerm terms[3];
    FilterInput input = input_of(channel, components);
    FilterSum sum{channel.kind,
                  channel.sigma_voxels,
                  values_of(input),
                  {},
                  filter_terms(channel.kind, job.size.z == 1, terms),
                  out};
    out += voxels;
    for (int t = 0; t < sum.count; ++t, next += 2 * voxels) {
      input.squared = terms[t].squared;
      FilterPass pass{{}, values_of(input), next};
      for (int axis = 0; axis < 3; ++axis) {
        if (terms[t].along[axis] == Kernel::kNone) continue;
        pass.kernel = half_kernel(channel.sigma_voxels, terms[t].along[axis]);
        job.passes[axis].push_back(pass);
        sum.terms[t] = pass.from = pass.to;
        pass.to = pass.to == next ? next + voxels : next;
      }
    }
    job.sums.push_back(sum);
  }
  kFilter(context.device, job, context);
}

}  // namespace larch::image
