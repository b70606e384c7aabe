// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace larch {

/// Says what a process returns. Scripts and schedulers rely on these numbers.
enum class ExitCode : int {
  kDone = 0,           ///< also: skipped because of --skip-existing
  kBug = 1,            ///< unexpected exception
  kUsage = 2,          ///< flag, configuration, schema
  kInput = 3,          ///< missing, unreadable, wrong pixel type, grids differ
  kDevice = 4,         ///< not built, not present, CUDA failure
  kMemory = 5,         ///< host or device memory exhausted; the message gives needed and free bytes
  kOutput = 6,         ///< exists, not writable, disk full
  kRejected = 7,       ///< ran, but the result failed its own checks
  kInterrupted = 130,  ///< SIGINT after a checkpoint
  kTerminated = 143,   ///< SIGTERM after a checkpoint
};

/// Base of every error that Larch throws on purpose. `what()` is one sentence that names the file
/// or the setting, says what is wrong and what to do. Wrap a lower error with
/// std::throw_with_nested (or `rethrow_with` below); the app skeleton prints the chain as "caused
/// by:" lines.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

struct UsageError : Error {
  explicit UsageError(const std::string& m) : Error(ExitCode::kUsage, m) {}
};
struct InputError : Error {
  explicit InputError(const std::string& m) : Error(ExitCode::kInput, m) {}
};
struct DeviceError : Error {
  explicit DeviceError(const std::string& m) : Error(ExitCode::kDevice, m) {}
};
struct MemoryError : Error {
  explicit MemoryError(const std::string& m) : Error(ExitCode::kMemory, m) {}
};
struct OutputError : Error {
  explicit OutputError(const std::string& m) : Error(ExitCode::kOutput, m) {}
};
struct ResultError : Error {
  explicit ResultError(const std::string& m) : Error(ExitCode::kRejected, m) {}
};
/// The stop flag of the context was seen and a checkpoint written; carries 130 or 143.
struct Stopped : Error {
  explicit Stopped(const std::string& m, ExitCode code = ExitCode::kTerminated) : Error(code, m) {}
};

}  // namespace larch
