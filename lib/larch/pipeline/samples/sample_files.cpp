// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/samples/sample_files.h"

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/config/config.h"
#include "larch/config/json_text.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/dicom/dicom_write.h"
#include "larch/io/image/image.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// The image of a case below the folder: a file, or the folder of a DICOM series.
std::string image_name(const SampleRequest& request, int number) {
  return "images/" + sample_case_name(number) + (request.is_dicom() ? "" : "." + request.format);
}

std::string label_name(const SampleRequest& request, int number) {
  return "labels/" + sample_case_name(number) + "." +
         (request.is_dicom() ? "nii.gz" : request.format);
}

/// The folders of images and labels, and of each DICOM series.
std::vector<std::string> folders_of(const SampleRequest& request) {
  std::vector<std::string> folders{in_folder(request.folder, "images"),
                                   in_folder(request.folder, "labels")};
  for (int i = 0; request.is_dicom() && i < request.cases(); ++i) {
    folders.push_back(in_folder(request.folder, image_name(request, i)));
  }
  return folders;
}

/// Lists of the cases [begin, end): lines of a TSV, and objects of a Decathlon dataset.json.
std::string tsv(const SampleRequest& request, int begin, int end) {
  std::string text = "image\tlabel\n";
  for (int i = begin; i < end; ++i) {
    text += image_name(request, i) + "\t" + label_name(request, i) + "\n";
  }
  return text;
}

std::string dataset_json(const SampleRequest& request) {
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
  for (int i = 0; i < request.cases(); ++i) {
    const std::string image = "./" + image_name(request, i);
    if (i < request.training) {
      json["training"].push_back({{"image", image}, {"label", "./" + label_name(request, i)}});
    } else {
      json["test"].push_back(image);
    }
  }
  return json.dump(2) + "\n";
}

/// The files of a series, one per slice. The text that the identifiers come from tells the series
/// apart from every other one.
void add_dicom_series(const SampleRequest& request, int number, uint64_t seed,
                      const std::function<const Volume<int16_t>&()>& image, Outputs& outputs) {
  const std::string text = "make-samples " + std::to_string(seed) + " " + std::to_string(number) +
                           " " + detail::json_text(config::to_json(request.config));
  const DicomSeriesNames names{"Larch^Sample",
                               sample_case_name(number),
                               "make-samples, seed " + std::to_string(seed),
                               dicom_uid(text + " study"),
                               dicom_uid(text + " series"),
                               dicom_uid(text + " frame")};
  const std::string folder = in_folder(request.folder, image_name(request, number));
  for (int slice = 0; slice < request.config.size[2]; ++slice) {
    char name[32];
    std::snprintf(name, sizeof name, "/%04d.dcm", slice + 1);
    outputs.add(folder + name,
                [=](const std::string& path) { write_dicom_slice(path, image(), slice, names); });
  }
}

/// Files are made when they are written, one case at a time, so that memory holds only one.
void add_case(const SampleRequest& request, int number, const Context& context, Outputs& outputs) {
  const auto made = std::make_shared<phantom::OrgansCase>();
  const auto image = [=, config = request.config, seed = context.seed,
                      threads = context.threads]() -> const Volume<int16_t>& {
    if (made->image.empty()) *made = phantom::make_organs(config, seed, number, threads);
    return made->image;
  };
  if (request.is_dicom()) {
    add_dicom_series(request, number, context.seed, image, outputs);
  } else {
    outputs.add(in_folder(request.folder, image_name(request, number)),
                [image, threads = context.threads](const std::string& path) {
                  write_volume(path, image(), threads);
                });
  }
  outputs.add(in_folder(request.folder, label_name(request, number)),
              [made, image, threads = context.threads](const std::string& path) {
                image();
                write_labelmap(path, made->labels, phantom::organs_label_table(), threads);
                *made = {};
              });
}

}  // namespace

void check(const SampleRequest& request) {
  phantom::check(request.config);
  if (!request.is_dicom()) {
    require_image_extension("case." + request.format);
  } else if (phantom::is_left_handed(request.config)) {
    throw UsageError("axes '" + request.config.axes +
                     "' are left-handed, which a DICOM series cannot hold; turn one of them round, "
                     "or give another --format");
  }
}

Outputs make_samples(const SampleRequest& request, const Context& context) {
  const auto folders = make_folders(folders_of(request));
  const int cases = request.cases();
  Outputs outputs;
  for (int i = 0; i < cases; ++i) add_case(request, i, context, outputs);
  const auto add_text = [&](const std::string& name, const std::string& text) {
    // The writers hold the folders, so that these outlive the run.
    outputs.add(in_folder(request.folder, name),
                [text, folders](const std::string& path) { write_file(path, text); });
  };
  add_text("train.tsv", tsv(request, 0, request.training));
  if (request.test > 0) add_text("test.tsv", tsv(request, request.training, cases));
  add_text("dataset.json", dataset_json(request));
  outputs.add(in_folder(request.folder, "labels.tsv"), [](const std::string& path) {
    write_label_table(path, phantom::organs_label_table());
  });
  return outputs.metric("cases", cases);
}

std::string sample_case_name(int number) {
  char text[32];
  std::snprintf(text, sizeof text, "case_%03d", number);
  return text;
}

std::string in_folder(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

std::shared_ptr<void> make_folders(const std::vector<std::string>& folders) {
  const auto remove_empty = [folders](void*) {
    std::error_code ignored;
    for (auto it = folders.rbegin(); it != folders.rend(); ++it)
      std::filesystem::remove(*it, ignored);
  };
  std::shared_ptr<void> owner(nullptr, remove_empty);
  for (const std::string& folder : folders) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw OutputError("cannot make folder '" + folder + "': " + error.message());
  }
  return owner;
}

}  // namespace larch::pipeline
