// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "larch/core/context.h"
#include "larch/core/error.h"
#include "larch/files/atomic_file.h"

namespace larch {

/// An input of a run, and what it is to the run: a file, or what a cell of a list says.
struct RunInput {
  std::string role;  ///< the name of its flag without dashes, or of its column in a list
  std::string path;
  std::string of_case{};  ///< its case in a list; else empty
  std::string text{};     ///< of the cell, in place of the content of a file
};

/// The inputs that no flag names, such as those of a list.
struct ListedInputs {
  std::vector<RunInput> inputs;
  /// False: results depend neither on the order of the cases nor on their ids.
  bool order_matters = true;
};

/// Writes one file under the name it is given.
using Writer = std::function<void(const std::string& temporary_path)>;

/// An output that is filled while the run goes on, for what is too large to be kept until its end:
/// the run fills the file under its temporary name and hands it over with Outputs::add. If the run
/// fails the file is removed.
class GrowingOutput {
 public:
  /// None is wanted: nothing is filled and nothing added.
  GrowingOutput() = default;
  /// Makes the empty temporary; none for an empty path. Throws OutputError that names `path`.
  GrowingOutput(const std::string& path, const Context& context);

  explicit operator bool() const { return file_ != nullptr; }
  const std::string& temporary() const { return file_->temporary(); }
  const std::shared_ptr<AtomicFile>& file() const { return file_; }

  /// Calls `step`, which fills a part of the file, unless none is wanted. What it throws is thrown
  /// in terms of the final name, as for a Writer.
  void fill(const std::function<void()>& step) const;

 private:
  std::shared_ptr<AtomicFile> file_{};
};

/// A structure of a result, for record, status.tsv and page.
struct ResultStructure {
  std::string name;
  std::array<uint8_t, 3> rgb{};
  std::optional<double> volume_ml{};
  std::optional<double> dice{};  ///< against the reference that the list names
  std::string status{};          ///< whatever else is to be said: "uncertain, confidence 0.42"
};

/// The result of a run: files to write, and entries of the record and the report.
///
/// run_app calls each writer with a temporary name in the folder of the final one and with its
/// extension (.nii.gz is kept), and renames all files after every writer succeeded. The temporary
/// is there already and empty: a writer opens and fills it, one file, that one, and does not put
/// another one in its place. A companion (the label table beside a labelmap) is added by itself.
class Outputs {
 public:
  /// An output file. An empty path (a flag that was not given) is ignored. Its folder must exist,
  /// unless it lies below an OutputDir: then it is made.
  Outputs& add(const std::string& path, Writer writer);

  /// An output file that the run has filled already; ignored if none is wanted.
  Outputs& add(const GrowingOutput& output);

  /// A file that belongs to the one that was added before it, such as a label table.
  Outputs& add_companion(const std::string& path, Writer writer);

  /// A figure of the run, for record, report and the log.
  Outputs& metric(const std::string& name, double value);
  /// The steps of a job, as figures of their names, and for the report.
  Outputs& seconds(const StepSeconds& taken);
  /// A step of the run beside those, for the report.
  Outputs& step(const std::string& name, double seconds);
  /// Anything else for the report, under its own key; include <nlohmann/json.hpp> to make one.
  Outputs& report(const std::string& key, const nlohmann::ordered_json& value);
  /// A sentence for the record and the report.
  Outputs& note(const std::string& text);
  /// The grid of an input in words (describe(Grid)), for the record.
  Outputs& grid(const std::string& input_path, const std::string& text);
  /// Adds to the record how the files of an input are named in DICOM.
  Outputs& dicom(const std::string& input_path, const nlohmann::ordered_json& names);
  /// "done" (the default) or "rejected": outputs are written, the reason logged, and `code` is the
  /// exit code; without it that is Program::reject_code.
  Outputs& status(const std::string& word, const std::string& reason = "",
                  std::optional<ExitCode> code = {});

  struct File {
    std::string path;
    Writer writer;
    bool companion = false;
    std::shared_ptr<AtomicFile> filled{};  ///< instead of a writer
  };
  struct Text {
    std::string name, text;  ///< for metrics: JSON text
  };
  struct Report {
    std::string name;
    std::shared_ptr<const nlohmann::ordered_json> value;
  };

  /// Returns the figure for people: empty if there is none that is finite.
  std::string figure(const std::string& name) const;

  std::vector<File> files;
  std::vector<Text> metrics, grids;
  std::vector<Report> reports, dicoms;
  std::vector<ResultStructure> structures;
  std::vector<std::string> notes;
  StepSeconds steps{};  ///< with the seconds of a run, which they add up to
  /// Rows for people, printed in columns on stdout at the end unless --quiet is given.
  std::vector<std::vector<std::string>> table{};
  std::string status_word = "done", status_reason;
  std::optional<ExitCode> rejected_code{};
};

/// Returns a number for people: whole ones as they are, others with six digits; empty if it is not
/// finite.
std::string figure_text(double value);

/// An output of a case, and what it is: the name, without dashes, of the flag that gives it in a
/// run over one case.
struct CaseOutput {
  std::string path, role;
};

/// The names of the files of a case.
struct CaseFiles {
  std::string record;  ///< the file of the record
  std::vector<CaseOutput> outputs{};
  std::vector<std::string> companions{};  ///< those that are known before the case is computed
  std::string folder{};  ///< instead of outputs: all of this folder belongs to the case
};

/// The plan of a run, which --dry-run prints.
struct Plan {
  std::vector<std::vector<std::string>> table{};  ///< of the cases; the first row names the columns
  int64_t memory_bytes = 0;             ///< of the largest case, by its planner; 0: it has none
  std::vector<std::string> notes{};     ///< further lines for the log
  std::vector<std::string> problems{};  ///< each would end the run, or a case of it
  ExitCode code = ExitCode::kDone;      ///< with which the run would end because of them
};

}  // namespace larch

namespace larch::detail {

/// Files that appear together or not at all: write() makes temporaries, commit() renames them, the
/// destructor removes what was not renamed.
class FileSet {
 public:
  /// The stop flag of `context` is looked at before each file is written; the log is told of
  /// leftovers of interrupted runs that are removed from the folders.
  explicit FileSet(const Context& context) : context_(context) {}
  explicit FileSet(Context&& context) = delete;  // it is kept by reference
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  /// Throws OutputError that names `path`, or what the writer throws, with the name of the
  /// temporary replaced by `path`; Stopped if a stop is requested.
  void write(const std::string& path, const Writer& writer);
  /// A file that is filled already (GrowingOutput). Throws OutputError.
  void take(const std::shared_ptr<AtomicFile>& file);
  /// Gives the files their names. One that is there is replaced if `may_replace` says so. Throws
  /// OutputError; files that got a free name are then gone again.
  void commit(const std::function<bool(const std::string& path)>& may_replace);
  void commit() {
    commit([](const std::string&) { return true; });
  }
  /// Flushes the folders of the files that have their names, and those of `other`.
  void flush_folders(const FileSet* other = nullptr) const;

 private:
  void hold_few_open();

  const Context& context_;
  std::deque<std::shared_ptr<AtomicFile>> files_;
  std::set<std::string> folders_;  // of files that have their names
  std::chrono::steady_clock::time_point refreshed_ = std::chrono::steady_clock::now();
};

/// Returns a writer of plain text.
Writer text_writer(const std::string& text);

}  // namespace larch::detail
