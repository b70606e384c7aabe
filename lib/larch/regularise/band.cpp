// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/regularise/band.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace larch::regularise {
namespace {

constexpr uint8_t kZero = 1, kOther = 2;

/// out = OR of `in` over 2 * reach + 1 voxels along one axis, a piece of a block at a time that
/// stays in the cache.
void spread(const Volume<uint8_t>& in, Volume<uint8_t>& out, int axis, int64_t reach) {
  constexpr int64_t kPiece = 1 << 12;
  const Vec3i size = in.size();
  const int64_t stride = axis == 0 ? 1 : axis == 1 ? size.x : static_cast<int64_t>(size.x) * size.y;
  const int64_t block = stride * size[axis];
  for (int64_t begin = 0; begin < in.voxels(); begin += block) {
    const uint8_t* from = in.data() + begin;
    uint8_t* __restrict to = out.data() + begin;
    for (int64_t first = 0; first < block; first += kPiece) {
      const int64_t last = std::min(first + kPiece, block);
      std::copy(from + first, from + last, to + first);
      for (int64_t d = -reach * stride; d <= reach * stride; d += stride) {
        const int64_t end = std::min(last, block - d);
        for (int64_t i = std::max(first, -d); i < end; ++i) to[i] |= from[i + d];
      }
    }
  }
}

}  // namespace

int64_t VoxelSet::count() {
  before_.resize(words_.size());
  int64_t total = 0;
  for (size_t i = 0; i < words_.size(); ++i) {
    before_[i] = static_cast<uint32_t>(total);
    total += std::popcount(words_[i]);
  }
  return total;
}

std::vector<int64_t> VoxelSet::voxels() const {
  std::vector<int64_t> out;
  if (words_.empty()) return out;
  out.reserve(before_.back() + static_cast<size_t>(std::popcount(words_.back())));
  for (size_t i = 0; i < words_.size(); ++i) {
    for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
      out.push_back(static_cast<int64_t>(64 * i) + std::countr_zero(word));
    }
  }
  return out;
}

Volume<uint8_t> near_boundary(const Volume<uint8_t>& labels, int reach) {
  auto a = mapped<uint8_t>(labels, [](uint8_t label) { return label == 0 ? kZero : kOther; });
  auto b = Volume<uint8_t>::unfilled(labels.grid());
  for (int axis = 0; axis < 3; ++axis) {
    spread(a, b, axis, reach);
    std::swap(a, b);
  }
  for (uint8_t& bits : a) bits = bits == (kZero | kOther) ? 1 : 0;
  return a;
}

DisjointSets::DisjointSets(uint32_t size) : parent_(size) {
  std::iota(parent_.begin(), parent_.end(), 0u);
}

uint32_t DisjointSets::root(uint32_t a) {
  while (parent_[a] != a) {
    parent_[a] = parent_[parent_[a]];
    a = parent_[a];
  }
  return a;
}

void DisjointSets::join(uint32_t a, uint32_t b) {
  a = root(a);
  b = root(b);
  if (a != b) parent_[std::max(a, b)] = std::min(a, b);
}

Components DisjointSets::components() {
  const auto size = static_cast<uint32_t>(parent_.size());
  std::vector<uint32_t> roots, members_of(size, 0);
  for (uint32_t v = 0; v < size; ++v) {
    const uint32_t r = root(v);
    if (r == v) roots.push_back(v);
    ++members_of[r];
  }
  std::stable_sort(roots.begin(), roots.end(),
                   [&](uint32_t a, uint32_t b) { return members_of[a] > members_of[b]; });
  Components out;
  out.first.push_back(0);
  for (const uint32_t r : roots) out.first.push_back(out.first.back() + members_of[r]);
  // From here members_of[root] is where the component's next member goes.
  for (size_t c = 0; c < roots.size(); ++c) {
    members_of[roots[c]] = static_cast<uint32_t>(out.first[c]);
  }
  out.members.resize(size);
  for (uint32_t v = 0; v < size; ++v) out.members[members_of[root(v)]++] = v;
  return out;
}

}  // namespace larch::regularise
