// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/plan_cases.h"

#include <exception>
#include <string>

#include "larch/app/failures.h"
#include "larch/core/error.h"

namespace larch::cases {
namespace {

/// Whether nothing would be computed for a case, because an earlier run did it. Throws if that is
/// why the case would fail or be rejected.
bool is_over(const CaseRun& run, const Case& c) {
  if (!run.folder) return false;
  const EarlierOutputs earlier = earlier_of(run, c);
  if (earlier.state == EarlierOutputs::State::kOther) throw OutputError(earlier.what);
  if (earlier.state != EarlierOutputs::State::kSkip) return false;
  if (earlier.is_rejected) throw Error(ExitCode::kRejected, earlier.reason + " by an earlier run");
  return true;
}

/// Takes over why a case would fail. Returns the exit code that the failure has by itself.
ExitCode add_problem(const std::string& id, const std::exception_ptr& error, Plan& plan) {
  const larch::detail::Failure failure = larch::detail::failure_of(error);
  std::string text = "case '" + id + "'";
  for (const std::string& part : failure.chain) text += ": " + part;
  plan.problems.push_back(text);
  return failure.code;
}

}  // namespace

Plan plan_cases(const CaseRun& run, const std::function<void(size_t, Plan&)>& look,
                const Context& context) {
  check_cases(run);
  Plan plan;
  ExitCode first = ExitCode::kDone;
  bool lack_memory = true;
  for (size_t i = 0; i < run.cases.size(); ++i) {
    const Case& c = run.cases[i];
    if (context.stop_requested()) {
      throw Stopped("stopped after " + std::to_string(i) + " of " +
                        std::to_string(run.cases.size()) + " cases were looked at",
                    static_cast<ExitCode>(context.stop->load()));
    }
    try {
      if (!is_over(run, c)) look(i, plan);
    } catch (const DeviceError&) {
      throw;
    } catch (...) {
      const ExitCode code = add_problem(c.id, std::current_exception(), plan);
      if (plan.problems.size() == 1) first = code;
      lack_memory = lack_memory && code == ExitCode::kMemory;
    }
  }
  if (plan.problems.empty()) return plan;
  // Cases with outputs of their own do not end the run when one of them fails.
  const ExitCode of_many = lack_memory ? ExitCode::kMemory : ExitCode::kRejected;
  plan.code = run.folder ? of_many : first;
  return plan;
}

}  // namespace larch::cases
