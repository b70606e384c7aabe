// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/components.h"

#include <algorithm>
#include <optional>

#include "larch/cases/images.h"
#include "larch/config/text.h"
#include "larch/core/error.h"

namespace larch::pipeline {
namespace {

constexpr int kMaximumColumns = 8;

/// Where a component lies: a file, and which of its volumes; or the file is a picture in colours.
struct Place {
  std::string path;
  std::optional<int> frame{};
  bool in_colours = false;
};

/// Returns the files of a case, in the order of their columns.
std::vector<std::string> files_of(const Case& c) {
  std::vector<std::string> files{c.image};
  const std::vector<CaseColumn> columns = component_columns();
  for (size_t k = 0; k < columns.size(); ++k) {
    const auto found = c.further.find(columns[k].name);
    if (found == c.further.end() || found->second.empty() || found->second == "n/a") continue;
    if (files.size() != k + 1) {
      throw InputError("the case '" + c.id + "' has '" + columns[k].name +
                       "' and no image in the column before");
    }
    files.push_back(found->second);
  }
  return files;
}

std::vector<Place> places_of(const Case& c, const std::vector<std::string>& names,
                             const ReadOptions& read) {
  const std::vector<std::string> files = files_of(c);
  if (names.empty()) {
    if (c.channels.size() <= 1 && files.size() == 1) return {{c.image}};
    if (c.channels.empty()) {
      throw InputError("the case '" + c.id + "' has " + std::to_string(files.size()) +
                       " components (" + config::join(files) + "), and one is taken");
    }
    throw UsageError("the data set has " + std::to_string(c.channels.size()) + " channels (" +
                     config::join(c.channels) +
                     "), and one is taken: choose it by name or number with --channel, or name "
                     "several in space/components");
  }
  for (const std::string& name : names) {
    if (name.empty() || std::count(names.begin(), names.end(), name) > 1) {
      throw UsageError("space/components: '" + name + "' is empty or there twice");
    }
  }
  if (names == std::vector<std::string>{"red", "green", "blue"} && files.size() == 1 &&
      c.channels.size() <= 1) {
    return {{c.image, {}, true}};
  }
  const bool in_one_file = files.size() == 1;
  size_t found = files.size();
  if (in_one_file) {
    if (read.frame) throw UsageError("--frame: the volumes of '" + c.image + "' are components");
    ReadOptions probe = read;
    probe.warn = nullptr;
    found = static_cast<size_t>(probe_image(c.image, probe).frames);
  }
  const std::vector<std::string>& known = c.channels.empty() ? names : c.channels;
  if (found != known.size()) {
    throw InputError("'" + c.image + "' has " + std::to_string(found) + " components; needed are " +
                     std::to_string(names.size()) + " components (" + config::join(names) +
                     "): volumes of one file, columns image, image2, ... of a list, or channels of "
                     "a data set");
  }
  std::vector<Place> places;
  for (const std::string& name : names) {
    const auto number = std::find(known.begin(), known.end(), name) - known.begin();
    if (static_cast<size_t>(number) == known.size()) {
      throw InputError("the data set has no channel '" + name + "'; it has " + config::join(known));
    }
    if (in_one_file) {
      places.push_back({c.image, static_cast<int>(number) + 1});
    } else {
      places.push_back({files[static_cast<size_t>(number)]});
    }
  }
  return places;
}

std::vector<Volume<float>> read_colours(const std::string& path, const ReadOptions& read) {
  const Grid grid = cases::probe_one_volume(path, read).grid;
  const RgbImage rgb = read_rgb(path);
  std::vector<Volume<float>> images(3, Volume<float>(grid));
  for (int64_t i = 0; i < 3 * grid.voxels(); ++i) {
    images[static_cast<size_t>(i % 3)][i / 3] = rgb.rgb[static_cast<size_t>(i)];
  }
  return images;
}

ReadOptions options_of(const Place& place, const Case& c, const ReadOptions& read) {
  ReadOptions options = cases::options_of_case(c, read);
  if (place.path != c.image) options.series_uid.clear();
  if (place.frame) options.frame = place.frame;
  return options;
}

}  // namespace

std::vector<CaseColumn> component_columns() {
  std::vector<CaseColumn> columns;
  for (int k = 2; k <= kMaximumColumns; ++k) columns.push_back({"image" + std::to_string(k), true});
  return columns;
}

std::vector<Volume<float>> read_components(const Case& c, const std::vector<std::string>& names,
                                           const ReadOptions& read) {
  std::vector<Volume<float>> images;
  for (const Place& place : places_of(c, names, read)) {
    if (place.in_colours) return read_colours(place.path, read);
    images.push_back(read_volume<float>(place.path, options_of(place, c, read)));
    cases::require_same_grid(place.path, images.back().grid(), c.image, images[0].grid());
  }
  return images;
}

Grid probe_components(const Case& c, const std::vector<std::string>& names,
                      const ReadOptions& read) {
  std::optional<Grid> first;
  for (const Place& place : places_of(c, names, read)) {
    const Grid grid = cases::probe_one_volume(place.path, options_of(place, c, read)).grid;
    if (!first) first = grid;
    cases::require_same_grid(place.path, grid, c.image, *first);
  }
  return *first;
}

}  // namespace larch::pipeline
