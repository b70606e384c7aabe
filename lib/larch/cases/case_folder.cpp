// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/case_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "larch/config/text.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"
#include "larch/io/itk/find_images.h"

namespace larch {
namespace {
namespace fs = std::filesystem;

/// Files with labels end so: label maps and surfaces.
constexpr const char* kEndings[] = {".nii.gz", ".nii", ".nrrd", ".mha",
                                    ".png",    ".vtk", ".stl",  ".ply"};

/// Returns a path without the ending of its file. Numbers behind a dot are of an UID.
std::string without_ending(const fs::path& path, const FoundImage& image) {
  const std::string text = path.string(), ending = file_extension(text);
  const bool has_none =
      is_folder(image.path) || ending.find_first_not_of(".0123456789") == std::string::npos;
  return text.substr(0, text.size() - (has_none ? 0 : ending.size()));
}

/// `is_shared`: tells whether another image has the same id without a digest.
std::string id_of(const std::string& folder, const FoundImage& image,
                  const std::function<bool(const std::string&)>& is_shared) {
  constexpr size_t kLongest = 160;
  const fs::path path = fs::path(image.path).lexically_relative(folder);
  std::string id;
  for (const fs::path& part : fs::path(path == "." ? "" : without_ending(path, image))) {
    id += (id.empty() ? "" : "__") + part.string();
  }
  if (!image.series_uid.empty()) id += (id.empty() ? "" : "__") + image.series_uid;
  const std::string whole = id;
  std::ranges::replace_if(
      id, [](unsigned char c) { return c < 32 || c == 127 || c == '/'; }, '_');
  if (id.starts_with('.')) id[0] = '_';
  if (id.size() > kLongest) id.resize(kLongest);
  if (id == whole && !id.empty() && !is_shared(id)) return id;
  while (!id.empty() && static_cast<unsigned char>(id.back()) > 127) id.pop_back();  // of a letter
  return id + "-" + sha256_of(path.string() + "\n" + image.series_uid).substr(0, 12);
}

/// Returns the labels that lie beside an image.
std::string labels_of(const FoundImage& image, bool is_required) {
  fs::path path = image.path;
  if (!path.has_filename()) path = path.parent_path();
  const fs::path folder = path.parent_path();
  const std::string name = without_ending(path.filename(), image);
  std::vector<std::string> found;
  for (const char* where : {"labels", "../labels"}) {
    for (const char* ending : kEndings) {
      const std::string file = (folder / where / name).lexically_normal().string() + ending;
      if (is_file(file)) found.push_back(file);
    }
  }
  for (const fs::path& where : {path, folder}) {
    const std::string masks = (where / "segmentations").string();
    if (found.empty() && is_folder(masks)) found.push_back(masks);
  }
  if (found.size() == 1 || (found.empty() && !is_required)) return found.empty() ? "" : found[0];
  throw InputError(
      "'" + image.path + "' has " +
      (found.empty() ? "no labels" : "several labels (" + config::join(found) + ")") +
      ": looked for '" + name + ".nii.gz' and the like in folders 'labels' in '" + folder.string() +
      "' and beside it, and for a folder 'segmentations' with a mask for each structure; move "
      "files, or write a list");
}

}  // namespace

std::vector<Case> read_case_folder(const std::string& folder, const CaseColumns& columns,
                                   bool with_labels,
                                   const std::function<void(const std::string&)>& warn) {
  const bool has_series = std::ranges::count(columns.more, kSeriesColumn, &CaseColumn::name) > 0;
  FoundImages found = find_images(folder, !has_series);
  std::vector<std::string>& others = found.passed_over;
  if (with_labels) std::erase_if(others, is_folder);
  const size_t count = others.size();
  if (count > 3) others.resize(3);
  const std::string passed_over =
      std::to_string(count) + " files and folders are no images and are passed over" +
      (count > 0 ? ", such as '" + config::join(others, "', '") + "'" : "");
  if (found.images.empty()) {
    io::bad(folder,
            "no image in this folder and those below; looked for a dataset.json, for files of "
            "NIfTI, NRRD and MetaImage by their endings, for DICOM files, and for pictures; " +
                passed_over);
  }
  if (warn && count > 0) warn("'" + folder + "': " + passed_over);
  std::map<std::string, int> ids;
  for (const FoundImage& image : found.images) {
    id_of(folder, image, [&](const std::string& id) { return ++ids[id] > 1; });
  }
  std::vector<Case> cases;
  for (FoundImage& image : found.images) {
    const auto is_shared = [&](const std::string& id) { return ids[id] > 1; };
    Case& one = cases.emplace_back(Case{id_of(folder, image, is_shared), image.path, ""});
    if (with_labels) one.label = labels_of(image, columns.label_required);
    if (!image.series_uid.empty()) one.further[kSeriesColumn] = image.series_uid;
    one.files = std::move(image.files);
  }
  return cases;
}

}  // namespace larch
