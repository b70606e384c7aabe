// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/models/container.h"
#include "larch/pbt/model.h"
#include "larch/pbt/train/train.h"

namespace larch::models {

/// Writes a model to `path`, directly: the caller gives the name of a temporary file and renames
/// it. The file is a container of the kind "pbt" (larch/models/container.h, README.md beside it)
/// and depends on the model alone: equal models give equal bytes. Throws InputError for a model
/// that breaks an invariant (check_model) and OutputError when the file cannot be written.
void write_model(const std::string& path, const pbt::Model& model);

/// Reads a model that write_model wrote. Everything is checked before it is believed: signature,
/// versions, lengths, counts against the bytes that are there, the digest of each section and of
/// the table, the invariants of the model and its self-test vectors. Sections that are not known
/// are skipped unless they are required; a Model has no place for them, so that they are lost when
/// it is written again. Throws InputError that names the file, what is wrong and what to do.
pbt::Model read_model(const std::string& path);

/// The same without a file and without the self-test vectors. Both throw InputError for a model
/// that check_model refuses.
Container encode_model(const pbt::Model& model);
pbt::Model decode_model(const Container& container);

/// The kind of container that a checkpoint is.
inline constexpr const char* kPbtCheckpointKind = "pbt-checkpoint";

/// The same for a tree that is still growing (a checkpoint). `fingerprint` is a digest of all that
/// the training depends on; reading with another one throws InputError, and so does reading a
/// checkpoint as a model or a model as a checkpoint.
void write_partial(const std::string& path, const pbt::PartialModel& partial,
                   const std::string& fingerprint);
pbt::PartialModel read_partial(const std::string& path, const std::string& fingerprint);

/// A model as JSON text without loss: integers, and doubles as hexadecimal floating-point strings.
std::string export_json(const pbt::Model& model);

/// A summary for people, lines under 100 columns: what the sections hold, lists as far as they can
/// be read, features by family, and a table of the nodes with their probabilities.
std::string describe_model(const pbt::Model& model);

}  // namespace larch::models
