// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "larch/core/context.h"

namespace larch::cases {

enum class CaseStatus { kOk, kRejected, kFailed, kSkipped };
const char* to_string(CaseStatus status);

/// What became of a case.
struct CaseRow {
  std::string id;
  CaseStatus status = CaseStatus::kOk;
  std::string message{};
  double seconds = 0;
  std::vector<std::string> figures{};  ///< for the columns of the table; empty: not known
  /// What it counts as, if that is not its status: a case that was skipped because its result is
  /// there and was confirmed has the row of that result.
  std::optional<CaseStatus> counts_as{};

  CaseStatus counted() const { return counts_as.value_or(status); }
};

/// The name of the table of all runs into `folder`: status.tsv.
std::string status_table(const std::string& folder);

/// The table of a folder into which runs over lists write, perhaps several at the same time:
/// tab-separated, with the columns id, status, message, seconds, those of the run and `ended`
/// (UTC), and a row for each case of all runs in natural order of the ids (status_rows.h).
///
/// Rows go to a part file of the run (".larch/status-<random>.tsv", locked while the run lives) as
/// the cases end, and into the table now and then and at the end. Then it is rewritten, under the
/// lock of the folder, as the union of what it has and of all part files. Part files of runs that
/// are no more are taken in and removed; a run that was killed loses no row. Where the file system
/// has no locks the parts stay and every run unites them. Columns that other versions wrote are
/// kept. What cannot be understood is kept under another name, with a warning. Several threads may
/// add.
class StatusTable {
 public:
  /// Starts the part file. `figures`: names of the columns of this run's own. Warnings go to
  /// `context`, which must outlive the table. Throws OutputError.
  StatusTable(const std::string& folder, std::vector<std::string> figures, const Context& context);
  ~StatusTable();
  StatusTable(const StatusTable&) = delete;
  StatusTable& operator=(const StatusTable&) = delete;

  /// The number of rows so far, this one included. A row that cannot be written now is kept for
  /// `finish`.
  size_t add(const CaseRow& row);
  /// Rewrites the table and removes the part file; it stays, with a warning, if the lock cannot be
  /// had. Throws OutputError if the table cannot be written.
  void finish();

  size_t rows() const;
  /// The rows that count as this (CaseRow::counted).
  size_t count(CaseStatus status) const;

 private:
  std::string header() const;
  std::string line_of(const CaseRow& row) const;
  void start_part();
  bool rewrite(double wait_seconds, bool is_last);
  void keep(const std::string& line);
  void rewrite_now_and_then();

  std::string folder_, path_, part_;
  std::vector<std::string> figures_;
  const Context& context_;
  int file_ = -1;  // of the part
  bool part_is_whole_ = true;
  mutable std::mutex mutex_;
  std::string text_;  // the rows so far
  std::map<CaseStatus, size_t> counts_;
  std::mutex rewriting_;
  std::chrono::steady_clock::time_point next_rewrite_;
};

}  // namespace larch::cases
