// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "larch/core/device.h"

namespace larch::detail {

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
  Device device;
  std::string reason;  ///< "--device", "LARCH_DEVICE", "auto: this build has no CUDA code"
};

/// The flag > LARCH_DEVICE > auto; see choose_device for the errors. `cpu_alone`: what of the run
/// has no code for a card, or empty; then auto takes the CPU, and cuda is a DeviceError.
ChosenDevice choose_run_device(const std::string& flag, const std::string& cpu_alone = {});

}  // namespace larch::detail
