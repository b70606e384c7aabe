// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/evolve/field.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>

#include "larch/core/error.h"
#include "larch/core/parallel.h"

namespace larch::levelset {
namespace {

/// Calls body(first offset in the bricks, first index in the image, voxels) for each row of each
/// brick that lies in the image.
template <class Body>
void for_rows(const BrickLayout& layout, int threads, const Body& body) {
  const Vec3i size = layout.size;
  parallel_for_each(
      threads, int64_t{size.z} * size.y, fair_grain(threads, int64_t{size.z} * size.y, 64),
      [&](int64_t row) {
        const auto y = static_cast<int32_t>(row % size.y);
        const auto z = static_cast<int32_t>(row / size.y);
        for (int32_t x = 0; x < size.x; x += kBrick) {
          body(layout.offset({x, y, z}), row * size.x + x, std::min(kBrick, size.x - x));
        }
      });
}

void check_size(const BrickLayout& layout, const Vec3i& size, const char* what) {
  if (layout.size != size) throw std::logic_error(std::string(what) + ": another size than phi");
}

/// Memory by brick on the host, in which what fills up the bricks at the far borders has a value.
template <class T>
Buffer<T> filled_up(const BrickLayout& layout, T value) {
  Buffer<T> host(Device::cpu(), static_cast<size_t>(layout.stored_voxels()));
  const int64_t voxels = int64_t{layout.size.x} * layout.size.y * layout.size.z;
  if (layout.stored_voxels() > voxels) std::fill_n(host.data(), host.size(), value);
  return host;
}

bool has_not_a_number(const Volume<float>& volume, int threads) {
  std::atomic<bool> is_found{false};
  parallel_for(threads, volume.voxels(), int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    bool is_here = false;
    for (int64_t i = begin; i < end; ++i) is_here |= std::isnan(volume[i]);
    if (is_here) is_found = true;
  });
  return is_found;
}

/// Values by brick as an image.
template <class T>
Volume<T> as_image(const Buffer<T>& values, const BrickLayout& layout, const Grid& grid,
                   const Context& context) {
  auto image = Volume<T>::unfilled(grid);
  const auto fill = [&](const T* from_bricks) {
    for_rows(layout, context.threads, [&](int64_t from, int64_t to, int32_t count) {
      std::copy_n(from_bricks + from, count, image.data() + to);
    });
  };
  if (values.device().is_cuda()) {
    Buffer<T> host(Device::cpu(), values.size());
    memory::copy(Device::cpu(), host.data(), values.device(), values.data(),
                 values.size() * sizeof(T));
    fill(host.data());
  } else {
    fill(values.data());
  }
  return image;
}

}  // namespace

Buffer<int16_t> by_brick(const Volume<int16_t>& values, const Context& context) {
  const BrickLayout layout = make_brick_layout(values.size());
  Buffer<int16_t> host = filled_up<int16_t>(layout, 0);
  for_rows(layout, context.threads, [&](int64_t to, int64_t from, int32_t count) {
    std::copy_n(values.data() + from, count, host.data() + to);
  });
  if (!context.device.is_cuda()) return host;
  return {context.device, std::span<const int16_t>(host.data(), host.size())};
}

void set_phi(LevelsetField& field, const Volume<float>& phi, const Context& context) {
  check_size(field.layout, phi.size(), "set_phi");
  if (has_not_a_number(phi, context.threads)) {
    throw InputError("the level-set function has voxels that are not a number: set them first");
  }
  const bool is_cuda = context.device.is_cuda();
  std::array<Buffer<float>, 2> host;
  host[0] = filled_up(field.layout, kClamp);
  if (!is_cuda) host[1] = filled_up(field.layout, kClamp);
  for_rows(field.layout, context.threads, [&](int64_t to, int64_t from, int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
      // 0 is added so that no zero is negative: of two zeros, `larger` gives either, and trackers
      // and devices compare bits or values.
      const float value = held(phi[from + i] + 0.0F);
      host[0].data()[to + i] = value;
      if (!is_cuda) host[1].data()[to + i] = value;
    }
  });
  if (!is_cuda) {
    for (size_t side = 0; side < 2; ++side) field.phi[side] = std::move(host[side]);
    return;
  }
  const size_t size = host[0].size();
  if (field.phi[0].empty()) {
    for (Buffer<float>& buffer : field.phi) buffer = Buffer<float>(context.device, size);
  }
  field.phi[0].upload({host[0].data(), size});
  memory::copy(context.device, field.phi[1].data(), context.device, field.phi[0].data(),
               size * sizeof(float));
}

Volume<float> phi_volume(const LevelsetField& field, int64_t iterations, const Grid& grid,
                         const Context& context) {
  check_size(field.layout, grid.size, "phi_volume");
  return as_image(field.phi[iterations % 2], field.layout, grid, context);
}

Volume<int16_t> stored_volume(const LevelsetField& field, const Buffer<int16_t>& values,
                              const Grid& grid, const Context& context) {
  check_size(field.layout, grid.size, "stored_volume");
  return as_image(values, field.layout, grid, context);
}

}  // namespace larch::levelset
