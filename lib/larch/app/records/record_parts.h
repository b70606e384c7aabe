// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "larch/app/records/case_record.h"

// The parts of a record that reading and writing share.
namespace larch::detail {

/// The object "Larch" of the text of a record; none if it is no record.
std::optional<config::Json> parse_record(const std::string& text, const std::string& path);

/// The record as it is written: BIDS keys and the object "Larch", whose "Outputs" are `entries`.
/// Reads the inputs to hash them.
config::Json record_json(const RunRecord& record, const config::Json& entries);
/// The row of a case for status.tsv, which ended at `ended`.
config::Json row_json(const CaseCells& cells, const std::string& ended);
/// "2026-01-31T23:59:59.123Z".
std::string utc_with_milliseconds();

/// An output in "Outputs": {"Name", "Role", "Bytes", "Modified", "Inode", "SHA256"}, the time in
/// nanoseconds since 1970. Companions have the role of the output that they belong to. Reads the
/// file. Throws OutputError.
config::Json entry_of(const std::string& temporary, const std::string& name,
                      const std::string& role);

/// The name of an output in a record: relative to its folder if it lies there or below, else whole.
std::string name_in_record(const std::string& path, const std::string& record);

/// A file that a record names, with what it says of it.
struct NamedFile {
  std::string path, role;
  config::Json entry;
};

/// What "Outputs" of the object "Larch" of `record` names.
std::vector<NamedFile> named_files(const config::Json& larch, const std::string& record);

/// Why a file that is there is not the one that was written, to follow "it "; empty if it is. It is
/// read only if its size is that of then, and its time or inode is not.
std::string why_not_as_written(const NamedFile& file);

/// By what a file is known again, as a text; empty if there is none.
std::string stamp_of(const std::string& path);

constexpr const char* kWriting = "writing";  ///< the status while files get their names

}  // namespace larch::detail
