// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "larch/config/config.h"
#include "larch/models/container.h"
#include "larch/pbt/model.h"

namespace larch::models {

/// Bits of Container::content.
constexpr uint32_t kContentTree = 1;        ///< probabilistic boosting trees, one or several
constexpr uint32_t kContentForest = 2;      ///< reserved for decision forests
constexpr uint32_t kContentExact = 4;       ///< evaluation is in integers throughout
constexpr uint32_t kContentCheckpoint = 8;  ///< the tree is still growing

/// What a checkpoint has beside the model; chunk PART.
struct PartHeader {
  uint64_t finished = 0;  ///< nodes that have been trained
  std::string fingerprint;
};

/// The chunks META CHAN FEAT WEAK NODE LUTS PRIO VALD HIST TEST TREE of a model, and PART for a
/// checkpoint. Throws InputError when check_model refuses the model.
Container encode_model(const pbt::Model& model, const PartHeader* part = nullptr);

/// The other way. `part` is filled where there is a chunk PART. Runs check_model; leaves the
/// self-tests to the caller. Throws InputError.
pbt::Model decode_model(const Container& container, std::optional<PartHeader>* part);

/// Throws InputError unless the nodes of the last tree of a checkpoint are as growing leaves them:
/// those before `finished` have children exactly when they have been grown, numbered in order; the
/// others have none.
void check_partial(const pbt::Model& model, uint64_t finished);

/// How doubles are written as JSON. Both are exact.
enum class Doubles { kDecimal, kHex };

/// The part of a model that is JSON in the file too: class, space, padding, training configuration,
/// digests, version, seed. Reading accepts both kinds of doubles.
config::Json meta_json(const pbt::Model& model, Doubles style);
void read_meta(const config::Json& meta, pbt::Model& model);

/// Parses JSON; every error becomes an InputError that begins with `what`.
config::Json parse_json(std::string_view text, const std::string& what);

}  // namespace larch::models
