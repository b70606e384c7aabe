// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/evaluation/pairs.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "larch/cases/dataset_json.h"
#include "larch/cases/images.h"
#include "larch/cases/listed_cases.h"
#include "larch/core/error.h"
#include "larch/files/file.h"

namespace larch::pipeline {
namespace {
namespace fs = std::filesystem;

using Endings = std::vector<std::vector<std::string>>;

/// Returns the endings of predictions. Those of a group are looked for only where the groups before
/// have none: a picture beside a volume is one to look at, and poses are written in both ways.
Endings endings_of(PredictionKind kind) {
  if (kind == PredictionKind::kPoses) return {{".poses.json"}, {".mrk.json"}, {".json"}};
  if (kind == PredictionKind::kMeshes) return {{".vtk", ".vtp", ".ply", ".stl", ".obj", ".gii"}};
  return {{".nii.gz", ".nii", ".seg.nrrd", ".nrrd", ".nhdr", ".mha", ".mhd", ".seg.dcm", ".dcm"},
          {".png", ".tif", ".tiff"}};
}

bool is_missing(const std::string& path) {
  std::error_code error;
  return fs::status(path, error).type() == fs::file_type::not_found;
}

/// Looks for the predictions of all cases, in the folder if there is one.
void find_predictions(const PairSource& source, Pairs& pairs) {
  for (Case& c : pairs.cases) {
    if (!source.folder.empty()) c.image = prediction_in(source.folder, c.id, source.kind);
    if (is_missing(c.image)) pairs.missing.insert(c.id);
  }
}

Pairs pairs_of_list(const PairSource& source) {
  CaseColumns columns{"prediction", "reference", /*label_required=*/true, /*files_exist=*/false};
  if (!source.folder.empty()) {
    const bool of_poses = source.kind == PredictionKind::kPoses;
    columns.image = "image";
    if (!read_table(source.list).has("reference")) columns.label = of_poses ? "poses" : "label";
    for (const char* passed_over : {"label", kSeriesColumn}) {
      if (columns.label != passed_over) columns.more.push_back({passed_over});
    }
  }
  return {read_case_list(source.list, columns), columns};
}

/// Returns the cases of a data set that have labels, without their predictions.
Pairs pairs_of_dataset(const std::string& path, DatasetPart part) {
  const fs::path folder = is_folder(path) ? fs::path(path) : fs::path(path).parent_path();
  const fs::path of_test = folder / "labelsTs";
  Pairs pairs;
  if (part == DatasetPart::kTest && !is_folder(of_test.string())) return pairs;
  const Dataset data = read_dataset(path, part);
  for (const DatasetCase& c : data.cases) {
    const std::string name = c.id + file_extension(c.images[0]);
    pairs.cases.push_back({c.id, "", c.label.empty() ? (of_test / name).string() : c.label});
  }
  for (const DatasetLabel& label : data.labels) {
    if (label.values.size() == 1) pairs.names[std::to_string(label.values[0])] = label.name;
  }
  pairs.note = std::to_string(pairs.cases.size()) + " " +
               (part == DatasetPart::kTest ? "test" : "training") + " cases of '" + path + "'";
  return pairs;
}

/// Adds the names that the table of labels beside the first prediction tells. They are for people
/// alone: a table that cannot be read has none.
void add_names(Pairs& pairs) {
  for (const Case& c : pairs.cases) {
    if (pairs.missing.contains(c.id)) continue;
    try {
      const std::string beside = cases::companion_of(c.image, ".tsv");
      if (!is_file(beside)) return;
      const Table table = read_table(beside);
      const auto index = std::ranges::find(table.columns, "index") - table.columns.begin();
      const auto name = std::ranges::find(table.columns, "name") - table.columns.begin();
      if (!table.has("index") || !table.has("name")) return;
      for (const Table::Row& row : table.rows) pairs.names[row.cells[index]] = row.cells[name];
    } catch (const InputError&) {  // NOLINT(bugprone-empty-catch): it is another table
    }
    return;
  }
}

}  // namespace

std::string prediction_in(const std::string& folder, const std::string& id, PredictionKind kind) {
  const Endings endings = endings_of(kind);
  cases::check_id(id);
  const std::string stem = (fs::path(folder) / id).string();
  for (const std::vector<std::string>& group : endings) {
    std::string found;
    for (const std::string& ending : group) {
      if (is_missing(stem + ending)) continue;
      if (!found.empty()) {
        throw InputError("case '" + id + "': '" + found + "' and '" + stem + ending +
                         "' may both be its prediction; leave one of them in the folder");
      }
      found = stem + ending;
    }
    if (!found.empty()) return found;
  }
  return stem + endings[0][0];
}

Pairs find_pairs(const PairSource& source) {
  Pairs pairs;
  if (!source.list.empty()) {
    pairs = pairs_of_list(source);
  } else if (source.dataset.empty()) {
    const std::string name = fs::path(source.prediction).filename().string();
    pairs.cases = {{name, source.prediction, source.reference}};
  } else {
    try {
      pairs = pairs_of_dataset(source.dataset, DatasetPart::kTest);
    } catch (const InputError&) {  // NOLINT(bugprone-empty-catch): many have no test images
    }
  }
  find_predictions(source, pairs);
  if (!source.dataset.empty() && pairs.missing.size() == pairs.cases.size()) {
    pairs = pairs_of_dataset(source.dataset, DatasetPart::kTraining);
    find_predictions(source, pairs);
  }
  if (!source.folder.empty() && pairs.missing.size() == pairs.cases.size()) {
    throw InputError("'" + source.folder + "' holds no prediction of " +
                     std::to_string(pairs.cases.size()) + " cases, such as '" +
                     pairs.cases[0].image + "'; files are found by the id of the case");
  }
  if (source.kind == PredictionKind::kLabels && pairs.names.empty()) add_names(pairs);
  return pairs;
}

}  // namespace larch::pipeline
