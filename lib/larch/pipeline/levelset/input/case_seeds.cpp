// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/input/case_seeds.h"

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "larch/core/error.h"

namespace larch::pipeline {
namespace {

/// A column of spheres, which may be written as its flag is.
struct SphereColumn {
  const char *name, *flag;
  bool is_index;
};
constexpr SphereColumn kSphereColumns[] = {{"sphere_mm", "sphere-mm", false},
                                           {"sphere_index", "sphere-index", true}};

/// The cell of a case, without what stands for nothing.
std::string cell_of(const Case& c, const char* name) {
  const auto found = c.further.find(name);
  if (found == c.further.end() || found->second == "n/a") return "";
  return found->second;
}

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Calls f(part) for each part between separators.
template <class F>
void for_parts(std::string_view text, char separator, const F& f) {
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    f(without_blanks(text.substr(0, end)));
    if (end == text.size()) return;
    text.remove_prefix(end + 1);
  }
}

double number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    throw UsageError("'" + std::string(text) + "' is not a number");
  }
  return value;
}

std::vector<std::vector<double>> spheres_of(const std::string& cell, const SphereColumn& column) {
  std::vector<std::vector<double>> spheres;
  for_parts(cell, ';', [&](std::string_view sphere) {
    spheres.emplace_back();
    for_parts(sphere, ',',
              [&](std::string_view number) { spheres.back().push_back(number_of(number)); });
    check_sphere(spheres.back(), column.is_index);
  });
  return spheres;
}

}  // namespace

SegmentationSeeds seeds_of_case(SegmentationSeeds for_all, const Case& c) {
  SegmentationSeeds seeds = std::move(for_all);
  if (!c.label.empty()) seeds.init_labelmap = c.label;
  for (const SphereColumn& column : kSphereColumns) {
    auto& all = column.is_index ? seeds.sphere_index : seeds.sphere_mm;
    for (const char* name : {column.name, column.flag}) {
      const std::string cell = cell_of(c, name);
      if (cell.empty()) continue;
      try {
        for (auto& sphere : spheres_of(cell, column)) all.push_back(std::move(sphere));
      } catch (const UsageError& error) {
        throw InputError("case '" + c.id + "', column '" + name + "', '" + cell +
                         "': " + error.what() + "; several spheres are parted by semicolons");
      }
    }
  }
  return seeds;
}

}  // namespace larch::pipeline
