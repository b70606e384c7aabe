// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/cases/images.h"
#include "larch/cases/listed_cases.h"
#include "larch/config/config.h"
#include "larch/config/json_text.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/io/dicom/dicom_writer.h"
#include "larch/io/image/image.h"
#include "larch/io/markups/markups.h"
#include "larch/pipeline/samples/samples.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the image of a case: a file, or the folder of a DICOM series.
std::string image_name(const std::string& format, int number) {
  return "images/" + sample_case_name(number) + (format == "dicom" ? "" : "." + format);
}

std::string label_name(const std::string& format, int number) {
  return "labels/" + sample_case_name(number) + "." + (format == "dicom" ? "nii.gz" : format);
}

std::string poses_name(int number) {
  return "poses/" + sample_case_name(number) + ".mrk.json";
}

/// The list of the cases [begin, end); `label`: the name of this column.
std::string list_of(const std::string& label, const std::string& format, int begin, int end,
                    bool has_poses = false) {
  std::string text = "image\t" + label + (has_poses ? "\tposes\n" : "\n");
  for (int i = begin; i < end; ++i) {
    text += image_name(format, i) + "\t" + label_name(format, i) +
            (has_poses ? "\t" + poses_name(i) + "\n" : "\n");
  }
  return text;
}

/// train.tsv, test.tsv if there are such cases, and labels.tsv.
void add_lists(int training, int test, const std::string& format, bool has_poses,
               const LabelTable& table, Outputs& outputs) {
  add_text("train.tsv", list_of("label", format, 0, training, has_poses), outputs);
  const int cases = training + test;
  if (test > 0) add_text("test.tsv", list_of("label", format, training, cases, has_poses), outputs);
  outputs.add("labels.tsv", [=](const std::string& path) { write_label_table(path, table); });
}

/// Returns a Decathlon dataset.json.
std::string dataset_json(const OrgansRequest& request) {
  Json json{{"name", "Larch samples"},
            {"description", "Procedural volumes with known truth"},
            {"tensorImageSize", request.config.size[2] == 1 ? "2D" : "3D"},
            {"modality", {{"0", "synthetic"}}},
            {"labels", {{"0", "background"}}},
            {"numTraining", request.training},
            {"numTest", request.test}};
  for (const LabelEntry& entry : phantom::organs_label_table()) {
    json["labels"][std::to_string(entry.value)] = entry.name;
  }
  json["training"] = json["test"] = Json::array();
  for (int i = 0; i < request.training + request.test; ++i) {
    const std::string image = "./" + image_name(request.format, i);
    if (i < request.training) {
      const std::string label = "./" + label_name(request.format, i);
      json["training"].push_back({{"image", image}, {"label", label}});
    } else {
      json["test"].push_back(image);
    }
  }
  return json.dump(2) + "\n";
}

/// The files of a series, one per slice. The text that the identifiers come from tells the series
/// apart from every other one.
void add_dicom_series(const OrgansRequest& request, int number, uint64_t seed,
                      const std::function<phantom::OrgansCase&()>& made, Outputs& outputs) {
  const std::string text = "make-samples " + std::to_string(seed) + " " + std::to_string(number) +
                           " " + detail::json_text(config::to_json(request.config));
  const DicomSeriesNames names{"Larch^Sample",
                               sample_case_name(number),
                               "make-samples, seed " + std::to_string(seed),
                               dicom_uid(text + " study"),
                               dicom_uid(text + " series"),
                               dicom_uid(text + " frame")};
  for (int slice = 0; slice < request.config.size[2]; ++slice) {
    const auto name = formatted("/%04d.dcm", slice + 1);
    outputs.add(image_name(request.format, number) + name, [=](const std::string& path) {
      write_dicom_slice(path, made().image, slice, names);
    });
  }
}

}  // namespace

void check(const OrgansRequest& request) {
  phantom::check(request.config);
  if (!request.is_dicom()) {
    require_image_extension("case." + request.format);
  } else if (phantom::is_left_handed(request.config)) {
    throw UsageError("axes '" + request.config.axes +
                     "' are left-handed, which a DICOM series cannot hold; turn one of them round, "
                     "or give another --format");
  }
}

void check(const HeadsRequest& request) {
  require_image_extension("case." + request.format);
}

void check(const PosesRequest& request) {
  phantom::check(request.config);
  require_image_extension("case." + request.format);
}

Outputs make_samples(const OrgansRequest& request, const Context& context) {
  const int cases = request.training + request.test, threads = context.threads;
  const LabelTable table = phantom::organs_label_table();
  Outputs outputs;
  for (int i = 0; i < cases; ++i) {
    const auto made =
        lazily<phantom::OrgansCase>([=, config = request.config, seed = context.seed] {
          return phantom::make_organs(config, seed, i, threads);
        });
    if (request.is_dicom()) {
      add_dicom_series(request, i, context.seed, made, outputs);
    } else {
      add_image(image_name(request.format, i), made, threads, outputs);
    }
    add_labels(label_name(request.format, i), made, table, threads, outputs);
  }
  add_lists(request.training, request.test, request.format, false, table, outputs);
  add_text("dataset.json", dataset_json(request), outputs);
  return outputs.metric("cases", cases);
}

Outputs make_samples(const HeadsRequest& request, const Context& context) {
  const int threads = context.threads;
  const LabelTable table = phantom::head_label_table();
  Outputs outputs;
  for (int i = 0; i < request.cases; ++i) {
    const auto made = lazily<phantom::HeadCase>([=, config = request.config, seed = context.seed] {
      return phantom::make_head(config, seed, i, threads);
    });
    add_image(image_name(request.format, i), made, threads, outputs);
    add_labels(label_name(request.format, i), made, table, threads, outputs);
  }
  add_text("cases.tsv", list_of("reference", request.format, 0, request.cases), outputs);
  outputs.add("labels.tsv", [=](const std::string& path) { write_label_table(path, table); });
  return outputs.metric("cases", request.cases);
}

Outputs make_samples(const PosesRequest& request, const Context& context) {
  const int cases = request.training + request.test, threads = context.threads;
  const phantom::PosesConfig& config = request.config;
  const LabelTable table = phantom::poses_label_table(config.structures);
  Outputs outputs;
  for (int i = 0; i < cases; ++i) {
    // Places are found before anything is made, so that a volume without room is told at once.
    std::vector<NamedPose> poses;
    for (const phantom::PlacedObject& object : phantom::place_objects(config, context.seed, i)) {
      if (object.label == 0) break;
      poses.push_back({table[static_cast<size_t>(object.label) - 1].name, object.pose});
    }
    const auto made = lazily<phantom::PosesCase>(
        [=, seed = context.seed] { return phantom::make_poses(config, seed, i, threads); });
    add_image(image_name(request.format, i), made, threads, outputs);
    outputs.add(poses_name(i), [=](const std::string& path) { write_poses(path, poses); });
    add_labels(label_name(request.format, i), made, table, threads, outputs);
  }
  add_lists(request.training, request.test, request.format, true, table, outputs);
  return outputs.metric("cases", cases);
}

Outputs make_samples(const ScenesRequest& request, const Context& context) {
  const int cases = request.training + request.test, threads = context.threads;
  const LabelTable table = phantom::scene_label_table();
  Outputs outputs;
  for (int i = 0; i < cases; ++i) {
    const auto made = lazily<phantom::Scene>(
        [=, seed = context.seed] { return phantom::make_scene(seed, i, threads); });
    outputs.add(image_name("png", i),
                [=](const std::string& path) { write_png(path, made().image); });
    add_labels(label_name("png", i), made, table, threads, outputs);
  }
  add_lists(request.training, request.test, "png", false, table, outputs);
  return outputs.metric("cases", cases);
}

std::string sample_case_name(int number) {
  return formatted("case_%03d", number);
}

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

/// Returns the files of a copy; returns its row of cases.tsv.
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
