// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace larch::pipeline {

enum class CaseStatus { kOk, kRejected, kFailed, kSkipped };
const char* to_string(CaseStatus status);

/// What became of a case.
struct CaseRow {
  std::string id;
  CaseStatus status = CaseStatus::kOk;
  std::string message{};
  double seconds = 0;
  int64_t voxels = -1;  ///< < 0: not known
  double volume_ml = 0;
};

/// The table of a batch, tab-separated. Rows are appended to the file as the cases end, in any
/// order; `finish` puts the rows in the order of the cases in its place. Several threads may add.
class StatusTable {
 public:
  /// Starts the file. Throws OutputError.
  explicit StatusTable(const std::string& path);
  ~StatusTable();
  StatusTable(const StatusTable&) = delete;
  StatusTable& operator=(const StatusTable&) = delete;

  /// The number of rows so far, this one included. A row that cannot be written now is kept for
  /// `finish`.
  size_t add(size_t index, const CaseRow& row);
  /// Replaces the file, whole or not at all. Throws OutputError.
  void finish();

  size_t rows() const;
  size_t count(CaseStatus status) const;

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
  mutable std::mutex mutex_;
  std::map<size_t, CaseRow> rows_;
};

}  // namespace larch::pipeline
