// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

#include "larch/core/error.h"
#include "larch/data/grid.h"
#include "larch/io/dicom/dicom_parser.h"

/// What one execution of a fuzz target gets; the same function runs under libFuzzer (scripts/fuzz)
/// and, over the files of tests/fuzz/seeds, as a plain test (replay.cpp).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace larch::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the process with a message: what libFuzzer counts as a finding.
[[noreturn]] void finding(const std::string& what);

inline void require(bool holds, const char* what) {
  if (!holds) finding(what);
}

/// A folder of this process's own below $TMPDIR, removed at its end. scripts/fuzz puts it into
/// memory.
const std::string& folder();

/// Writes `bytes` to folder()/name and returns the path.
std::string file_of(const std::string& name, std::string_view bytes);

/// A finding unless an error's code is one of `codes` and its message names `subject`.
void require_expected(const Error& error, std::initializer_list<ExitCode> codes,
                      const std::string& subject);

/// Runs `read`; true if it returned, false if it threw an Error with one of `codes` that names
/// `subject`. Everything else is a finding, an exception of another kind too.
template <class F>
bool accepts(std::initializer_list<ExitCode> codes, const std::string& subject, F&& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    require_expected(error, codes, subject);
  }
  return false;
}

/// A grid as read_volume promises it: sizes and spacings positive, everything finite, corners too.
void require_sound(const Grid& grid);
/// Grids that agree but for the single precision of a NIfTI header.
void require_close(const Grid& a, const Grid& b);

/// Probes and reads folder()/name in every way that the programs do, checks what was read and
/// writes it back. Messages have to name `subject`. The target of every image format.
void read_image_file(const std::string& name, const std::string& subject);
/// The same for a file with these bytes.
void read_image_bytes(const std::string& name, std::string_view bytes);

/// Reads a file with these bytes as a surface. What is accepted has finite vertices, and triangles
/// of these alone, and comes back when it is written. The target of every format of meshes.
void read_mesh_bytes(const std::string& name, std::string_view bytes);

/// Decodes a codestream as a frame of a DICOM file whose header agrees with its own, with this
/// transfer syntax. What is accepted must have its size, and the same samples again.
void decode_codestream(std::string_view bytes, io::TransferSyntax syntax);

/// Takes numbers from the front of the input; zeros when it is used up.
class Source {
 public:
  Source(const uint8_t* data, size_t size) : left_(text_of(data, size)) {}
  template <class T>
  T take() {
    T value{};
    const size_t bytes = left_.size() < sizeof value ? left_.size() : sizeof value;
    if (bytes > 0) std::memcpy(&value, left_.data(), bytes);
    left_.remove_prefix(bytes);
    return value;
  }
  /// The next `most` bytes, or what is left.
  std::string_view bytes(size_t most) {
    const std::string_view found = left_.substr(0, most);
    left_.remove_prefix(found.size());
    return found;
  }
  bool empty() const { return left_.empty(); }

 private:
  std::string_view left_;
};

}  // namespace larch::fuzz
