// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/outputs/outputs.h"

#include <nlohmann/json.hpp>

#include "larch/app/outputs/growing_output.h"

namespace larch {
namespace {

std::string dumped(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

Outputs& Outputs::add(const std::string& path, Writer writer) {
  if (!path.empty()) files.push_back({path, std::move(writer)});
  return *this;
}

Outputs& Outputs::add(const GrowingOutput& output) {
  if (output) files.push_back({output.file()->path(), {}, /*companion=*/false, output.file()});
  return *this;
}

Outputs& Outputs::add_companion(const std::string& path, Writer writer) {
  if (!path.empty()) files.push_back({path, std::move(writer), /*companion=*/true});
  return *this;
}

Outputs& Outputs::metric(const std::string& name, double value) {
  metrics.push_back({name, dumped(value)});
  return *this;
}

Outputs& Outputs::report(const std::string& key, const nlohmann::ordered_json& value) {
  reports.push_back({key, dumped(value)});
  return *this;
}

Outputs& Outputs::report_text(const std::string& key, const std::string& json_text) {
  return report(key, nlohmann::ordered_json::parse(json_text));
}

Outputs& Outputs::note(const std::string& text) {
  notes.push_back(text);
  return *this;
}

Outputs& Outputs::grid(const std::string& input_path, const std::string& text) {
  grids.push_back({input_path, text});
  return *this;
}

Outputs& Outputs::status(const std::string& word, const std::string& reason, ExitCode code) {
  status_word = word;
  status_reason = reason;
  rejected_code = code;
  return *this;
}

}  // namespace larch
