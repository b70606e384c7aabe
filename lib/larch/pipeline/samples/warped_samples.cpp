// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "larch/cases/images.h"
#include "larch/cases/listed_cases.h"
#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/pipeline/samples/sample_files.h"
#include "larch/pipeline/samples/samples.h"

namespace larch::pipeline {
namespace {

/// A copy that is made of an input.
struct Copy {
  std::string id;
  int number = 0;
  Case input;
};

/// Throws InputError by the headers, before voxels are read.
void require_volume_with_labels(const Case& input, const ReadOptions& read) {
  const Grid grid = cases::probe_one_volume(input.image, read).grid;
  const Grid of_labels = cases::probe_one_volume(input.label, read).grid;
  cases::require_same_grid(input.image, grid, input.label, of_labels);
  if (std::min({grid.size.x, grid.size.y, grid.size.z}) < 2) {
    throw InputError("'" + input.image + "' has " + describe(grid) +
                     "; give a volume of at least 2 voxels along each axis");
  }
}

/// Tells how a copy was made; README.md of lib/larch/phantom has the formulas.
std::string truth_text(const Copy& copy, const phantom::WarpedCase& made,
                       const phantom::WarpedConfig& config, uint64_t seed) {
  nlohmann::ordered_json matrix;
  for (int row = 0; row < 3; ++row) {
    const auto& m = made.world_from_input.m[row];
    matrix.push_back({m[0], m[1], m[2], made.translation_mm[row]});
  }
  matrix.push_back({0, 0, 0, 1});
  const nlohmann::ordered_json json{
      {"about",
       "place p of the copy shows place inverse(world_from_input) (p + d(p)) of the input, with "
       "displacements d, which are 0 where field_mm is; LPS mm"},
      {"input", copy.input.id},
      {"seed", seed},
      {"number", copy.number},
      {"world_from_input", matrix},
      {"field_stream", made.field_stream},
      {"gain", made.gain},
      {"offset", made.offset},
      {"settings", config::to_json(config)}};
  return json.dump(2) + "\n";
}

/// The files of a copy; returns its row of cases.tsv.
std::string add_copy(const WarpedRequest& request, const Copy& copy, const ReadOptions& read,
                     const Context& context, Outputs& outputs) {
  const int threads = context.threads;
  const auto made = lazily<phantom::WarpedCase>([=, config = request.config, seed = context.seed] {
    const auto image = read_volume<float>(copy.input.image, read);
    const LabelVolume labels = read_labels(copy.input.label, label_options(read, image.grid()));
    return phantom::make_warped(image, labels, config, seed, copy.number, threads);
  });
  const std::string image = "images/" + copy.id + "." + request.format;
  const std::string label = "labels/" + copy.id + "." + request.format;
  const std::string truth = "truth/" + copy.id + ".json";
  add_image(image, made, threads, outputs);
  outputs.add(truth, [=, config = request.config, seed = context.seed](const std::string& path) {
    write_file(path, truth_text(copy, made(), config, seed));
  });
  add_labels(label, made, {}, threads, outputs);
  return copy.id + "\t" + image + "\t" + label + "\t" + truth + "\t" + copy.input.id + "\n";
}

}  // namespace

void check(const WarpedRequest& request) {
  phantom::check(request.config);
  require_image_extension("case." + request.format);
}

Outputs make_samples(const WarpedRequest& request, const Context& context) {
  const ReadOptions read = cases::Reading{}.read_options(context);
  for (const Case& input : request.inputs) {
    if (!input.id.empty()) cases::check_id(input.id);
    require_volume_with_labels(input, read);
  }
  Outputs outputs;
  std::string list = "id\timage\tlabel\ttruth\tgroup\n";
  int number = 0;
  for (const Case& input : request.inputs) {
    for (int k = 0; k < request.copies; ++k, ++number) {
      const std::string id = input.id.empty()      ? sample_case_name(number)
                             : request.copies == 1 ? input.id
                                                   : input.id + "_" + std::to_string(k);
      list += add_copy(request, {id, number, input}, read, context, outputs);
    }
  }
  add_text("cases.tsv", list, outputs);
  return outputs.metric("cases", number);
}

}  // namespace larch::pipeline
