// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/device.h"

namespace larch {

/// Returns when all work of the queue that `device` names is done; at once on the CPU. Throws
/// DeviceError, which may be that of earlier work.
void wait_for(const Device& device);

/// A queue of work on a device of its own, for a thread that works beside others: work in one
/// stream is done in order, work in two streams at the same time. Give each thread a Context whose
/// device is `device()` of a stream of its own. What a buffer of one stream holds may be read in
/// another one as soon as the call that filled it has returned, if that call says that the work is
/// done then. On the CPU a stream is nothing at all.
class Stream {
 public:
  /// Throws DeviceError.
  explicit Stream(const Device& device);
  /// All buffers that were made on `device()` must be gone.
  ~Stream();  // NOLINT(bugprone-exception-escape)
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// The device, with its work going to this stream.
  const Device& device() const { return device_; }

 private:
  Device device_;
};

}  // namespace larch
