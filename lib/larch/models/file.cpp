// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "larch/files/atomic_file.h"
#include "larch/files/file.h"

namespace larch::models {
namespace {

void read_to(std::ifstream& in, std::string& bytes, size_t size) {
  const size_t start = bytes.size();
  bytes.resize(size);
  if (!in.read(bytes.data() + start, static_cast<std::streamsize>(size - start))) {
    throw InputError("it cannot be read; check its permissions");
  }
}

}  // namespace

Container read_container(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw InputError("there is no such file; check the name");
  }
  const auto size = static_cast<size_t>(std::filesystem::file_size(path, error));
  if (error) throw InputError("it cannot be read; check its permissions");
  std::ifstream in(path, std::ios::binary);
  std::string bytes;
  read_to(in, bytes, std::min(size, kBeginning));
  refuse_placeholder(path, bytes);
  check_header(bytes, size);
  read_to(in, bytes, size);
  return decode_container(bytes);
}

void write_container(const std::string& path, const Container& container) {
  const std::string bytes = encode_container(container);
  write_atomically(path, [&](const std::string& temporary) {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) {
      throw OutputError("cannot write '" + temporary +
                        "'; check the folder, its permissions and the disk");
    }
  });
}

void require_fingerprint(const std::string& of_checkpoint, const std::string& wanted) {
  if (of_checkpoint == wanted) return;
  throw InputError(
      "it was written with other settings or other training data; give the same ones, or delete it "
      "and train anew");
}

}  // namespace larch::models
