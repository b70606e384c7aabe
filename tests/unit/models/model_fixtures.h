// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/models/container.h"
#include "larch/models/model_file.h"
#include "larch/tree/check.h"
#include "tests/unit/folder.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::fixtures {

/// A small tree in which no member has the value it begins with.
inline pbt::Model full_model(uint64_t seed = 3) {
  RandomTree spec;
  spec.depth = 2;
  spec.weaks = 3;
  spec.features = 24;
  spec.stop = 0;
  pbt::Model model = random_model(seed, spec);
  model.info.tool_version = "0.1.0";
  model.info.class_name = "left kidney, \"Niere\" \xc3\xa9";
  model.info.class_value = 7;
  model.info.training_config_json = R"({"tree":{"depth":6,"worst_error":0.45},"b":[1,2.5]})";
  model.info.volume_digests = {"00ff", "aa11"};
  model.info.seed = UINT64_MAX;
  model.info.validation = {{"log_loss", 0.1}, {"auc", 1.0 / 3}};
  model.history = {{0, 100, 40, 60, {0.25, 1.0 / 7}}, {1, 5, 2, 3, {}}};
  model.space.spacing_mm = {0.1, 1.0 / 3, 2};
  model.space.intensity.window_low = -1024.125;
  model.padding = image::Padding::kZero;
  model.prior = tree::PriorKind::kValue;
  model.prior_value = 0.016853932584269662;
  model.self_tests = tree::make_self_tests(model, model.features.size(), seed);
  return model;
}

/// The file of a model.
inline std::string bytes_of(const pbt::Model& model) {
  return models::encode_container(models::encode_model(model));
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}
inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The model of a file with these bytes.
inline pbt::Model model_of(const std::string& bytes) {
  const test::Folder folder;
  write_bytes(folder / "model", bytes);
  return models::read_model<pbt::Model>(folder / "model");
}

/// What reading these bytes complains about; "" if it does not.
inline std::string message_of(const std::string& bytes) {
  try {
    model_of(bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// The file of a model after `edit` has changed its sections; the digests are right again.
template <class F>
std::string edited(const pbt::Model& model, F&& edit) {
  models::Container container = models::encode_model(model);
  edit(container);
  return models::encode_container(container);
}

/// What `read(path)` makes of a file with these bytes.
template <class F>
auto reading(const std::string& bytes, F&& read) {
  const test::Folder folder;
  write_bytes(folder / "file", bytes);
  return read(folder / "file");
}

/// A file with a byte changed or cut off at any of 150 places is refused, and one that is too long.
template <class F>
void require_refusal_of_damage(const std::string& bytes, F&& read) {
  for (size_t i = 0; i < bytes.size(); i += 1 + bytes.size() / 150) {
    CAPTURE(i);
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    CHECK_THROWS_AS(reading(damaged, read), InputError);
    CHECK_THROWS_AS(reading(bytes.substr(0, i), read), InputError);
  }
  CHECK_THROWS_AS(reading(bytes + "x", read), InputError);
}

/// How many files are read, and how many refused with InputError, when a byte at any of about
/// `places` places of a section is changed under right digests.
struct DamageCount {
  size_t read = 0, refused = 0;
};
template <class F>
DamageCount count_damage(const models::Container& original,
                         std::initializer_list<const char*> names, size_t places, F&& read) {
  DamageCount count;
  for (const char* name : names) {
    CAPTURE(name);
    const size_t size = original.at(name).bytes.size();
    for (size_t i = 0; i < size; i += 1 + size / places) {
      for (const int change : {0x01, 0x80, 0xff}) {
        models::Container damaged = original;
        char& byte = damaged.sections[name].bytes[i];
        byte = static_cast<char>(byte ^ change);
        try {
          reading(models::encode_container(damaged), read);
          ++count.read;
        } catch (const InputError&) {
          ++count.refused;
        }
      }
    }
  }
  return count;
}

/// Overwrites `count` bytes with a little-endian number.
inline void put(std::string& bytes, size_t at, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) {
    bytes.at(at + static_cast<size_t>(i)) = static_cast<char>(value >> 8 * i);
  }
}
inline uint64_t get(const std::string& bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value |= uint64_t{static_cast<unsigned char>(bytes.at(at + i))} << 8 * i;
  }
  return value;
}

}  // namespace larch::fixtures
