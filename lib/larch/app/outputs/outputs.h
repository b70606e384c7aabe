// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "larch/core/error.h"

namespace larch {

class AtomicFile;
class GrowingOutput;

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

/// What a run hands back: files to write, and what goes to the record and the report.
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
  /// Anything else for the report, under its own key; include <nlohmann/json.hpp> to make one.
  Outputs& report(const std::string& key, const nlohmann::ordered_json& value);
  /// The same from JSON text.
  Outputs& report_text(const std::string& key, const std::string& json_text);
  /// A sentence for the record and the report.
  Outputs& note(const std::string& text);
  /// The grid of an input in words (describe(Grid)), for the record.
  Outputs& grid(const std::string& input_path, const std::string& text);
  /// "done" (the default) or "rejected": outputs are written, the reason logged, and `code` is the
  /// exit code.
  Outputs& status(const std::string& word, const std::string& reason = "",
                  ExitCode code = ExitCode::kRejected);

  struct File {
    std::string path;
    Writer writer;
    bool companion = false;
    std::shared_ptr<AtomicFile> filled{};  ///< instead of a writer
  };
  struct Text {
    std::string name, text;  ///< for metrics and report: JSON text
  };

  std::vector<File> files;
  std::vector<Text> metrics, reports, grids;
  std::vector<std::string> notes;
  std::string status_word = "done", status_reason;
  ExitCode rejected_code = ExitCode::kRejected;
};

/// An output of a case, and what it is: the name, without dashes, of the flag that gives it in a
/// run over one case.
struct CaseOutput {
  std::string path, role;
};

/// Where the files of a case are.
struct CaseFiles {
  std::string record;  ///< the file of the record
  std::vector<CaseOutput> outputs{};
  std::vector<std::string> companions{};  ///< those that are known before the case is computed
  std::string folder{};  ///< instead of outputs: all of this folder belongs to the case
};

}  // namespace larch
