// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <exception>
#include <filesystem>

#include "larch/io/file.h"
#include "larch/io/image.h"
#include "larch/io/nifti.h"
#include "larch/io/text_header.h"

namespace larch {
namespace {

namespace fs = std::filesystem;

std::string data_name(const std::string& path, const std::string& ending) {
  if (ending == ".mhd" || ending == ".mha") {
    return io::read_text_header(path, '=', "elementdatafile").value("elementdatafile");
  }
  if (ending != ".nhdr" && ending != ".nrrd") return "";
  const io::TextHeader header = io::read_text_header(path, ':', "");
  const std::string name = header.value("data file");
  return name.empty() ? header.value("datafile") : name;
}

std::vector<std::string> other_of_pair(const std::string& path) {
  const io::NiftiHeader nifti = io::read_nifti_header(path);
  const std::string& other = nifti.data_path == path ? nifti.header_path : nifti.data_path;
  return other == path ? std::vector<std::string>{} : std::vector<std::string>{other};
}

}  // namespace

std::vector<std::string> detached_files(const std::string& path) {
  const std::string ending = file_extension(path);
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  std::vector<std::string> files;
  std::string name;
  try {
    if (ending.starts_with(".hdr") || ending.starts_with(".img")) return other_of_pair(path);
    name = data_name(path, ending);
  } catch (const std::exception&) {
    return files;  // reading the image says what is wrong
  }
  std::string lower = name;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (name.empty() || lower == "local") return files;
  if (!lower.starts_with("list") && name.find('%') == std::string::npos) {
    files.push_back((folder / name).string());
    return files;
  }
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const bool is_other = entry->path().filename() != fs::path(path).filename();
    if (is_other && entry->is_regular_file(error)) files.push_back(entry->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace larch
