// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/syscall.h>
#include <unistd.h>

#include "larch/cases/status_table.h"
#include "larch/core/error.h"
#include "tests/unit/folder.h"

namespace {
bool has_no_locks = false;
}

/// In place of the C library's, so that a file system can have no locks.
extern "C" int flock(int file, int operation) noexcept {
  if (!has_no_locks) return static_cast<int>(syscall(SYS_flock, file, operation));
  errno = ENOLCK;
  return -1;
}

namespace larch::cases {
namespace {

using test::content;
using test::Folder;

const std::vector<std::string> kColumns{"id", "status", "message", "seconds", "voxels", "ended"};

void put_record(const Folder& folder, const std::string& id, const std::string& status,
                const std::string& further = "", const std::string& ending = "") {
  std::ofstream(folder / (id + ending + ".larch.json"))
      << "{\n  \"Larch\": {\n    \"Status\": \"done\",\n    \"Row\": {\n      \"id\": \"" << id
      << R"(", "status": ")" << status << R"(", "message": "", "seconds": "1.000")" << further
      << ", \"ended\": \"now\"\n    }\n  }\n}\n";
}

std::string table_of(const Folder& folder) {
  return content(status_table(folder.string()));
}

TEST_CASE("natural order, and only one order") {
  const NaturalOrder before;
  const std::vector<std::string> sorted{"",  "1",   "2",  "10",  "a",  "a1",      "a2",  "a10",
                                        "b", "c01", "c1", "c1x", "c2", "c00010y", "c10z"};
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (size_t j = 0; j < sorted.size(); ++j) {
      INFO(sorted[i] << " " << sorted[j]);
      CHECK(before(sorted[i], sorted[j]) == (i < j));
    }
  }
}

TEST_CASE("the table has a row for each record, a failure in place of a result, and all columns") {
  const Folder folder;
  put_record(folder, "c10", "ok", R"(, "voxels": "7")");
  put_record(folder, "c2", "ok", R"(, "odd": "a\tb\nc")");
  put_record(folder, "c1", "ok");
  put_record(folder, "c1", "failed", "", ".failed");
  std::ofstream(folder / "broken.larch.json") << "{";
  std::ofstream(folder / "other.json") << "{}";
  StatusTable(folder.string(), kColumns).finish();
  CHECK(table_of(folder) ==
        "id\tstatus\tmessage\tseconds\tvoxels\tended\todd\n"
        "c1\tfailed\tn/a\t1.000\tn/a\tnow\tn/a\n"
        "c2\tok\tn/a\t1.000\tn/a\tnow\ta b c\n"
        "c10\tok\tn/a\t1.000\t7\tnow\tn/a\n");
}

TEST_CASE("records that change, come and go are seen") {
  const Folder folder;
  put_record(folder, "a", "ok");
  StatusTable table(folder.string(), kColumns);
  table.finish();
  put_record(folder, "a", "rejected");
  put_record(folder, "b", "ok");
  table.finish();
  CHECK(table_of(folder).find("a\trejected") != std::string::npos);
  CHECK(table_of(folder).find("b\tok") != std::string::npos);
  std::filesystem::remove(folder / "a.larch.json");
  table.finish();
  CHECK(table_of(folder).find("rejected") == std::string::npos);
}

TEST_CASE("of several runs the one that ends last has all rows, with locks or without") {
  for (const bool locks : {true, false}) {
    has_no_locks = !locks;
    const Folder folder;
    std::vector<std::thread> runs;
    for (int run = 0; run < 4; ++run) {
      runs.emplace_back([&folder, run] {
        StatusTable table(folder.string(), kColumns);
        for (int i = 0; i < 25; ++i) {
          put_record(folder, std::to_string(run) + "_" + std::to_string(i), "ok");
        }
        table.finish();
      });
    }
    for (std::thread& run : runs) run.join();
    has_no_locks = false;
    const std::string table = table_of(folder);
    CHECK(std::count(table.begin(), table.end(), '\n') == 101);
  }
}

}  // namespace
}  // namespace larch::cases
