// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <string>

#include "larch/models/json_values.h"
#include "larch/models/pbt_codec.h"
#include "larch/models/pbt_file.h"
#include "larch/pbt/train_config.h"

namespace larch::models {
namespace {

constexpr size_t kWidth = 96;
constexpr double kMassUnit = 0x1.0p-32;

/// One line, cut to the width.
[[gnu::format(printf, 1, 2)]] std::string line(const char* format, ...) {
  std::array<char, 256> buffer{};
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer.data(), buffer.size(), format, arguments);
  va_end(arguments);
  std::string text = buffer.data();
  if (text.size() > kWidth) text = text.substr(0, kWidth - 3) + "...";
  return text + "\n";
}

/// Phrases joined by ", ", broken into lines that begin with `indent` spaces.
std::string wrapped(const char* title, const std::vector<std::string>& phrases) {
  constexpr size_t kIndent = 14;
  std::string out = line("%-13s %s", title, phrases.empty() ? "none" : "");
  out.pop_back();
  size_t column = out.size();
  for (size_t i = 0; i < phrases.size(); ++i) {
    const std::string piece = phrases[i] + (i + 1 < phrases.size() ? ", " : "");
    if (column > kIndent && column + piece.size() > kWidth) {
      while (!out.empty() && out.back() == ' ') out.pop_back();
      out += "\n" + std::string(kIndent, ' ');
      column = kIndent;
    }
    out += piece.substr(0, kWidth - kIndent);
    column += piece.size();
  }
  return out + "\n";
}

std::string space_lines(const pbt::Model& model) {
  const image::ModelSpace& space = model.space;
  const image::IntensityRule& rule = space.intensity;
  std::string out = line("%-13s spacing %g x %g x %g mm, axes %s, beyond the border %s", "space",
                         space.spacing_mm.x, space.spacing_mm.y, space.spacing_mm.z,
                         enum_name(space.orientation).c_str(), enum_name(model.padding).c_str());
  if (rule.rule == image::IntensityKind::kWindow) {
    out += line("%-13s %g .. %g become 0 .. %d", "intensities", rule.window_low, rule.window_high,
                rule.steps);
  } else {
    out += line("%-13s percentiles %g .. %g of a volume become 0 .. %d", "intensities",
                rule.low_percentile, rule.high_percentile, rule.steps);
  }
  return out;
}

std::string feature_lines(const pbt::Model& model) {
  std::vector<std::string> channels, families;
  for (size_t c = 0; c < model.channels.size(); ++c) {
    size_t used = 0;
    for (const auto& feature : model.features) used += feature.channel == c;
    channels.push_back(enum_name(model.channels[c].kind) + " level " +
                       std::to_string(model.channels[c].level) + " (" + std::to_string(used) + ")");
  }
  std::map<features::HaarType, size_t> count;
  for (const auto& feature : model.features) ++count[feature.type];
  for (const auto& [type, used] : count) {
    families.push_back(std::string(features::to_string(type)) + " " + std::to_string(used));
  }
  return wrapped("channels", channels) + wrapped("features", families) +
         line("%-13s %zu features, reach %d voxels of their level", "", model.features.size(),
              model.reach());
}

std::string node_lines(const pbt::Model& model) {
  const std::vector<uint32_t> q = tree::node_probabilities(model);
  std::string out = line("%5s %5s %6s %6s %14s %14s %5s %8s  %s", "node", "depth", "left", "right",
                         "positive mass", "negative mass", "weak", "q", "why");
  size_t tree = 0;
  for (size_t n = 0; n < model.nodes.size(); ++n) {
    if (model.trees() > 1 && tree < model.trees() && n == model.roots[tree]) {
      out += line("tree %zu", ++tree);
    }
    const pbt::Node& node = model.nodes[n];
    const std::string left = node.is_leaf() ? "-" : std::to_string(node.left);
    const std::string right = node.is_leaf() ? "-" : std::to_string(node.right);
    out += line("%5zu %5d %6s %6s %14.1f %14.1f %5u %8.5f  %s", n, node.depth, left.c_str(),
                right.c_str(), static_cast<double>(node.mass_positive) * kMassUnit,
                static_cast<double>(node.mass_negative) * kMassUnit, node.n_weak, q[n] * 0x1.0p-30,
                to_string(node.reason));
  }
  return out;
}

/// "tree/depth 6" for every number and word of the configuration.
void settings(const Json& json, const std::string& path, std::vector<std::string>& out) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      settings(value, path.empty() ? key : path + "/" + key, out);
    }
  } else {
    out.push_back(path + " " + (json.is_string() ? json.get<std::string>() : json.dump()));
  }
}

}  // namespace

std::string describe_model(const pbt::Model& model) {
  pbt::check_model(model);
  const pbt::ModelInfo& info = model.info;
  const std::string kind = model.trees() > 1
                               ? std::to_string(model.trees()) + " probabilistic boosting trees"
                               : "probabilistic boosting tree";
  std::string out = line("%-13s %s, format %d.%d, written by Larch %s", "model", kind.c_str(),
                         kMajorVersion, kMinorVersion, info.tool_version.c_str());
  out += line("%-13s %s, label value %d", "class", info.class_name.c_str(), info.class_value);
  out += space_lines(model) + feature_lines(model);
  out += line("%-13s %zu nodes, depth %d, %zu weak classifiers, %zu self-test vectors", "tree",
              model.nodes.size(), model.depth(), model.weaks.size(), model.self_tests.size());
  out += line("%-13s e1 %g, e2 %g, prior %s, smoothing %g", "evaluation", model.e1, model.e2,
              model.prior == pbt::PriorKind::kValue ? std::to_string(model.prior_value).c_str()
                                                    : enum_name(model.prior).c_str(),
              model.smoothing);
  std::vector<std::string> validation, configured;
  for (const auto& [name, value] : info.validation) {
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), " %.6g", value);
    validation.push_back(name + number.data());
  }
  out += wrapped("validation", validation);
  out += line("%-13s %zu volumes, seed %llu", "trained on", info.volume_digests.size(),
              static_cast<unsigned long long>(info.seed));
  if (!info.training_config_json.empty()) {
    settings(parse_json(info.training_config_json, "the training configuration"), "", configured);
  }
  out += wrapped("settings", configured);
  return out + "\n" + node_lines(model);
}

}  // namespace larch::models
