// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/tree/train/grow.h"

namespace larch::tree {

/// One tree, or several that are averaged, on columns whose codes are stored.
struct ColumnTask {
  const TreeConfig& config;
  const ValidationConfig& validation;
  const learning::FeatureSource& codes;
  const Samples& samples;
  std::span<const learning::CodeMap> maps;  ///< of the columns' values, which the result refers to
  int trees = 1;
  double feature_share = 1;    ///< of the columns, that each of several trees draws
  size_t samples_at_once = 0;  ///< as GrowTask
};

/// Trees whose weak classifiers name places in `columns`, which are columns of the source.
struct ColumnTrees {
  Ensemble trees;
  std::vector<uint32_t> columns;
};

/// Grows them on the samples that count, `times` each. Their self-tests are made.
ColumnTrees grow_on_columns(const ColumnTask& task, const std::vector<uint32_t>& times,
                            const Context& context);

}  // namespace larch::tree
