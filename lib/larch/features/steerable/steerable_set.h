// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "larch/config/fields.h"

namespace larch::features {

/// The features that a stage chooses from.
enum class SteerableSet : uint8_t {
  kBase9 = 0,   ///< those that bins do not make equal to one another
  kSeed21 = 1,  ///< the table of the patent
};
constexpr auto enum_names(SteerableSet*) {
  return std::to_array<EnumName<SteerableSet>>(
      {{SteerableSet::kBase9, "base9"}, {SteerableSet::kSeed21, "seed21"}});
}

}  // namespace larch::features
