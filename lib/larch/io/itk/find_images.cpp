// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/itk/find_images.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/dicom/dicom_image.h"
#include "larch/io/itk/image_io.h"

namespace larch {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kDicom = " .dcm .dicom .dic .dc3 .ima .acr ";
/// Files of voxels end so whose header is in another file.
constexpr std::string_view kVoxels = " .img .img.gz .raw .raw.gz .zraw ";
constexpr std::string_view kFoldersOfLabels = " labels labelsTr labelsTs segmentations ";

bool is_among(std::string_view words, const std::string& word) {
  return words.find(" " + word + " ") != std::string_view::npos;
}

std::string name_of(const std::string& path) {
  return fs::path(path).filename().string();
}

/// Returns the folders in a folder, sorted: of several names of one the first counts.
std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_folder(at->path().string())) folders.push_back(at->path().string());
  }
  std::ranges::sort(folders);
  return folders;
}

struct Search {
  bool files_alone;
  std::set<std::string> known{};  ///< folders, without links
  FoundImages found{};

  void look_at_folder(const std::string& folder) {
    std::error_code error;
    const bool is_first = known.empty();
    if (!known.insert(fs::canonical(folder, error).string()).second) return;
    const std::vector<std::string> files = files_in(folder), below = folders_in(folder);
    const auto is_record = [](const std::string& file) { return file.ends_with(".larch.json"); };
    const bool is_searched =
        !is_among(kFoldersOfLabels, name_of(folder)) && std::ranges::none_of(files, is_record);
    if (!is_first && !is_searched) return found.passed_over.push_back(folder);
    look_at_files(folder, files, below.empty());
    for (const std::string& one : below) {
      if (!name_of(one).starts_with('.')) look_at_folder(one);
    }
  }

  void look_at_files(const std::string& folder, const std::vector<std::string>& files,
                     bool is_lowest) {
    std::map<std::string, std::vector<std::string>> series;
    std::vector<FoundImage> damaged;
    for (const std::string& file : files) {
      const std::string ending = file_extension(file), name = name_of(file);
      if (name.starts_with('.') || name == "DICOMDIR" || is_among(kVoxels, ending)) continue;
      if (!is_among(kDicom, ending) && io::find_format(file) != nullptr) {
        found.images.push_back({file});
        continue;
      }
      bool is_damaged = is_among(kDicom, ending);
      std::optional<io::DicomObject> object;
      try {
        if (is_file(file)) object = io::dicom_header(file);
      } catch (const InputError&) {
        is_damaged = true;
      }
      if (!object && is_damaged) {
        damaged.push_back({file});
      } else if (!object || !object->has_pixels || object->is_segmentation()) {
        found.passed_over.push_back(file);
      } else if (files_alone || object->frames > 1) {
        found.images.push_back({file});
      } else {
        series[object->series_uid].push_back(file);
      }
    }
    for (auto& [uid, of_series] : series) {
      if (is_lowest && of_series.size() == files.size()) of_series.clear();
      found.images.push_back({folder, uid, std::move(of_series)});
    }
    if (series.empty()) std::ranges::move(damaged, std::back_inserter(found.images));
  }
};

}  // namespace

FoundImages find_images(const std::string& folder, bool files_alone) {
  Search search{files_alone};
  search.look_at_folder(folder);
  std::ranges::sort(search.found.images, {},
                    [](const FoundImage& image) { return std::tie(image.path, image.series_uid); });
  std::ranges::sort(search.found.passed_over);
  return std::move(search.found);
}

bool is_named_as_volume(const std::string& path) {
  constexpr std::string_view kVolumes = " .nii .nii.gz .hdr .hdr.gz .nrrd .nhdr .mha .mhd ";
  return is_among(kVolumes, file_extension(path));
}

}  // namespace larch
