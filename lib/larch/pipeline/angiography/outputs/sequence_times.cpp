// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/outputs/sequence_times.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace larch::pipeline {

nlohmann::ordered_json to_json(const SequenceTimes& times, const Device& device) {
  nlohmann::ordered_json json;
  const auto add = [&](const char* name, double seconds) {
    json[name] = std::round(1e6 * seconds) / 1e3;
  };
  if (device.is_cuda()) add("device", times.device);
  add("open", times.open);
  add("read", times.read);
  if (device.is_cuda()) add("upload", times.upload);
  add("compute", times.compute);
  if (device.is_cuda()) add("download", times.download);
  add("score", times.score);
  add("write", times.write);
  add("streaming", times.streaming);
  add("waited_for_reading", times.waited_for_reading);
  add("waited_for_writing", times.waited_for_writing);
  return json;
}

}  // namespace larch::pipeline
