// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/case_program.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "larch/app/console.h"
#include "larch/app/failures.h"
#include "larch/cases/listed_cases.h"
#include "larch/core/error.h"
#include "larch/files/atomic_file.h"

namespace larch::cases {
namespace {

using larch::detail::CheckedRun;

/// The one image, whose inputs and outputs are those of the flags.
struct OneCase {
  const Case row;
  const std::vector<CaseOutput> files;
  const ReadOptions read;
  const RunAbout about;
  const CaseJob job;

  OneCase(const OneCase&) = delete;  // the job refers to the other members
  OneCase& operator=(const OneCase&) = delete;
  /// Checks its names.
  OneCase(const detail::AnyCaseProgram& program, const CheckedRun& run, const Context& context)
      : row{std::filesystem::path(program.images.input.path).filename().string(),
            program.images.input, ""},
        files(program.images.files()),
        read(program.images.read_options(context)),
        about(about_of(run, program.images)),
        job(row, files, read, context, about) {
    if (!program.check_names) return;
    std::set<std::string> names;
    for (const RunInput& input : run.basis().inputs) names.insert(resolved_name(input.path));
    for (const CaseOutput& file : files) names.insert(resolved_name(file.path));
    program.check_names(job, names);
  }
};

/// Looks at one case and adds it to the plan.
void add_case(const detail::AnyCaseProgram& program, const CaseJob& job, Plan& plan) {
  const CaseLook found = program.look(job);
  program.read_more(job);
  if (plan.table.empty()) {
    plan.table.push_back({"id"});
    for (const auto& [column, text] : found.cells) plan.table[0].push_back(column);
    plan.table[0].push_back("image");
  }
  plan.table.push_back({job.row.id});
  for (const auto& [column, text] : found.cells) plan.table.back().push_back(text);
  plan.table.back().push_back(job.row.image);
  plan.memory_bytes = std::max(plan.memory_bytes, found.bytes);
}

/// Tells whether nothing would be computed for a case, because an earlier run did it. Throws if
/// that is why the run would not end with 0.
bool is_over(const ListedCases& list, const CheckedRun& run, size_t i) {
  const EarlierCase earlier =
      larch::detail::look_at_case(list.files[i], run.basis(list.inputs(i)), run.digests);
  if (earlier.state == EarlierCase::State::kOther) throw OutputError(earlier.what);
  if (earlier.state != EarlierCase::State::kSkip) return false;
  if (earlier.is_rejected && run.program.reject_code() != ExitCode::kDone) {
    throw Error(ExitCode::kRejected, earlier.reason + " by an earlier run");
  }
  return true;
}

Plan plan_list(const detail::AnyCaseProgram& program, const CheckedRun& run,
               const Context& context) {
  const ListedCases list(program, run, context);
  Plan plan;
  bool lack_memory = true;
  for (size_t i = 0; i < list.cases.size(); ++i) {
    context.throw_if_stopped("stopped after " + std::to_string(i) + " of " +
                             std::to_string(list.cases.size()) + " cases were looked at");
    try {
      if (!is_over(list, run, i)) add_case(program, list.job(i, context), plan);
    } catch (const DeviceError&) {
      throw;
    } catch (...) {
      const larch::detail::Failure failure = larch::detail::failure_of(std::current_exception());
      plan.problems.push_back("case '" + list.cases[i].id + "': " + in_one_line(failure));
      lack_memory = lack_memory && failure.code == ExitCode::kMemory;
    }
  }
  plan.notes = program.images.list.notes();
  plan.notes.push_back(std::to_string(list.cases.size()) + " cases");
  if (!plan.problems.empty()) plan.code = lack_memory ? ExitCode::kMemory : ExitCode::kRejected;
  return plan;
}

}  // namespace

RunAbout about_of(const CheckedRun& run, const Images& images) {
  RunAbout about{run.program.info.name, images.is_list()};
  if (images.label_table) about.labels = read_label_table(images.label_table);
  return about;
}

CaseLook look_of(const Grid& grid) {
  return {{{"voxels", size_cell(grid)}, {"spacing_mm", spacing_cell(grid)}}};
}

CaseLook look_at_image(const CaseJob& job) {
  return look_of(probe_one_volume(job.row.image, job.read).grid);
}

Outputs detail::run_cases(const AnyCaseProgram& program, const CheckedRun& run, Context& context) {
  const Images& images = program.images;
  give_memory_back(images.memory.count);
  const auto start = std::chrono::steady_clock::now();
  const auto opened = [&] {
    std::vector<Device> devices = context.more_devices;
    if (!images.is_list()) devices.clear();
    devices.push_back(context.device);
    for (Context on = context; const Device& device : devices) {
      on.device = device;
      program.prepare(on);
      wait_for(device);  // cases work in streams of their own
    }
    return seconds_since(start);
  };
  if (images.is_list()) {
    const ListedCases list(program, run, context);
    const double opening = opened();
    return run_listed_cases(list, program, run, context).step("opening", opening);
  }
  const OneCase one(program, run, context);
  larch::detail::log_fields().case_id = companion_of(one.row.id, "");  // as in a list
  const double opening = opened();
  return process(program, one.job).step("opening", opening);
}

Plan detail::plan_cases(const AnyCaseProgram& program, const CheckedRun& run,
                        const Context& context) {
  program.prepare(context);
  if (program.images.is_list()) return plan_list(program, run, context);
  Plan plan;
  add_case(program, OneCase(program, run, context).job, plan);
  return plan;
}

}  // namespace larch::cases
