// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "larch/app/failures.h"
#include "larch/app/outputs/outputs.h"
#include "larch/app/records/results_record.h"
#include "larch/config/config.h"
#include "larch/core/context.h"
#include "larch/core/error.h"

// One record per case: a JSON file beside its outputs with what made them, what they are and what
// became of the case.
namespace larch {

/// The files of a case as they are before it is computed.
struct EarlierCase {
  enum class State {
    kCompute,  ///< nothing is there, or something that may be replaced
    kSkip,     ///< all of it is there, and need not be computed again
    kOther     ///< something is there that may not be replaced
  };
  State state = State::kCompute;
  std::string what;          ///< kSkip: why; kOther: what is wrong and what to do
  bool is_rejected = false;  ///< kSkip: the run that made it ended so
  std::string reason{};      ///< of the rejection

  /// Stamps of what had the names, by resolved_name; "" of free ones.
  std::map<std::string, std::string> seen{};
  std::string record{};                         ///< text of the record that was there
  std::shared_ptr<const config::Json> larch{};  ///< its object "Larch", if it has one
  bool has_same_basis = false;                  ///< what that record names stays
};

/// The end of a case of a list, as its row of status.tsv tells it: cells by column.
using CaseCells = std::vector<std::pair<std::string, std::string>>;

namespace detail {

/// A record is read up to this size.
constexpr size_t kMaximumRecordBytes = size_t{256} << 20;

/// "seg.nii.gz.json": the whole name is kept, since a run may write p.png and p.nii.gz.
std::string record_name(const std::string& output);
/// "<folder>/larch.json".
std::string folder_record_name(const std::string& folder);
/// "<folder>/index.html".
std::string page_name(const std::string& folder);
/// "<folder>/<id>.larch.json" and "<folder>/<id>.failed.larch.json".
std::string case_record_name(const std::string& folder, const std::string& id);
std::string failed_record_name(const std::string& folder, const std::string& id);

/// The run that a record tells of, beside its results.
struct RunRecord {
  const ResultsBasis& basis;  ///< with all inputs
  const Context& context;
  const Outputs& outputs;
  std::chrono::steady_clock::time_point began;
  InputDigests& digests;
  const CaseCells* cells = nullptr;  ///< of a case of a list
  std::chrono::steady_clock::time_point computed = std::chrono::steady_clock::now();
};

/// Returns the object "Larch" of a record; none if the file is missing or is no record.
std::optional<config::Json> read_record(const std::string& path);

/// Decides what is to be done about a case, according to --skip-existing and --force, by its record
/// and what is there. An output counts as that of its record if it has the role, the size and the
/// content that the record tells; it is read only where its time or inode is another. To be called
/// before the inputs are read. Several threads may call it for different cases. Throws InputError.
EarlierCase look_at_case(const CaseFiles& files, const ResultsBasis& basis, InputDigests& digests);

/// An output appeared or changed after it was looked at, so that it is not replaced.
struct OutputAppeared : OutputError {
  using OutputError::OutputError;
};

/// Writes the outputs of a case and its record, all or none of them. Files get their names under
/// the flock of the folder of the record: first a record with the status "writing", which names
/// them all, then the outputs, then the record. What a killed run leaves may so be replaced. Where
/// the folder has no locks, files are whole, and the digests of the record show a mixture.
///
/// Outputs that the earlier record of the same basis names and this run does not write stay in the
/// record; those of another basis are named in the log. Without a record (CaseFiles::record is
/// empty) the outputs alone are written. Throws OutputError; OutputAppeared if what was there has
/// changed since it was looked at and --force is not given. The stop flag of `context` is looked at
/// until the first name is given.
void write_case(const CaseFiles& files, const EarlierCase& earlier, const RunRecord& record,
                const Context& context);

/// Replaces the record of a failure of a case, whose inputs are not read for it. Throws
/// OutputError, also if something else has the name.
void write_failure(const std::string& path, const ResultsBasis& basis, const std::string& reason,
                   const CaseCells& cells);

/// Removes the record of a failure. What is no record, or a link, stays.
void remove_failure(const std::string& path);

/// Returns the text of --report.
config::Json report(const RunRecord& record);
/// The same for a run that failed.
config::Json failure_report(const ResultsBasis& basis, const Failure& failure, double seconds);
/// Adds to `json` what a report has of results: outputs but `report_name`, metrics, seconds of
/// steps, notes, and the entries of the program.
void add_results(const Outputs& outputs, const std::string& report_name, config::Json& json);
/// Returns the status in a report of the program `app`; none if the file is no such report.
std::optional<std::string> report_status(const std::string& path, const std::string& app);
constexpr const char* kFailed =
    "failed";  ///< the status of a run, or a case of a list, that failed

// The parts of a record that reading and writing share.

/// Returns the object "Larch" of the text of a record; none if it is no record.
std::optional<config::Json> parse_record(const std::string& text, const std::string& path);

/// The record as it is written: BIDS keys and the object "Larch", whose "Outputs" are `entries`.
/// Reads the inputs to hash them.
config::Json record_json(const RunRecord& record, const config::Json& entries);
/// Returns "Structures" of a record.
config::Json structures_json(const Outputs& outputs);
/// Returns the row of a case for status.tsv, which ended at `ended`.
config::Json row_json(const CaseCells& cells, const std::string& ended);

/// Returns an output in "Outputs": {"Name", "Role", "Bytes", "Modified", "Inode", "SHA256"}, the
/// time in nanoseconds since 1970. Companions have the role of the output that they belong to.
/// Reads the file. Throws OutputError.
config::Json entry_of(const std::string& temporary, const std::string& name,
                      const std::string& role);

/// Returns the name of an output in a record: relative to its folder if it lies there or below,
/// else whole.
std::string name_in_record(const std::string& path, const std::string& record);

/// A file that a record names, with what it says of it.
struct NamedFile {
  std::string path, role;
  config::Json entry;
};

/// Returns the files that "Outputs" of the object "Larch" of `record` names.
std::vector<NamedFile> named_files(const config::Json& larch, const std::string& record);

/// Says why a file that is there is not the one that was written, to follow "it "; empty if it is.
/// It is read only if its size is that of then, and its time or inode is not.
std::string why_not_as_written(const NamedFile& file);

/// Returns the stamp by which a file is known again, as a text; empty if there is none.
std::string stamp_of(const std::string& path);

constexpr const char* kWriting = "writing";  ///< the status while files get their names

}  // namespace detail
}  // namespace larch
