// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "larch/core/context.h"

namespace larch {

/// Returns a name that no file has: ".larch-<host>-<32 hexadecimal digits><ending>". The digits are
/// 128 random bits of the system, because processes in containers share folders and even their
/// process numbers. <host> tells which running kernel made the file (a digest of its boot id),
/// since a lock says something about a process of the same kernel only; it is "unknown" where the
/// kernel does not tell. Throws OutputError if the system has no random bits.
std::string new_temporary_name(std::string_view ending);

/// Tells whether a file name (without folder) is one of a temporary of Larch.
bool is_temporary_name(std::string_view name);

/// The temporaries of this process that are being written. The names of all files that a process
/// has written are kept, about 200 bytes each, because a signal handler may be reading one.
void remember_temporary(const std::string& path);
void forget_temporary(const std::string& path);
bool is_own_temporary(const std::string& path);

/// Unlinks every temporary that is remembered. For the end of a process that cannot unwind: calls
/// nothing that a signal handler may not call, from any thread and at any number.
void remove_own_temporaries() noexcept;

/// Temporaries that killed runs left in a folder.
struct Leftovers {
  std::vector<std::string> removed;   ///< paths of the temporaries that were removed
  std::vector<std::string> doubtful;  ///< old ones that may belong to another host, or stay
};

/// Removes the temporaries in `folder` whose writer is certainly gone: made under this kernel, not
/// touched for an hour, their lock free, and still the same file once the lock is taken. Younger
/// ones and those that are locked are in use and not named. Never throws: what cannot be looked at
/// or removed stays, and is named if it is old.
Leftovers remove_leftovers(const std::string& folder) noexcept;

/// The same, once for each folder in the life of the process, with one line of log for what was
/// removed and one for what was left.
void remove_leftovers_once(const std::string& folder, const Context& context);

}  // namespace larch
