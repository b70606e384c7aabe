// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/app/records/results_record.h"
#include "larch/config/config.h"
#include "larch/core/context.h"

namespace larch::detail {

/// What claims to be a sidecar, a report or a larch.json is read up to this size.
constexpr size_t kMostSidecarBytes = size_t{256} << 20;

/// "seg.nii.gz.json": the whole name is kept, since a run may write p.png and p.nii.gz.
std::string sidecar_name(const std::string& output);
/// "<folder>/larch.json".
std::string folder_sidecar_name(const std::string& folder);

/// What is told about a run.
struct RunRecord {
  const ResultsBasis& basis;  ///< with all inputs
  const Context& context;
  const Outputs& outputs;
  double seconds = 0;
  InputDigests& digests;
  std::map<std::string, config::Json> written{};  ///< content_record of each file, by its path
};

/// SHA-256 of a file; of a folder, that of the lines "<sha256>  <name>" of its files (and those of
/// the folders below) in the order of their names. Empty for what is neither. Throws InputError.
std::string input_digest(const std::string& path);

/// The sidecar: BIDS keys and one object "Larch", without its "Outputs". Reads the inputs to hash
/// them.
config::Json sidecar(const RunRecord& record);

/// "Outputs" of the sidecar of a file: an output_record of the file, and of each of its
/// `companions`.
config::Json outputs_of(const RunRecord& record, const Outputs::File& file, const std::string& role,
                        const std::vector<std::string>& companions);

/// The sidecar of a folder that belongs to one run: "Outputs" has all of its files.
config::Json folder_sidecar(const RunRecord& record, const std::string& folder);

/// What --report writes; unless --no-sidecar is given, "record" tells what decided the results.
config::Json report(const RunRecord& record);

}  // namespace larch::detail
