// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "larch/app/run_app.h"
#include "larch/cases/case_loop.h"
#include "larch/cases/images.h"

// A program over cases: what is done with one image, or with one row of a list, is the same code.
// The shell around it owns flags and help of the products, cases side by side within memory that is
// measured, whole files, a record per case, --skip-existing by that record, status.tsv derived from
// the records, --dry-run, signals and exit codes. See README.md for a whole program.
namespace larch::cases {

/// Holds what is the same for all cases of a run.
struct RunAbout {
  std::string program;  ///< its name
  bool is_of_list = false;
  LabelTable labels{};  ///< of --label-table
};

/// One image, or one row of a list, on its way.
class CaseJob {
 public:
  CaseJob(const Case& row, const std::vector<CaseOutput>& files, const ReadOptions& read,
          const Context& context, const RunAbout& about)
      : row(row),
        files(files),
        read(about.is_of_list ? options_of_case(row, read) : read),
        about(about),
        is_of_list(about.is_of_list),
        context_(context) {}

  const Case& row;  ///< of one image: its file name as id, and no further cells
  const std::vector<CaseOutput>& files;  ///< the products that are wanted
  const ReadOptions read;                ///< how images are read
  const RunAbout& about;
  const bool is_of_list;

  /// Returns the file of a product, by the name of its flag; empty: it is not wanted.
  std::string file(const std::string& flag) const { return file_of(files, flag); }
  bool wants(const std::string& flag) const { return !file(flag).empty(); }
  /// The own thread of the case, with its share of the threads; context().turn() has the device, or
  /// a part of it where the image is small, and threads to go with it.
  const Context& context() const { return context_; }

 private:
  const Context& context_;
};

/// A case as --dry-run tells it.
struct CaseLook {
  std::vector<std::pair<std::string, std::string>> cells;  ///< by column
  int64_t bytes = 0;                                       ///< on the host; 0: not known
};
/// Says the size and spacing of an image.
CaseLook look_of(const Grid& grid);
/// Returns the same by the header of the image. Throws InputError.
CaseLook look_at_image(const CaseJob& job);

/// For programs that prepare nothing.
struct Nothing {};

/// A program; Options has the member `cases::Images images`. All but `process` may be left out, and
/// `prepare` where nothing is prepared.
template <class Options, class Prepared = Nothing>
struct CaseProgram {
  /// Made once for all cases: the model, on its device.
  std::function<Prepared(const Options&, const Context&)> prepare{};
  /// The files and figures of a case. Throws what is its failure.
  std::function<Outputs(const CaseJob&, const Options&, const Prepared&)> process;
  /// As Hooks::check; Images::check is called before.
  std::function<void(const Options&, const GivenFlags&)> check{};
  /// Called for every case before anything is done, for rules that concern names and cells alone.
  /// `names`: resolved, of all inputs and outputs of all cases.
  std::function<void(const CaseJob&, const Options&, const std::set<std::string>& names)>
      check_names{};
  /// Fills in cells of a case of a list that flags tell, before anything is checked: files that a
  /// folder has for it.
  std::function<void(const Options&, Case&)> complete{};
  /// For --dry-run: checks what the header tells and throws what would be the failure of the case.
  std::function<CaseLook(const CaseJob&, const Options&, const Prepared&)> look =
      [](const CaseJob& job, const Options&, const Prepared&) { return look_at_image(job); };
  /// For --dry-run, after `look`: reads what a case has beside its image, and throws what would be
  /// the failure of the case.
  std::function<void(const CaseJob&, const Options&, const Prepared&)> read_more =
      [](const CaseJob&, const Options&, const Prepared&) {};
  /// Returns what of a run with these options has no code for a card; empty: nothing.
  std::function<std::string(const Options&)> cpu_alone{};
  /// Images of flags beside those of products, of the one image, such as a mask; their detached
  /// files are recorded. By role.
  std::function<std::vector<std::pair<std::string, std::string>>(const Options&)> images{};

  std::vector<CaseColumn> columns{};   ///< of the list, beside image and id; they are inputs
  std::vector<std::string> figures{};  ///< Outputs::metric that are columns of status.tsv
  /// Ends the sentence about rejected cases, "in 2 ...".
  std::string rejection = "the result was rejected";
  /// Bytes on the host per voxel of a case: the first guess of what it takes. 0: it is what `look`
  /// says.
  double bytes_per_voxel = 32;
};

/// Reads the table of labels that the flags name. Throws InputError.
RunAbout about_of(const larch::detail::CheckedRun& run, const Images& images);

namespace detail {
/// A program without the types of its options and what it prepares.
struct AnyCaseProgram {
  const Images& images;
  const std::vector<CaseColumn>& columns;
  const std::vector<std::string>& figures;
  const std::string& rejection;
  double bytes_per_voxel;
  std::function<void(const Context&)> prepare{};
  std::function<Outputs(const CaseJob&)> process{};
  std::function<void(const CaseJob&, const std::set<std::string>&)> check_names{};
  std::function<void(Case&)> complete{};
  std::function<CaseLook(const CaseJob&)> look{};
  std::function<void(const CaseJob&)> read_more{};
};
Outputs run_cases(const AnyCaseProgram& program, const larch::detail::CheckedRun& run,
                  Context& context);
Plan plan_cases(const AnyCaseProgram& program, const larch::detail::CheckedRun& run,
                const Context& context);
}  // namespace detail

/// Runs a program over one image, as run_app does, or over a list. Of a list the folder gets the
/// files and the record of each case and status.tsv; a case that fails does not stop the others and
/// leaves <id>.failed.larch.json. The exit code is 7 if a case failed, --reject-code if some were
/// only rejected, and 5 if memory is all that was missing.
template <class Options, class Prepared>
int run_case_app(const AppInfo& info, int argc, char** argv,
                 const CaseProgram<Options, Prepared>& cases) {
  Options options;
  const Images& images = options.images;
  std::map<int, Prepared> prepared;  // by index of the device
  detail::AnyCaseProgram any{images, cases.columns, cases.figures, cases.rejection,
                             cases.bytes_per_voxel};
  any.prepare = [&](const Context& context) {
    if constexpr (std::is_same_v<Prepared, Nothing>) {
      prepared.try_emplace(context.device.index);
    } else {
      prepared.try_emplace(context.device.index, cases.prepare(options, context));
    }
  };
  const auto of = [&](const CaseJob& job) -> const Prepared& {
    return prepared.at(job.context().device.index);
  };
  any.process = [&](const CaseJob& job) { return cases.process(job, options, of(job)); };
  any.look = [&](const CaseJob& job) { return cases.look(job, options, of(job)); };
  any.read_more = [&](const CaseJob& job) { cases.read_more(job, options, of(job)); };
  if (cases.check_names) {
    any.check_names = [&](const CaseJob& job, const std::set<std::string>& names) {
      cases.check_names(job, options, names);
    };
  }
  if (cases.complete) any.complete = [&](Case& c) { cases.complete(options, c); };
  larch::detail::Program program = larch::detail::describe_program(info, options);
  program.check = [&](const GivenFlags& given) {
    images.check(given);
    if (cases.check) cases.check(options, given);
  };
  program.by_case = [&] { return images.is_list(); };
  program.reject_code = [&] { return static_cast<ExitCode>(images.reject_code); };
  if (cases.cpu_alone) program.cpu_alone = [&] { return cases.cpu_alone(options); };
  program.companions = [&] { return images.companions(images.files()); };
  program.listed_inputs = [&] {
    ListedInputs listed;
    std::vector<std::pair<std::string, std::string>> all{{"input", images.input}};
    if (cases.images) {
      for (const auto& image : cases.images(options)) all.push_back(image);
    }
    for (const auto& [role, path] : all) {
      for (const RunInput& data : detached_inputs(role, path)) listed.inputs.push_back(data);
    }
    return listed;
  };
  program.run = [&](Context& context, const larch::detail::CheckedRun& run) {
    return detail::run_cases(any, run, context);
  };
  program.plan = [&](const Context& context, const larch::detail::CheckedRun& run) {
    return detail::plan_cases(any, run, context);
  };
  return larch::detail::run_program(program, argc, argv);
}

}  // namespace larch::cases
