// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/pbt_file.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include "larch/core/error.h"
#include "larch/files/atomic_file.h"
#include "larch/models/pbt_codec.h"
#include "larch/tree/self_test.h"

namespace larch::models {
namespace {

std::string read_bytes(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw InputError("there is no such file; check the name");
  }
  std::ifstream in(path, std::ios::binary);
  std::string bytes(static_cast<size_t>(std::filesystem::file_size(path, error)), '\0');
  if (error || !in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    throw InputError("it cannot be read; check its permissions");
  }
  return bytes;
}

void write_bytes(const std::string& path, const std::string& bytes) {
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

/// Runs `read` and names the file in every error.
template <class F>
auto naming(const char* what, const std::string& path, F&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw InputError(std::string("cannot read the ") + what + " '" + path + "': " + error.what());
  }
}

}  // namespace

void write_model(const std::string& path, const pbt::Model& model) {
  write_bytes(path, encode_container(encode_model(model)));
}

pbt::Model read_model(const std::string& path) {
  return naming("model", path, [&] {
    std::optional<PartHeader> part;
    const Container container = decode_container(read_bytes(path));
    if ((container.content & kContentCheckpoint) != 0) {
      throw InputError("it is a checkpoint of an unfinished training; continue with --resume");
    }
    pbt::Model model = decode_model(container, &part);
    if (part) throw InputError("it is a checkpoint of an unfinished training");
    tree::run_self_tests(model, model.features.size());
    return model;
  });
}

void write_partial(const std::string& path, const pbt::PartialModel& partial,
                   const std::string& fingerprint) {
  const PartHeader part{partial.finished, fingerprint};
  write_bytes(path, encode_container(encode_model(partial.model, &part)));
}

pbt::PartialModel read_partial(const std::string& path, const std::string& fingerprint) {
  return naming("checkpoint", path, [&] {
    std::optional<PartHeader> part;
    pbt::PartialModel partial;
    const Container container = decode_container(read_bytes(path));
    partial.model = decode_model(container, &part);
    if (!part || (container.content & kContentCheckpoint) == 0) {
      throw InputError("it is a finished model, not a checkpoint; train without --resume");
    }
    if (part->fingerprint != fingerprint) {
      throw InputError(
          "it was written with other settings or other training data; give the same ones, or "
          "delete it and train anew");
    }
    check_partial(partial.model, part->finished);
    partial.finished = static_cast<size_t>(part->finished);
    return partial;
  });
}

}  // namespace larch::models
