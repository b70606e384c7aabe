// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/listed_cases.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>

#include "larch/app/console.h"
#include "larch/app/failures.h"
#include "larch/cases/status_table.h"
#include "larch/core/context.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/files/temporaries.h"
#include "larch/io/segmentation/segmentation_file.h"

namespace larch::cases {
namespace {

using Clock = std::chrono::steady_clock;
using config::Json;
using larch::detail::CheckedRun;

/// Checks the names of what the cases write, and of what they are made from; all of them, resolved.
std::set<std::string> check_names(const ListedCases& list, const CheckedRun& run,
                                  const std::string& folder) {
  std::set<std::string> inputs, outputs;
  larch::detail::ReadFiles read;
  for (const RunInput& input : run.basis().inputs) read.add(input, /*is_listed=*/false);
  for (size_t i = 0; i < list.cases.size(); ++i) {
    for (const RunInput& input : list.inputs(i)) {
      read.add(input, /*is_listed=*/true);
      if (input.text.empty()) inputs.insert(resolved_name(input.path));
    }
  }
  const auto add = [&](const std::string& name) {
    read.refuse(name);
    if (!outputs.insert(resolved_name(name)).second) {
      throw UsageError("'" + name + "' would be written for two cases; give them other ids");
    }
  };
  const std::string& report = run.line.common.report;
  if (!report.empty() && report != "-") add(report);
  add(status_table(folder));
  add(larch::detail::page_name(folder));
  for (size_t i = 0; i < list.cases.size(); ++i) {
    add(list.files[i].record);
    add(larch::detail::failed_record_name(folder, list.cases[i].id));
    for (const CaseOutput& output : list.files[i].outputs) add(output.path);
    for (const std::string& name : list.files[i].companions) add(name);
  }
  outputs.merge(inputs);
  return outputs;
}

/// Returns the columns of status.tsv.
std::vector<std::string> columns_of(const detail::AnyCaseProgram& program) {
  std::vector<std::string> columns{"id", "status", "message", "seconds", "code"};
  columns.insert(columns.end(), program.figures.begin(), program.figures.end());
  columns.insert(columns.end(), program.images.carry.begin(), program.images.carry.end());
  columns.push_back("ended");
  return columns;
}

bool makes_pictures(const detail::AnyCaseProgram& program) {
  const std::vector<CaseOutput> files = program.images.files_of("case");
  return std::any_of(files.begin(), files.end(), is_picture);
}

void check_carried(const ListedCases& list, const detail::AnyCaseProgram& program) {
  const std::vector<std::string> all = columns_of(program);
  for (const std::string& column : program.images.carry) {
    if (std::count(all.begin(), all.end(), column) > 1) {
      throw UsageError("--carry: status.tsv has a column '" + column + "' already");
    }
    const auto lacks = [&](const Case& c) { return !c.further.contains(column); };
    if (std::any_of(list.cases.begin(), list.cases.end(), lacks)) {
      throw UsageError("--carry: the list has no column '" + column +
                       "', beside id and the columns that this program reads");
    }
  }
}

/// Refuses the whole list if an output of a case is there; what a killed run was naming may be.
void require_free(const std::vector<CaseFiles>& all) {
  for (const CaseFiles& files : all) {
    std::vector<std::string> names = files.companions;
    for (const CaseOutput& output : files.outputs) names.push_back(output.path);
    std::erase_if(names, [](const auto& name) { return larch::detail::stamp_of(name).empty(); });
    if (names.empty()) continue;
    const auto larch = larch::detail::read_record(files.record);
    if (larch && (*larch)["Status"] == larch::detail::kWriting) continue;
    throw OutputError("output '" + names.front() +
                      "' exists; use --force to replace what is there or --skip-existing to keep "
                      "it");
  }
}

/// The run over the cases; its members are called from the threads of cases.
class ListRun {
 public:
  ListRun(const ListedCases& list, const detail::AnyCaseProgram& program, const CheckedRun& run,
          const Context& context)
      : list_(list),
        program_(program),
        run_(run),
        context_(context),
        table_(program.images.output_dir, columns_of(program), makes_pictures(program)),
        told_(list.cases.size()) {}

  Outputs all() {
    CaseLoop loop;
    loop.count = list_.cases.size();
    loop.memory_bytes = program_.images.memory.count;
    loop.size = [this](size_t i) { return size(i); };
    loop.work = [this](size_t i, const Context& context) { work(i, context); };
    loop.failed = [this](size_t i, const std::exception_ptr& error) { return fail(i, error); };
    const auto start = Clock::now();
    // A run that was killed at its table left a file though no case is missing.
    remove_leftovers_once(program_.images.output_dir, context_);
    try {
      run_case_loop(loop, context_);
    } catch (...) {
      try {
        table_.finish();
      } catch (const OutputError& second) {
        context_.warn(second.what());
      }
      throw;
    }
    table_.finish();
    context_.throw_if_stopped("stopped after " + std::to_string(over_) + " of " +
                              std::to_string(loop.count) +
                              " cases; --skip-existing goes on from there");
    return outcome(seconds_since(start));
  }

 private:
  enum Ending { kOk, kRejected, kFailed, kSkipped, kEndings };
  static constexpr const char* kWords[] = {"ok", "rejected", larch::detail::kFailed, "skipped"};

  /// By the header alone, without warnings: reading says them.
  CaseSize size(size_t i) const {
    ReadOptions read = options_of_case(list_.cases[i], list_.read);
    read.warn = nullptr;
    const ImageInfo info = probe_image(list_.cases[i].image, read);
    CaseSize size{info.grid.voxels() * std::max(1, info.frames)};
    size.bytes = static_cast<int64_t>(program_.bytes_per_voxel * static_cast<double>(size.voxels));
    if (program_.bytes_per_voxel > 0) return size;
    Context quiet = context_;
    quiet.log_sink = {};
    size.bytes = program_.look(list_.job(i, quiet)).bytes;
    return size;
  }

  void work(size_t i, const Context& context) {
    const auto start = Clock::now();
    const larch::detail::LogScope of_case({list_.cases[i].id});
    const CaseFiles& files = list_.files[i];
    const larch::detail::ResultsBasis basis = run_.basis(list_.inputs(i));
    EarlierCase earlier = larch::detail::look_at_case(files, basis, run_.digests);
    if (earlier.state == EarlierCase::State::kCompute) {
      double waiting = 0;
      Context timed = context;
      timed.wait_for_turn = [&] {
        const Stopwatch watch(waiting);
        return context.turn();
      };
      Outputs outputs = process(program_, list_.job(i, timed));
      outputs.step("waiting", waiting);
      const double seconds = seconds_since(start);
      const CaseCells cells = cells_of(i, outputs, seconds);
      Context as_one = context_;
      as_one.device = context.device;
      try {
        larch::detail::write_case(files, earlier,
                                  {basis, as_one, outputs, start, run_.digests, &cells}, context);
        const Ending ending = outputs.status_word == "rejected" ? kRejected : kOk;
        over(i, ending);
        return tell(i, ending, seconds, outputs);
      } catch (const larch::detail::OutputAppeared&) {
        earlier = larch::detail::look_at_case(files, basis, run_.digests);
        if (earlier.state != EarlierCase::State::kSkip) throw;
        context_.info("'" + files.record +
                      "' was written by another run meanwhile, from the same inputs; it stays");
      }
    }
    if (earlier.state == EarlierCase::State::kOther) throw OutputError(earlier.what);
    const Ending ending = earlier.is_rejected ? kRejected : kSkipped;
    over(i, ending);
    tell(i, ending, seconds_since(start), outputs_of(i, earlier));
  }

  /// The results of an earlier run, as far as its record tells them.
  Outputs outputs_of(size_t i, const EarlierCase& earlier) const {
    Outputs outputs;
    outputs.status_reason = earlier.reason;
    for (const CaseOutput& file : list_.files[i].outputs) outputs.add(file.path, {});
    const Json metrics = earlier.larch->value("Metrics", Json::object());
    for (const auto& [name, value] : metrics.items()) {
      outputs.metrics.push_back({name, value.dump()});
    }
    const Json notes = earlier.larch->value("Notes", Json::array());
    for (const Json& note : notes) {
      if (note.is_string()) outputs.note(note.get<std::string>());
    }
    return outputs;
  }

  static int code_of(const Outputs& outputs) {
    return outputs.status_word == "done"
               ? 0
               : static_cast<int>(outputs.rejected_code.value_or(ExitCode::kRejected));
  }

  /// Keeps a case for the report, and says its end in a log for programs; people see the progress.
  void tell(size_t i, Ending ending, double seconds, const Outputs& outputs) {
    const std::string& id = list_.cases[i].id;
    const bool is_bad = ending == kRejected || ending == kFailed;
    const int code =
        is_bad ? static_cast<int>(outputs.rejected_code.value_or(ExitCode::kRejected)) : 0;
    if (run_.line.common.log_format == larch::detail::LogFormat::kJson && ending != kFailed) {
      const larch::detail::LogScope at_end({id, code});
      context_.info("case '" + id + "' " + kWords[ending]);
    }
    if (run_.line.common.report.empty()) return;
    told_[i] = {{"id", id}, {"status", kWords[ending]}, {"code", code}};
    if (!outputs.status_reason.empty()) told_[i]["reason"] = outputs.status_reason;
    told_[i]["seconds"] = std::round(seconds * 1e3) / 1e3;
    larch::detail::add_results(outputs, "", told_[i]);
  }

  CaseCells cells_of(size_t i, const Outputs& outputs, double seconds) const {
    const bool is_done = outputs.status_word == "done";
    CaseCells cells{{"id", list_.cases[i].id},
                    {"status", is_done ? "ok" : outputs.status_word},
                    {"message", outputs.status_reason},
                    {"seconds", formatted("%.3f", seconds)},
                    {"code", std::to_string(code_of(outputs))}};
    for (const std::string& name : program_.figures) cells.emplace_back(name, outputs.figure(name));
    // Not all lists have references: the column stands behind those of all runs.
    if (!outputs.figure("dice").empty()) cells.emplace_back("dice", outputs.figure("dice"));
    for (const std::string& column : program_.images.carry) {
      cells.emplace_back(column, list_.cases[i].further.at(column));
    }
    for (const ResultStructure& one : outputs.structures) {
      if (one.volume_ml) cells.emplace_back(kVolume + one.name, figure_text(*one.volume_ml));
    }
    return cells;
  }

  bool fail(size_t i, const std::exception_ptr& error) {
    const larch::detail::Failure failure = larch::detail::failure_of(error);
    const std::string message =
        (failure.expected ? "" : "unexpected: ") + larch::detail::in_one_line(failure);
    if (failure.code == ExitCode::kMemory) ++lacked_memory_;
    const std::string& id = list_.cases[i].id;
    Outputs outputs;
    outputs.status(larch::detail::kFailed, message, failure.code);
    const larch::detail::LogScope at_end({id, code_of(outputs)});
    context_.log(LogLevel::kError, "case '" + id + "' failed: " + message);
    const CaseCells cells = cells_of(i, outputs, 0);
    // No case of a plain run had a result at the start: another run has just made it.
    const larch::detail::CommonFlags& flags = run_.line.common;
    const bool has_result = !flags.force && !flags.skip_existing && has_record_of_result(i);
    try {
      if (!has_result) {
        larch::detail::write_failure(failed_record(i), run_.basis(list_.inputs(i)), message, cells);
      }
    } catch (const Error& second) {
      context_.warn(second.what());
      table_.add_failure(cells);
    }
    tell(i, kFailed, 0, outputs);
    count(i, kFailed);
    return true;
  }

  std::string failed_record(size_t i) const {
    return larch::detail::failed_record_name(program_.images.output_dir, list_.cases[i].id);
  }

  bool has_record_of_result(size_t i) const {
    const auto larch = larch::detail::read_record(list_.files[i].record);
    return larch && (*larch)["Status"] != larch::detail::kWriting;
  }

  /// A case has its result.
  void over(size_t i, Ending ending) {
    larch::detail::remove_failure(failed_record(i));
    count(i, ending);
  }

  void count(size_t i, Ending ending) {
    ++counts_[ending];
    const size_t done = ++over_;
    context_.progress(static_cast<double>(done) / static_cast<double>(list_.cases.size()),
                      "case '" + list_.cases[i].id + "' " + kWords[ending]);
    table_.write_now_and_then();
  }

  Outputs outcome(double seconds) const {
    const size_t all = list_.cases.size();
    Outputs outputs;
    outputs.metric("cases", static_cast<double>(all));
    for (int ending = 0; ending < kEndings; ++ending) {
      outputs.metric(kWords[ending], static_cast<double>(counts_[ending]));
    }
    outputs.metric("cases_per_second", static_cast<double>(all - counts_[kSkipped]) / seconds);
    outputs.report("cases", told_);
    outputs.step("cases", seconds);
    const size_t failed = counts_[kFailed], rejected = counts_[kRejected];
    if (failed + rejected == 0) return outputs;
    const std::string count = std::to_string(failed) + " of " + std::to_string(all);
    const std::string see = "; see '" + status_table(program_.images.output_dir) + "'";
    if (failed == lacked_memory_ && rejected == 0) {
      // The one failure that the same command can overcome, with more memory and --skip-existing.
      return outputs.status("rejected",
                            count + " cases failed for want of memory or threads, with " +
                                std::to_string(free_memory_bytes(Device::cpu())) + " bytes free" +
                                see,
                            ExitCode::kMemory);
    }
    const std::string and_rejected =
        rejected > 0 ? " and in " + std::to_string(rejected) + " " + program_.rejection : "";
    const auto code = failed > 0 ? std::optional(ExitCode::kRejected) : std::nullopt;
    return outputs.status("rejected", count + " cases failed" + and_rejected + see, code);
  }

  const ListedCases& list_;
  const detail::AnyCaseProgram& program_;
  const CheckedRun& run_;
  const Context& context_;
  StatusTable table_;
  std::vector<Json> told_;  // of each case, for the report
  std::atomic<size_t> over_{0}, lacked_memory_{0};
  std::atomic<size_t> counts_[kEndings] = {};
};

}  // namespace

Outputs process(const detail::AnyCaseProgram& program, const CaseJob& job) {
  const Images& images = program.images;
  // Frames of a sequence are worked on a part at a time.
  if (images.memory.count > 0 && !images.are_sequences) {
    ReadOptions read = job.read;
    read.warn = nullptr;  // the reading itself will say it
    const Grid grid = probe_image(job.row.image, read).grid;
    warn_of_memory(job.row.image, grid.voxels(), sizeof(float), images.memory.count, job.context());
  }
  Outputs outputs = program.process(job);
  const auto names = dicom_names(job.row.image, job.read, images.are_sequences);
  if (!names) return outputs;
  Json json{{"StudyInstanceUID", names->identity.study_uid},
            {"SeriesInstanceUID", names->series_uid},
            {"SOPInstanceUIDs", Json::array()}};
  if (images.identifiers) json["PatientID"] = names->identity.patient_id;
  for (const auto& one : names->instances) json["SOPInstanceUIDs"].push_back(one.instance_uid);
  return outputs.dicom(job.row.image, json);
}

void check_id(const std::string& id) {
  const bool bad = id.empty() || id.front() == '.' || id.find('/') != std::string::npos ||
                   std::any_of(id.begin(), id.end(), [](unsigned char c) { return c < 32; });
  if (bad) {
    throw InputError("the id '" + id +
                     "' cannot be a file name (it starts with a dot, or holds a slash or a control "
                     "character); give a column 'id' with other names");
  }
}

ListedCases::ListedCases(const detail::AnyCaseProgram& program, const CheckedRun& run,
                         const Context& whole)
    : read(program.images.read_options(whole)),
      columns(program.columns),
      about(about_of(run, program.images)) {
  const Images& images = program.images;
  CaseColumns wanted;
  wanted.files_exist = false;  // one that is missing is the failure of its case
  for (const CaseColumn& column : program.columns) {
    if (column.name != wanted.label) wanted.more.push_back(column);
  }
  if (!images.are_sequences) wanted.more.push_back({kSeriesColumn});
  cases = images.list.select(wanted, read, images.carry);
  for (Case& c : cases) {
    check_id(c.id);
    if (program.complete) program.complete(c);
    const std::vector<CaseOutput> outputs = images.files_of(c.id);
    files.push_back({larch::detail::case_record_name(images.output_dir, c.id), outputs,
                     images.companions(outputs)});
  }
  const std::set<std::string> all = check_names(*this, run, images.output_dir);
  check_carried(*this, program);
  for (size_t i = 0; program.check_names && i < cases.size(); ++i) {
    program.check_names(job(i, whole), all);
  }
  // All names are checked whatever the part, since runs over the others write into this folder.
  size_t kept = 0;
  for (size_t i = images.part[0] - 1; i < cases.size(); i += images.part[1], ++kept) {
    std::swap(cases[kept], cases[i]);
    std::swap(files[kept], files[i]);
  }
  cases.resize(kept);
  files.resize(kept);
  const larch::detail::CommonFlags& flags = run.line.common;
  if (!flags.force && !flags.skip_existing) require_free(files);
}

std::vector<RunInput> ListedCases::inputs(size_t i) const {
  std::vector<RunInput> inputs = image_inputs("input", cases[i]);
  const std::string series = options_of_case(cases[i], {}).series_uid;
  if (!series.empty()) inputs.push_back({kSeriesColumn, "", "", series});
  for (const CaseColumn& column : columns) {
    const std::string cell = cases[i].cell(column.name);
    if (cell.empty() || cell == "n/a") continue;
    if (column.is_reference && !why_missing(cell).empty()) continue;
    if (!column.is_file) {
      inputs.push_back({column.name, "", "", cell});
      continue;
    }
    for (RunInput& input : image_inputs(column.name, cell)) inputs.push_back(std::move(input));
  }
  return inputs;
}

Outputs run_listed_cases(const ListedCases& list, const detail::AnyCaseProgram& program,
                         const CheckedRun& run, const Context& context) {
  return ListRun(list, program, run, context).all();
}

}  // namespace larch::cases
