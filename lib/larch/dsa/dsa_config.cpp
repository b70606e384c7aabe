// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/dsa_config.h"

#include <charconv>
#include <string_view>

#include "larch/core/error.h"

namespace larch::dsa {
namespace {

constexpr int kMinimumBlock = 8, kMaximumBlock = 255;
constexpr size_t kMaximumPasses = 16;

[[noreturn]] void reject(const std::string& passes, const std::string& why) {
  throw UsageError("passes '" + passes + "': " + why +
                   "; write block/step of each pass, such as 64/64,64/32,48/16");
}

int number_of(std::string_view text, const std::string& passes) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    reject(passes, "'" + std::string(text) + "' is no whole number");
  }
  return value;
}

Pass pass_of(std::string_view text, const std::string& passes) {
  const size_t slash = text.find('/');
  Pass pass;
  pass.block = number_of(text.substr(0, slash), passes);
  pass.step =
      slash == std::string_view::npos ? pass.block : number_of(text.substr(slash + 1), passes);
  return pass;
}

void check_pass(const Pass& pass, const std::string& passes) {
  if (pass.block < kMinimumBlock || pass.block > kMaximumBlock) {
    reject(passes, "a block of " + std::to_string(pass.block) + " pixels is not between " +
                       std::to_string(kMinimumBlock) + " and " + std::to_string(kMaximumBlock));
  }
  if (pass.step < 1 || pass.step > pass.block) {
    reject(passes, "a step of " + std::to_string(pass.step) +
                       " pixels is not between 1 and the side of a block");
  }
}

}  // namespace

BorderField border_field_of(const DsaConfig& config, bool is_volume) {
  if (config.method == Method::kShift || config.method == Method::kNone) return BorderField::kClamp;
  if (config.literal) return BorderField::kZero;
  return is_volume ? BorderField::kClamp : BorderField::kLinear;
}

std::vector<Pass> passes_of(const DsaConfig& config, bool is_volume) {
  std::vector<Pass> passes;
  if (config.passes.empty()) {
    if (is_volume) return {{16, 16}};
    if (config.literal || config.method == Method::kFlex) return {{64, 64}};
    return {{64, 64}, {48, 24}};
  }
  std::string_view rest = config.passes;
  for (bool more = true; more;) {
    const size_t comma = rest.find(',');
    passes.push_back(pass_of(rest.substr(0, comma), config.passes));
    check_pass(passes.back(), config.passes);
    if (passes.size() > kMaximumPasses) reject(config.passes, "more than 16 passes");
    if (config.literal && passes.size() > 1) {
      reject(config.passes, "the literal method has one pass");
    }
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  return passes;
}

}  // namespace larch::dsa
