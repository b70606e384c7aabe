// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// JSON configurations of pbt-train and pbt-detect: what is accepted says the same when it is
// printed and read again.
#include "larch/config/config.h"
#include "larch/pbt/train_config.h"
#include "larch/pipeline/pbt_detection.h"
#include "tests/fuzz/fuzz.h"

namespace {

template <class T>
void read(const std::string& text) {
  using namespace larch;
  T value;
  const std::string source = "case.json";
  if (!fuzz::accepts({ExitCode::kUsage}, source,
                     [&] { config::from_json(value, config::parse(text, source), source); })) {
    return;
  }
  const std::string printed = config::to_json(value).dump();
  T again;
  config::from_json(again, config::parse(printed, source), source);
  fuzz::require(config::to_json(again).dump() == printed,
                "a configuration changed when it was printed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(larch::fuzz::text_of(data, size));
  read<larch::pbt::TrainConfig>(text);
  read<larch::pipeline::DetectConfig>(text);
  return 0;
}
