// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "larch/features/haar.h"
#include "larch/image/integral.h"

int main() {
  using namespace larch;
  const Volume<int16_t> ones(Grid{.size = {8, 8, 8}}, 1);
  const image::ChannelSpec intensity;
  const auto set = image::integral_set(ones.view(), {&intensity, 1}, image::Padding::kZero, 0, {});
  features::HaarFeature box;
  box.cuboid_count = 1;
  box.cuboids[0] = {{0, 0, 0}, {3, 3, 3}, 1};
  int32_t sum = 0;
  for (const auto& tap : features::corner_taps(box)) {
    const auto offset = set.layouts[0].linear_offset(tap.dx, tap.dy, tap.dz);
    sum +=
        tap.weight * static_cast<int32_t>(set.data.data()[set.layouts[0].base({2, 2, 2}) + offset]);
  }
  std::printf("box sum %d\n", sum);
}
