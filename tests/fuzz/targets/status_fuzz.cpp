// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Status tables of a folder and parts of them that other runs left there: two texts, taken in as a
// run does. Their order must not matter, and what is written must say the same when it is read.
#include <map>

#include "larch/cases/status_rows.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;
using cases::StatusRows;

// By id: column and cell of all that is known.
std::map<std::string, std::map<std::string, std::string>> known(const StatusRows& table) {
  std::map<std::string, std::map<std::string, std::string>> rows;
  for (const auto& [id, cells] : table.rows) {
    fuzz::require(cells.size() <= table.columns.size(), "a row is longer than its table");
    auto& row = rows[id];
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i] != "n/a") row[table.columns[i]] = cells[i];
    }
  }
  return rows;
}

// Whether everything was understood.
bool unite(const std::string& first, const std::string& second, StatusRows& to) {
  cases::add_status_rows("id\tstatus\tmessage\tseconds\tended\n", to);
  const std::string problem = cases::add_status_rows(first, to);
  return cases::add_status_rows(second, to).empty() && problem.empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto [first, second] = fuzz::two_texts(fuzz::text_of(data, size));
  StatusRows table, turned;
  const bool whole = unite(first, second, table);
  fuzz::require(unite(second, first, turned) == whole, "the order decides what is understood");
  if (whole) {
    fuzz::require(known(table) == known(turned), "the order of the tables changed their union");
  }
  const std::string text = cases::status_text(table);
  StatusRows again;
  fuzz::require(cases::add_status_rows(text, again).empty(),
                "a table that was written is not understood");
  fuzz::require(cases::status_text(again) == text, "a table changed when it was written");
  return 0;
}
