// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/core/context.h"
#include "larch/core/parallel.h"
#include "larch/tree/flat_tree.h"

namespace larch::tree::cpu {

/// The posterior of items 0 .. count-1, the mean of the trees (Algorithm 2 of Birkbeck, Sofka, Zhou
/// 2011). `response`: a trivially copyable functor, int32_t operator()(uint32_t feature, size_t
/// item) const, LARCH_HD, that gives the value of a feature of the weak classifiers. The twin for a
/// CUDA device, with the same bytes, is cuda/tree/posterior.cuh.
template <class Response>
std::vector<float> posterior(const std::vector<FlatTree>& trees, const Response& response,
                             size_t count, const Context& context) {
  std::vector<TreeView> views;
  for (const FlatTree& tree : trees) views.push_back(tree.view());
  std::vector<float> out(count);
  constexpr int64_t kItems = 64;  // that a thread takes at a time
  parallel_for(
      context.threads, static_cast<int64_t>(count), kItems, [&](int64_t begin, int64_t end) {
        for (auto item = static_cast<size_t>(begin); item < static_cast<size_t>(end); ++item) {
          out[item] =
              probability_float(ensemble_posterior(views.data(), views.size(), response, item));
        }
      });
  return out;
}

}  // namespace larch::tree::cpu
