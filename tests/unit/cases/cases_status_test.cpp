// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "larch/app/records/folder_record.h"
#include "larch/app/records/shared_folder.h"
#include "larch/cases/status_rows.h"
#include "larch/cases/status_table.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/files/temporaries.h"

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

/// While one lives, no file can be locked.
struct NoLocks {
  NoLocks() { has_no_locks = true; }
  ~NoLocks() { has_no_locks = false; }
  NoLocks(const NoLocks&) = delete;
  NoLocks& operator=(const NoLocks&) = delete;
};

namespace fs = std::filesystem;

/// A folder that is removed at the end of a test, and a context that keeps the warnings.
struct Folder {
  std::string path;
  std::vector<std::string> warnings;
  Context context;
  Folder() {
    std::string name = (fs::temp_directory_path() / "larch-status-XXXXXX").string();
    path = mkdtemp(name.data());
    context.log_sink = [this](LogLevel, std::string_view text) { warnings.emplace_back(text); };
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
  std::string table() const { return read_file(status_table(path)); }
  std::vector<std::string> parts() const { return parts_in(path, "status-", ".tsv"); }
  /// A part as a killed run leaves it.
  std::string leave_part(const std::string& text) const {
    std::string name = parts_folder(path) + "/status-" + random_hex() + ".tsv";
    std::ofstream(name) << text;
    return name;
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      const std::string name = entry.path().filename().string();
      if (name.find(".kept-") != std::string::npos) names.push_back(entry.path().string());
    }
    return names;
  }
};

/// The table without its last column, the time.
std::string without_times(const std::string& table) {
  std::stringstream in(table);
  std::string line, out;
  while (std::getline(in, line)) out += line.substr(0, line.rfind('\t')) + "\n";
  return out;
}

const std::string kHeader = "id\tstatus\tmessage\tseconds\tvoxels\n";
const std::string kTimedHeader = "id\tstatus\tmessage\tseconds\tvoxels\tended\n";

TEST_CASE("status rows: natural order, and only one order") {
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

TEST_CASE("status rows: whoever comes first, the same table") {
  const std::string head = "id\tstatus\tended\n";
  std::vector<std::string> tables{head + "a\tok\t2026-01-01T00:00:02.000Z\nb\tskipped\tn/a\n",
                                  head + "a\tfailed\t2026-01-01T00:00:03.000Z\n",
                                  head + "a\tskipped\t2026-01-01T00:00:09.000Z\n",
                                  head + "b\trejected\tn/a\nc\tok\tgarbage\n",
                                  head + "c\tfailed\t2026-01-01T00:00:01.000Z\n"};
  std::sort(tables.begin(), tables.end());
  do {
    StatusRows rows;
    for (const std::string& table : tables) CHECK(add_status_rows(table, rows).empty());
    CHECK(status_text(rows) == head +
                                   "a\tfailed\t2026-01-01T00:00:03.000Z\nb\trejected\tn/a\n"
                                   "c\tfailed\t2026-01-01T00:00:01.000Z\n");
  } while (std::next_permutation(tables.begin(), tables.end()));
}

TEST_CASE("status rows: columns of other versions are kept; columns may stand in any order") {
  StatusRows rows;
  CHECK(add_status_rows("id\tstatus\tvoxels\n2\tok\t7\n", rows).empty());
  CHECK(add_status_rows("dice\tstatus\tid\r\n0.9\tok\t10\r\n", rows).empty());
  CHECK(status_text(rows) == "id\tstatus\tvoxels\tdice\n2\tok\t7\tn/a\n10\tok\tn/a\t0.9\n");
}

TEST_CASE(
    "status rows: of two rows of one time the same stays, whatever the order of the columns") {
  const std::string p = "id\tstatus\tp\nc1\tok\t1\n", q = "id\tstatus\tq\nc1\tok\t1\n";
  StatusRows pq, qp;
  CHECK((add_status_rows(p, pq).empty() && add_status_rows(q, pq).empty()));
  CHECK((add_status_rows(q, qp).empty() && add_status_rows(p, qp).empty()));
  CHECK(pq.columns == std::vector<std::string>{"id", "status", "p", "q"});
  const auto& cells = qp.rows.at("c1");  // id, status, q and perhaps p
  const std::string of_q = cells.at(2), of_p = cells.size() > 3 ? cells[3] : "n/a";
  CHECK(pq.rows.at("c1").at(2) == of_p);
  CHECK((pq.rows.at("c1").size() > 3 ? pq.rows.at("c1")[3] : "n/a") == of_q);
}

TEST_CASE("status rows: what is written can be read, whatever was taken in") {
  StatusRows table;
  CHECK(add_status_rows("last\tid\tstatus\nx\r\tc1\tok\n", table).empty());
  CHECK(add_status_rows("id\tstatus\nc2\tok\r\r\n", table).empty());
  for (int side = 0; side < 2; ++side) {
    std::string head = "id\tstatus", row = "c3\tok";
    for (int i = 0; i < 40; ++i) {
      head += "\tcolumn" + std::to_string(40 * side + i);
      row += "\t1";
    }
    INFO(side);
    CHECK(add_status_rows(head + "\n" + row + "\n", table).empty() == (side == 0));
  }
  StatusRows again;
  CHECK(add_status_rows(status_text(table), again).empty());
  CHECK(status_text(again) == status_text(table));
}

TEST_CASE("status rows: what is not a table is not taken; broken lines are left out") {
  StatusRows rows;
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("hello"), std::string("id\tid\tstatus\n"),
        std::string("id\tstatus\na\tok\0\n", 16), "id\tstatus" + std::string(100, '\t') + "\n",
        std::string(5000, '\t')}) {
    CHECK_FALSE(add_status_rows(text, rows).empty());
    CHECK(rows.rows.empty());
  }
  CHECK_FALSE(add_status_rows("id\tstatus\na\tok\nb\tok\tmore\n\tok\nc\nd\tok", rows).empty());
  CHECK(status_text(rows) == "id\tstatus\na\tok\nd\tok\n");
  std::string many = "id\tstatus\n";
  for (size_t i = 0; i < kMostStatusRows + 10; ++i) many += std::to_string(i) + "\tok\n";
  CHECK(add_status_rows(many, rows) == "it has too many rows");
  CHECK(rows.rows.size() == kMostStatusRows);
}

TEST_CASE("status table: rows are in the part as they come, and in the table at the end") {
  Folder folder;
  StatusTable table(folder.path, {"voxels"}, folder.context);
  REQUIRE(folder.parts().size() == 1);
  table.add({"c10", CaseStatus::kFailed, "line\none\ttab", 1.5});
  CHECK(table.add({"c9", CaseStatus::kOk, "", 0.25, {"12"}}) == 2);
  const std::string nine = "c9\tok\tn/a\t0.250\t12\n";
  const std::string ten = "c10\tfailed\tline one tab\t1.500\tn/a\n";
  CHECK(without_times(read_file(folder.parts()[0])) == kHeader + ten + nine);
  table.finish();
  CHECK(without_times(folder.table()) == kHeader + nine + ten);
  CHECK(folder.parts().empty());
  CHECK(table.count(CaseStatus::kFailed) == 1);
  CHECK(table.count(CaseStatus::kSkipped) == 0);
  CHECK(folder.warnings.empty());
  CHECK_THROWS_AS(StatusTable("/nowhere/at/all", {}, folder.context), OutputError);
}

TEST_CASE("status table: two runs at the same time lose nothing, whichever ends last") {
  std::string tables[2];
  for (const bool first_ends_last : {false, true}) {
    Folder folder;
    StatusTable one(folder.path, {"voxels"}, folder.context);
    StatusTable two(folder.path, {"voxels"}, folder.context);
    one.add({"a", CaseStatus::kOk, "", 1, {"1"}});
    two.add({"b", CaseStatus::kRejected, "", 1, {"2"}});
    one.add({"d", CaseStatus::kSkipped});
    two.add({"c", CaseStatus::kOk, "", 1, {"3"}});
    (first_ends_last ? two : one).finish();
    // The rows of the run that goes on are there already, and its part stays.
    CHECK(without_times(folder.table()).find("\nb\trejected") != std::string::npos);
    CHECK(folder.parts().size() == 1);
    (first_ends_last ? one : two).add({"e", CaseStatus::kOk, "", 1, {"5"}});
    (first_ends_last ? one : two).finish();
    CHECK(folder.parts().empty());
    tables[first_ends_last] = without_times(folder.table());
  }
  CHECK(tables[0] == tables[1]);
  CHECK(tables[0] == kHeader +
                         "a\tok\tn/a\t1.000\t1\nb\trejected\tn/a\t1.000\t2\nc\tok\tn/a\t1.000\t3\n"
                         "d\tskipped\tn/a\t0.000\tn/a\ne\tok\tn/a\t1.000\t5\n");
}

TEST_CASE("status table: many runs, each in a thread") {
  Folder folder;
  std::vector<std::thread> runs;
  runs.reserve(8);
  for (int run = 0; run < 8; ++run) {
    runs.emplace_back([&folder, run] {
      Context context;
      for (int again = 0; again < 5; ++again) {
        StatusTable table(folder.path, {"voxels"}, context);
        const std::string id = std::to_string(run) + "-" + std::to_string(again);
        table.add({id, CaseStatus::kOk, "", 0, {std::to_string(run)}});
        table.finish();
      }
    });
  }
  for (std::thread& run : runs) run.join();
  StatusRows rows;
  CHECK(add_status_rows(folder.table(), rows).empty());
  CHECK(rows.rows.size() == 40);
  CHECK(folder.parts().empty());
}

TEST_CASE("status table: a skipped row does not replace a result; a newer result does") {
  Folder folder;
  const auto run = [&](const CaseRow& row) {
    // Rows tell when they ended in milliseconds; of one millisecond none is newer.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    StatusTable table(folder.path, {"voxels"}, folder.context);
    table.add(row);
    table.finish();
    return without_times(folder.table());
  };
  CHECK(run({"a", CaseStatus::kSkipped, "there"}) == kHeader + "a\tskipped\tthere\t0.000\tn/a\n");
  CHECK(run({"a", CaseStatus::kOk, "", 2, {"7"}}) == kHeader + "a\tok\tn/a\t2.000\t7\n");
  CHECK(run({"a", CaseStatus::kSkipped, "there"}) == kHeader + "a\tok\tn/a\t2.000\t7\n");
  CHECK(run({"a", CaseStatus::kFailed, "no"}) == kHeader + "a\tfailed\tno\t0.000\tn/a\n");
  const CaseRow confirmed{"a", CaseStatus::kOk, "there", 2, {"7"}, CaseStatus::kSkipped};
  CHECK(run(confirmed) == kHeader + "a\tok\tthere\t2.000\t7\n");
  StatusTable table(folder.path, {"voxels"}, folder.context);
  table.add(confirmed);
  CHECK(table.count(CaseStatus::kSkipped) == 1);
  CHECK(table.count(CaseStatus::kOk) == 0);
  CHECK(table.rows() == 1);
}

TEST_CASE("status table: without locks the parts stay, and every run unites them") {
  Folder folder;
  const NoLocks none;
  CHECK(FolderLock(folder.path, 0).state() == FolderLock::State::kUnsupported);
  StatusTable one(folder.path, {"voxels"}, folder.context);
  StatusTable two(folder.path, {"voxels"}, folder.context);
  one.add({"a", CaseStatus::kOk, "", 1, {"1"}});
  two.add({"b", CaseStatus::kOk, "", 1, {"2"}});
  one.finish();
  const std::string both = kHeader + "a\tok\tn/a\t1.000\t1\nb\tok\tn/a\t1.000\t2\n";
  CHECK(without_times(folder.table()) == both);
  CHECK(folder.parts().size() == 2);
  fs::remove(status_table(folder.path));  // as if a run had put its own table in the place of this
  two.finish();
  CHECK(without_times(folder.table()) == both);
  CHECK(folder.parts().size() == 2);
  CHECK(folder.warnings.empty());
}

TEST_CASE("status table: rows of killed runs are taken in, but not the parts of living ones") {
  Folder folder;
  const std::string dead = folder.leave_part(kTimedHeader + "a\tok\tn/a\t1.0\t5\tn/a\nb\tok\tcut");
  const std::string empty = folder.leave_part("");
  const std::string half = folder.leave_part("id\tsta");
  const std::string garbage = folder.leave_part("no\ntable\n");
  const std::string other = folder.leave_part(kTimedHeader + "x\tok\tn/a\t1.0\t5\tn/a\n");
  const int file = open(other.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(flock(file, LOCK_EX) == 0);
  StatusTable table(folder.path, {"voxels"}, folder.context);
  table.finish();
  CHECK(without_times(folder.table()) == kHeader + "a\tok\tn/a\t1.0\t5\nx\tok\tn/a\t1.0\t5\n");
  CHECK(folder.parts() == std::vector<std::string>{other});
  CHECK(folder.kept().size() == 1);  // the garbage
  CHECK(folder.warnings.size() == 1);
  CHECK(folder.warnings.at(0).find(garbage) != std::string::npos);
  close(file);
}

TEST_CASE("status table: a table that cannot be understood is kept and said") {
  for (const std::string& text :
       {std::string("\0\1\2", 3), std::string("one\ttwo\n1\t2\n"),
        std::string("id\tstatus\nz\tok\nbroken\n"), std::string(kMostStatusBytes + 1, 'x')}) {
    Folder folder;
    std::ofstream(status_table(folder.path)) << text;
    StatusTable table(folder.path, {"voxels"}, folder.context);
    table.add({"a", CaseStatus::kOk, "", 1, {"1"}});
    table.finish();
    CHECK(without_times(folder.table()).find("\na\tok\tn/a\t1.000\t1\n") != std::string::npos);
    CHECK((folder.table().find("\nz\tok") != std::string::npos) == (text.find("\nz") < 99));
    REQUIRE(folder.kept().size() == 1);
    CHECK(read_file(folder.kept()[0]) == text);
    REQUIRE(folder.warnings.size() == 1);
    CHECK(folder.warnings[0].find(folder.kept()[0]) != std::string::npos);
  }
}

TEST_CASE("status table: a pipe or a folder of its name is refused at once") {
  Folder pipe, taken, hidden;
  REQUIRE(mkfifo(status_table(pipe.path).c_str(), 0600) == 0);
  CHECK_THROWS_AS(StatusTable(pipe.path, {}, pipe.context), OutputError);
  fs::create_directory(status_table(taken.path));
  CHECK_THROWS_AS(StatusTable(taken.path, {}, taken.context), OutputError);
  std::ofstream(hidden / ".larch") << "a file";
  CHECK_THROWS_AS(StatusTable(hidden.path, {}, hidden.context), OutputError);
}

TEST_CASE("status table: a holder of the lock that never lets go does not hang a run") {
  Folder folder;
  {
    StatusTable table(folder.path, {"voxels"}, folder.context);
    table.add({"a", CaseStatus::kOk, "", 1, {"1"}});
    const FolderLock held(folder.path, 0);
    REQUIRE(held.state() == FolderLock::State::kTaken);
    CHECK(FolderLock(folder.path, 0).state() == FolderLock::State::kBusy);
    table.finish();
    CHECK_FALSE(fs::exists(status_table(folder.path)));
    REQUIRE(folder.warnings.size() == 1);
    CHECK(folder.warnings[0].find(folder.parts().at(0)) != std::string::npos);
  }
  StatusTable(folder.path, {"voxels"}, folder.context).finish();
  CHECK(without_times(folder.table()) == kHeader + "a\tok\tn/a\t1.000\t1\n");
}

/// Runs that record themselves in a folder.
struct Recorded : Folder {
  std::string path_of_record = *this / "larch.json";
  void run(int number, double wait_seconds = 10) {
    const config::Json json{{"Sources", config::Json::array()}, {"Larch", {{"Seed", number}}}};
    detail::write_folder_record(path, json, context, wait_seconds);
  }
  std::vector<int> seeds() const {
    const config::Json json = config::Json::parse(read_file(path_of_record));
    std::vector<int> found{json["Larch"]["Seed"].get<int>()};
    for (const config::Json& one : json["Larch"].value("EarlierRuns", config::Json::array())) {
      CHECK_FALSE(one.contains("EarlierRuns"));
      found.push_back(one["Seed"]);
    }
    return found;
  }
  std::vector<std::string> parts() const { return parts_in(path, "run-", ".json"); }
};

TEST_CASE("folder record: runs are united, bounded, and parts are taken in") {
  using config::Json;
  Recorded folder;
  folder.run(1);
  folder.run(2);
  {
    const FolderLock held(folder.path, 0);
    folder.run(3, /*wait_seconds=*/0);
  }
  CHECK(folder.seeds() == std::vector<int>{2, 1});
  REQUIRE(folder.warnings.size() == 1);
  CHECK(folder.warnings[0].find(folder.parts().at(0)) != std::string::npos);
  const std::string part = read_file(folder.parts()[0]);
  const std::string name = folder.parts()[0];
  folder.run(4);
  CHECK(folder.seeds() == std::vector<int>{4, 3, 2, 1});
  CHECK(folder.parts().empty());
  // A run that was killed before it removed the part that it had taken in.
  write_file(name, part);
  folder.run(5);
  CHECK(folder.seeds() == std::vector<int>{5, 3, 4, 2, 1});
  CHECK(folder.warnings.size() == 1);

  Json many{{"Larch", {{"Seed", 5}, {"EarlierRuns", Json::array()}}}};
  for (int i = 0; i < 2000; ++i) many["Larch"]["EarlierRuns"].push_back({{"Seed", 10 + i}});
  write_file(folder.path_of_record, many.dump());
  folder.run(6);
  CHECK(folder.seeds().size() == detail::kMostEarlierRuns + 1);
  many["Larch"]["EarlierRuns"][0]["Note"] = std::string(detail::kMostEarlierBytes, 'x');
  write_file(folder.path_of_record, many.dump());
  folder.run(7);
  CHECK(folder.seeds() == std::vector<int>{7, 5});
}

TEST_CASE("folder record: what cannot be understood is kept and said") {
  Recorded folder;
  for (const char* text : {"", "[]", "{\"Larch\": 1}", "{\"Larch\": {\"EarlierRuns\": 1}}",
                           "{\"Larch\": {\"EarlierRuns\": [1]}}", "\x01"}) {
    folder.warnings.clear();
    write_file(folder.path_of_record, text);
    folder.run(8);
    CHECK(folder.seeds() == std::vector<int>{8});
    CHECK(folder.warnings.size() == 1);
  }
  CHECK(folder.kept().size() == 6);
  folder.warnings.clear();
  std::ofstream(parts_folder(folder.path) + "/run-" + random_hex() + ".json") << "{";
  folder.run(9);
  CHECK(folder.seeds() == std::vector<int>{9, 8});
  CHECK(folder.parts().empty());
  CHECK(folder.kept().size() == 7);
  CHECK(folder.warnings.size() == 1);

  // What can just be read could not be read any more at the place of an earlier run.
  write_file(folder.path_of_record,
             "{\"Larch\": {\"a\": " + std::string(63, '[') + std::string(63, ']') + "}}");
  folder.run(10);
  folder.run(11);
  CHECK(folder.seeds() == std::vector<int>{11, 10});
}

TEST_CASE("folder record: without locks each run leaves its part, and larch.json unites them") {
  Recorded folder;
  folder.run(1);
  {
    const NoLocks none;
    folder.run(2);
    const std::string second = read_file(folder.path_of_record);
    folder.run(3);
    CHECK(folder.seeds() == std::vector<int>{3, 2, 1});
    // Two runs at once: the one has put what it knew in the place of what the other wrote.
    write_file(folder.path_of_record, second);
    CHECK(folder.parts().size() == 2);
    folder.run(4);
    CHECK(folder.seeds().size() == 4);
    CHECK(folder.parts().size() == 3);
    std::vector<std::thread> runs;
    for (int i = 5; i < 13; ++i) {
      runs.emplace_back([&folder, i] {
        const config::Json json{{"Larch", {{"Seed", i}}}};
        detail::write_folder_record(folder.path, json, Context{});
      });
    }
    for (std::thread& run : runs) run.join();
    std::vector<int> all = folder.seeds();
    std::sort(all.begin(), all.end());
    CHECK(all == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    CHECK(folder.parts().size() == 11);
  }
  // Where there are locks again the parts are taken in, each run once.
  folder.run(13);
  CHECK(folder.seeds().size() == 13);
  CHECK(folder.parts().empty());
  CHECK(folder.warnings.empty());
}

}  // namespace
}  // namespace larch::cases
