// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <future>
#include <optional>
#include <set>

#include "larch/app/build_info.h"
#include "larch/app/outputs/outputs.h"
#include "larch/app/records/case_record.h"
#include "larch/config/json_text.h"
#include "larch/core/error.h"
#include "larch/files/file.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using config::Json;

std::string text_of(const Json& json) {
  return json_text(json, 2) + "\n";
}

/// Returns the record at a path; none if it is a link to one.
std::optional<Json> own_record(const std::string& path) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::regular) return std::nullopt;
  return read_record(path);
}

/// The result of a case "a.failed" has its record under the same name as a failure of "a".
bool is_failure(const std::string& path) {
  const auto larch = own_record(path);
  return larch && text_at(*larch, "Status") == kFailed;
}

/// Hashes the inputs beside what is written and hashed of the outputs. What cannot be read is left
/// for the record to find.
std::future<void> start_digests(const RunRecord& record) {
  return std::async(std::launch::async | std::launch::deferred, [&] {
    try {
      for (const RunInput& input : record.basis.inputs) {
        if (input.text.empty()) record.digests.record(input.path);
      }
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
  });
}

/// Writes the outputs under temporary names; their entries in the record.
Json write_outputs(const CaseFiles& files, const RunRecord& record, FileSet& set) {
  Json entries = Json::array();
  std::string role;
  for (const Outputs::File& file : record.outputs.files) {
    std::string temporary;
    if (file.filled) {
      temporary = file.filled->temporary();
      set.take(file.filled);
    } else {
      set.write(file.path, [&](const std::string& path) {
        temporary = path;
        file.writer(path);
      });
    }
    if (!file.companion) {
      role = "";
      for (const CaseOutput& output : files.outputs) {
        if (output.path == file.path) role = output.role;
      }
    }
    if (files.record.empty()) continue;
    entries.push_back(entry_of(temporary, name_in_record(file.path, files.record), role));
  }
  return entries;
}

std::set<std::string> written_by(const RunRecord& record) {
  std::set<std::string> written;
  for (const Outputs::File& file : record.outputs.files) written.insert(resolved_name(file.path));
  return written;
}

/// Adds what the earlier record of the same basis names and this run does not write.
void keep_entries(const CaseFiles& files, const Json& earlier, const RunRecord& record,
                  Json& entries) {
  const std::set<std::string> written = written_by(record);
  std::set<std::string> roles;
  for (const Json& entry : entries) roles.insert(text_at(entry, "Role"));
  for (const NamedFile& file : named_files(earlier, files.record)) {
    const bool is_new = roles.contains(file.role) || written.contains(resolved_name(file.path));
    if (!is_new) entries.push_back(file.entry);
  }
}

/// Says which files of an earlier run with another basis stay beside the new ones.
void name_left_files(const CaseFiles& files, const Json& earlier, const RunRecord& record) {
  const std::set<std::string> written = written_by(record);
  for (const NamedFile& file : named_files(earlier, files.record)) {
    if (written.contains(resolved_name(file.path)) || !is_file(file.path)) continue;
    record.context.warn("'" + file.path +
                        "' was written by an earlier run with other inputs or settings, and "
                        "stays; remove it");
  }
}

std::string writing_record(const RunRecord& record, const Json& entries) {
  const Json larch{
      {"App", record.basis.program.info.name}, {"Status", kWriting}, {"Outputs", entries}};
  return text_of(Json{{"Larch", larch}});
}

void require_lock(const FolderLock& lock, const std::string& folder) {
  if (!lock.is_busy()) return;
  throw OutputError("cannot give the outputs in '" + folder +
                    "' their names: another run holds the lock of the folder and does not let it "
                    "go; look whether it is stopped, then run again");
}

/// Puts back the record that was there, or none, after outputs could not get their names.
void put_back(const std::string& path, const std::string& text, const Context& context) {
  try {
    if (text.empty()) return remove_output(path);
    FileSet file(context);
    file.write(path, text_writer(text));
    file.commit();
    file.flush_folders();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the record says "writing" then
  }
}

}  // namespace

void write_case(const CaseFiles& files, const EarlierCase& earlier, const RunRecord& record,
                const Context& context) {
  FileSet set(context);
  std::future<void> digests;
  if (!files.record.empty()) digests = start_digests(record);
  Json entries = write_outputs(files, record, set);
  Context to_the_end = context;
  to_the_end.stop = nullptr;
  if (digests.valid()) digests.wait();
  context.throw_if_stopped("stopped before the outputs got their names");
  const bool force = record.basis.line.common.force;
  const auto may_replace = [&](const std::string& path) {
    const auto seen = earlier.seen.find(resolved_name(path));
    return force || (seen != earlier.seen.end() && !seen->second.empty());
  };
  if (files.record.empty()) {
    set.commit(may_replace);
    // Without a record of its own an output does not keep that of an earlier one.
    for (const CaseOutput& output : files.outputs) {
      if (own_record(record_name(output.path))) remove_output(record_name(output.path));
    }
    return set.flush_folders();
  }
  if (earlier.has_same_basis) {
    keep_entries(files, *earlier.larch, record, entries);
  } else if (earlier.larch) {
    name_left_files(files, *earlier.larch, record);
  }
  FileSet first(to_the_end), last(to_the_end);
  first.write(files.record, text_writer(writing_record(record, entries)));
  last.write(files.record, text_writer(text_of(record_json(record, entries))));

  const std::string folder = folder_of(files.record);
  std::optional<FolderLock> lock(std::in_place, folder, kLockSeconds);
  require_lock(*lock, folder);
  std::vector<std::string> names{files.record};
  for (const Outputs::File& file : record.outputs.files) names.push_back(file.path);
  for (const std::string& path : names) {
    const auto seen = earlier.seen.find(resolved_name(path));
    if (force || seen == earlier.seen.end() || stamp_of(path) == seen->second) continue;
    throw OutputAppeared("cannot write '" + path +
                         "': it appeared or was changed during the run, by another run perhaps; "
                         "--force replaces it");
  }
  first.commit();
  try {
    set.commit(may_replace);
  } catch (...) {
    put_back(files.record, earlier.record, to_the_end);
    throw;
  }
  last.commit();
  lock.reset();
  set.flush_folders(&last);
}

void remove_failure(const std::string& path) {
  if (is_failure(path)) remove_output(path);
}

void write_failure(const std::string& path, const ResultsBasis& basis, const std::string& reason,
                   const CaseCells& cells) {
  if (!stamp_of(path).empty() && !is_failure(path)) {
    throw OutputError(
        "'" + path +
        "' is no record of Larch of a failure, or a link, and stays; move it away, so that the "
        "failure has a record");
  }
  const std::string ended = utc_now();
  const Json larch{{"App", basis.program.info.name},
                   {"Build", build_info()},
                   {"CommandLine", basis.line.text},
                   {"Ended", ended},
                   {"Status", kFailed},
                   {"Reason", reason},
                   {"Row", row_json(cells, ended)}};
  write_file(path, text_of(Json{{"Larch", larch}}));
}

}  // namespace larch::detail
