// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "larch/levelset.h"

int main() {
  using namespace larch;
  levelset::SegmentRequest request;
  request.image = Volume<float>(Grid{.size = {16, 16, 16}}, 0);
  for (int z = 5; z < 10; ++z)
    for (int y = 5; y < 10; ++y)
      for (int x = 5; x < 10; ++x) request.image({x, y, z}) = 100;
  request.spheres.push_back({{7, 7, 7}, 2});
  request.config.lower = 80;
  request.config.upper = 120;
  const levelset::SegmentResult found = levelset::segment(request, {});
  std::printf("%d voxels\n", static_cast<int>(found.by_label[0].voxels));
}
