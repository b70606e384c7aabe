// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "larch/app/records/case_record.h"
#include "larch/cases/case_page.h"

namespace larch::cases {

/// "c2" before "c10": runs of digits are compared as numbers. A strict order of all texts.
struct NaturalOrder {
  bool operator()(const std::string& a, const std::string& b) const;
};

/// The name of the table of all runs into `folder`: status.tsv.
std::string status_table(const std::string& folder);

/// The table of a folder into which runs over lists write, perhaps several at the same time. It is
/// derived from the records of the folder: a row for each <id>.larch.json, and for each
/// <id>.failed.larch.json in place of it, in natural order of the ids. The columns are those of
/// this run, then those that other records have; "n/a" stands where a cell is not known. Where a
/// record names a picture, the folder gets its page (case_page.h) with the table.
class StatusTable {
 public:
  /// `columns`: those of this run, id first. `makes_pictures`: this run does. Throws OutputError if
  /// there is a status.tsv that is not such a table, or an index.html in place of the page.
  StatusTable(const std::string& folder, std::vector<std::string> columns,
              bool makes_pictures = false);

  /// Writes the table if that is due: at most every 30 seconds, and for at most a hundredth of the
  /// time. What fails is left to finish(). Several threads may call it.
  void write_now_and_then();
  /// Takes the row of a case that failed and left no record of it, in place of that of an earlier
  /// run.
  void add_failure(const CaseCells& row);
  /// Writes the table, so that of several runs the one that ends last has all rows. Throws
  /// OutputError.
  void finish();

 private:
  struct Record {
    std::string stamp;
    CaseCells row;
    CaseStory story;
  };
  /// Reads records that are new or have changed; tells whether there were any.
  bool look();
  /// Writes the table and the page. Throws OutputError.
  void write() const;

  std::string folder_, path_;
  bool may_write_page_ = true;
  std::vector<std::string> columns_;
  std::map<std::string, Record> records_;  // by file name
  std::vector<CaseCells> failures_;        // without records
  std::mutex mutex_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace larch::cases
