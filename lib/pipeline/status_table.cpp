// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/status_table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "larch/core/error.h"
#include "larch/io/file.h"

namespace larch::pipeline {
namespace {

constexpr const char* kHeader = "id\tstatus\tmessage\tseconds\tvoxels\tvolume_ml\n";

std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string line_of(const CaseRow& row) {
  std::string message = row.message.empty() ? "n/a" : row.message;
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  }
  const bool known = row.voxels >= 0;
  return row.id + "\t" + to_string(row.status) + "\t" + message + "\t" +
         number("%.3f", row.seconds) + "\t" + (known ? std::to_string(row.voxels) : "n/a") + "\t" +
         (known ? number("%.6g", row.volume_ml) : "n/a") + "\n";
}

}  // namespace

const char* to_string(CaseStatus status) {
  constexpr const char* kNames[] = {"ok", "rejected", "failed", "skipped"};
  return kNames[static_cast<size_t>(status)];
}

StatusTable::StatusTable(const std::string& path) : path_(path) {
  errno = 0;
  file_ = std::fopen(path.c_str(), "we");
  if (file_ == nullptr || std::fputs(kHeader, file_) < 0 || std::fflush(file_) != 0) {
    const int error = errno;
    if (file_ != nullptr) std::fclose(file_);
    throw OutputError("cannot write '" + path + "': " + std::strerror(error) +
                      ": check the free space and the folder's permissions");
  }
}

StatusTable::~StatusTable() {
  if (file_ != nullptr) std::fclose(file_);
}

size_t StatusTable::add(size_t index, const CaseRow& row) {
  const std::lock_guard lock(mutex_);
  rows_[index] = row;
  if (file_ != nullptr) {
    std::fputs(line_of(row).c_str(), file_);
    std::fflush(file_);
  }
  return rows_.size();
}

void StatusTable::finish() {
  const std::lock_guard lock(mutex_);
  if (file_ != nullptr) std::fclose(file_);
  file_ = nullptr;
  std::string text = kHeader;
  for (const auto& [index, row] : rows_) text += line_of(row);
  write_file(path_, text);
}

size_t StatusTable::rows() const {
  const std::lock_guard lock(mutex_);
  return rows_.size();
}

size_t StatusTable::count(CaseStatus status) const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(
      rows_.begin(), rows_.end(), [&](const auto& row) { return row.second.status == status; }));
}

}  // namespace larch::pipeline
