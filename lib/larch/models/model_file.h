// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "larch/boundary/train/train.h"
#include "larch/core/digest.h"
#include "larch/forest/model.h"
#include "larch/forest/train.h"
#include "larch/hdn/train/train.h"
#include "larch/models/container.h"
#include "larch/pbt/model.h"
#include "larch/pbt/train/train.h"

/// Models of all kinds as files, and trainings that are not finished. M is pbt::Model,
/// forest::Model, hdn::Model or boundary::Models.
namespace larch::models {

/// Writes a model to `path`, whole or not at all. The file is a container (container.h, README.md
/// beside it) and depends on the model alone: equal models give equal bytes. Throws InputError for
/// a model that breaks an invariant (check_model) and OutputError when the file cannot be written.
template <class M>
void write_model(const std::string& path, const M& model);

/// Reads a model that write_model wrote, in one pass; `digest` receives the SHA-256 of its bytes.
/// Everything is checked before it is believed: signature, versions, lengths, counts against the
/// bytes that are there, the digest of each section and of the table, the invariants of the model
/// and its self-test vectors. Sections that are not known are skipped unless they are required; a
/// model has no place for them, so that they are lost when it is written again. Throws InputError
/// that names the file, what is wrong and what to do.
template <class M>
M read_model(const std::string& path, const DigestSink& digest = {});

/// Returns the same without a file and without the self-test vectors. Both throw InputError for a
/// model that check_model refuses.
template <class M>
Container encode_model(const M& model);
template <class M>
M decode_model(const Container& container);

/// A model that labels voxels, of the kind that its file says, and a model of any kind. Throw
/// InputError as read_model.
using VoxelModel = std::variant<pbt::Model, forest::Model>;
VoxelModel read_voxel_model(const std::string& path, const DigestSink& digest = {});
struct AnyModel : std::variant<pbt::Model, forest::Model, hdn::Model, boundary::Models> {
  using variant::variant;
};
AnyModel read_any_model(const std::string& path, const DigestSink& digest = {});

/// Returns a model as JSON text without loss: integers, and doubles as hexadecimal floating-point
/// strings.
std::string export_json(const AnyModel& model);

/// Returns a summary for people, lines under 100 columns: what the sections hold, lists as far as
/// they can be read.
std::string describe_model(const AnyModel& model);

/// Writes a checkpoint, whole or not at all: pbt::PartialModel, forest::PartialForest,
/// hdn::PartialTraining or boundary::PartialTraining. `fingerprint` is a digest of all that the
/// training depends on. Throws OutputError.
template <class Partial>
void write_checkpoint(const std::string& path, const Partial& partial,
                      const std::string& fingerprint);

/// Reads and checks it as read_model does. Throws InputError for one with another fingerprint, one
/// that training does not leave behind, and a model.
template <class Partial>
Partial read_checkpoint(const std::string& path, const std::string& fingerprint);

}  // namespace larch::models
