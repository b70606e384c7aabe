// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "larch/core/device.h"

namespace larch::detail {

/// From now on the first SIGINT or SIGTERM sets the flag to 130 or 143. A second one ends the
/// process at once, and so does a timer when the process has not ended 8 seconds after the first:
/// some libraries cannot be interrupted, and schedulers kill what does not end. Ending at once
/// removes the temporary files; it waits up to a second for outputs that just get their names.
/// SIGXFSZ (ulimit -f) and SIGPIPE become ordinary write errors.
const std::atomic<int>* catch_signals();

/// While one lives the outputs of a run get their names, which is not to be torn in two.
class Committing {
 public:
  /// Does not return when the process is already being ended.
  Committing();
  ~Committing();
  Committing(const Committing&) = delete;
  Committing& operator=(const Committing&) = delete;
};

/// Lets std::terminate remove the temporary files, say what was thrown and end the process with the
/// exit code of that exception, 5 for memory and threads. Not a way to handle errors: for what a
/// library throws where nobody can catch it.
void catch_terminate();

/// The value of an environment variable; null if it is not set or empty.
const char* variable(const char* name);

/// The flag > LARCH_THREADS > SLURM_CPUS_PER_TASK > the processors this process may use. Throws
/// UsageError if LARCH_THREADS is not a number from 1 to 4096; what Slurm sets is taken if it is
/// one.
int choose_threads(const std::optional<int>& flag);

/// Opens those of the descriptors 0 to 2 that are closed, on /dev/null: the first file that a run
/// opens would get the number, and what is printed or logged would be written into it.
void open_standard_streams();

/// Takes what a process under ulimit -v must have before others take it: the stack of the main
/// thread, which ends the process if it cannot grow; and keeps the allocator from reserving address
/// space for each thread. To be called before threads are started.
void prepare_for_limits();

struct ChosenDevice {
  Device device{};
  std::string reason{};  ///< "--device", "LARCH_DEVICE", "auto: this build has no CUDA code"
  std::vector<Device> more_devices{};  ///< the other cards, of cuda:all
};

/// Returns the flag > LARCH_DEVICE > auto; see choose_device for the errors. `cpu_alone`: what of
/// the run has no code for a card, or empty; then auto takes the CPU, and cuda is a DeviceError.
ChosenDevice choose_run_device(const std::string& flag, const std::string& cpu_alone = {});

}  // namespace larch::detail
