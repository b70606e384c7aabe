// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
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

/// What a run hands back: files to write, and what goes to the sidecars and the report.
///
/// run_app calls each writer with a temporary name in the folder of the final one and with its
/// extension (.nii.gz is kept), and renames all files after every writer succeeded. The temporary
/// is there already and empty: a writer opens and fills it, one file, that one, and does not put
/// another one in its place. A companion (the label table beside a labelmap) is added by itself.
class Outputs {
 public:
  /// An output file. An empty path (a flag that was not given) is ignored. Its folder must exist,
  /// unless it lies below an OutputDir: then it is made. `role`: for the files of a case, that of
  /// CaseFiles; the name of its flag tells that of another output.
  Outputs& add(const std::string& path, Writer writer, const std::string& role = "");

  /// An output file that the run has filled already; ignored if none is wanted.
  Outputs& add(const GrowingOutput& output, const std::string& role = "");

  /// A file that belongs to the one that was added before it, such as a label table, and has no
  /// sidecar of its own.
  Outputs& add_companion(const std::string& path, Writer writer);

  /// A figure of the run, for sidecar, report and the log.
  Outputs& metric(const std::string& name, double value);
  /// Anything else for the report, under its own key; include <nlohmann/json.hpp> to make one.
  Outputs& report(const std::string& key, const nlohmann::ordered_json& value);
  /// The same from JSON text.
  Outputs& report_text(const std::string& key, const std::string& json_text);
  /// A sentence for the sidecars and the report.
  Outputs& note(const std::string& text);
  /// An input that neither a flag nor listed_inputs() names, such as the image of a case: hashed
  /// for the sidecars.
  Outputs& input(const RunInput& input);
  /// The grid of an input in words (describe(Grid)), for the sidecars.
  Outputs& grid(const std::string& input_path, const std::string& text);
  /// "done" (the default) or "rejected": outputs are written, the reason logged, and `code` is the
  /// exit code.
  Outputs& status(const std::string& word, const std::string& reason = "",
                  ExitCode code = ExitCode::kRejected);

  struct File {
    std::string path;
    Writer writer;
    bool companion = false;
    std::string role{};
    std::shared_ptr<AtomicFile> filled{};  ///< instead of a writer
  };
  struct Text {
    std::string name, text;  ///< for metrics and report: JSON text
  };

  std::vector<File> files;
  std::vector<Text> metrics, reports, grids;
  std::vector<std::string> notes;
  std::vector<RunInput> inputs;
  std::string status_word = "done", status_reason;
  ExitCode rejected_code = ExitCode::kRejected;
};

/// What earlier runs left where the outputs of a case belong.
struct EarlierOutputs {
  enum class State {
    kCompute,  ///< nothing, or something that may be replaced
    kSkip,     ///< all of it, and it need not be computed again
    kOther     ///< something else, that may not be replaced
  };
  State state = State::kCompute;
  std::string what;           ///< kSkip: why; kOther: what is wrong and what to do
  bool is_confirmed = false;  ///< kSkip: their sidecars tell of the same run; not by name alone
  /// kOther: all outputs are there and are as a run wrote them that had the same inputs and other
  /// settings.
  bool has_other_settings = false;
  // Of the run that wrote the outputs, with kSkip and has_other_settings:
  bool is_rejected = false;                 ///< it ended as rejected
  std::string reason{};                     ///< of the rejection
  std::map<std::string, double> metrics{};  ///< its figures, if they are known
  double seconds = 0;                       ///< that it took, if it is known
};

/// An output of a case, and what it is: the name, without dashes, of the flag that gives it in a
/// run over one case.
struct CaseOutput {
  std::string path, role;
};

/// The names of what a case writes.
struct CaseFiles {
  std::vector<CaseOutput> outputs;      ///< each with a sidecar
  std::vector<std::string> companions;  ///< of these outputs
};

/// What the skeleton gives to a run over many cases, which writes the files of each case when they
/// are ready.
struct CaseWriter {
  /// What is to be done about a case with these outputs and inputs, according to --skip-existing
  /// and --force. To be called before the inputs are read. May be called from several threads.
  std::function<EarlierOutputs(const CaseFiles& files, const std::vector<RunInput>& inputs)>
      earlier;
  /// To be called with the outputs of all cases, before anything is done. Throws OutputError if one
  /// exists and neither --force nor --skip-existing is given.
  std::function<void(const CaseFiles& files)> require_free;
  /// Writes the files of one case below an OutputDir, with their sidecars, all or none of them; a
  /// signal does not keep it from finishing. `seconds`: the time that the case took. May be called
  /// from several threads. Throws OutputError, or what a writer throws.
  std::function<void(const Outputs& outputs, double seconds)> write;
};

}  // namespace larch
