// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/plan.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "larch/config/bytes.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;

/// What goes to one file system.
struct Disk {
  std::string folder;  ///< that exists there
  int64_t free = 0;
  int64_t certain = 0;  ///< bytes of files that are not compressed
  int64_t at_most = 0;  ///< bytes of all files
};

/// The folder of a file, or the nearest one above that exists.
std::string existing_folder_above(const std::string& file) {
  std::error_code ignored;
  fs::path folder = fs::absolute(file, ignored).parent_path();
  while (folder.has_relative_path() && !fs::is_directory(folder, ignored)) {
    folder = folder.parent_path();
  }
  return folder.string();
}

std::map<dev_t, Disk> disks_of(const std::vector<Plan::File>& files) {
  std::map<dev_t, Disk> disks;
  for (const Plan::File& file : files) {
    const std::string folder = existing_folder_above(file.path);
    struct stat status {};
    struct statvfs space {};
    if (stat(folder.c_str(), &status) != 0 || statvfs(folder.c_str(), &space) != 0) continue;
    Disk& disk = disks[status.st_dev];
    disk.folder = folder;
    disk.free = static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
    disk.at_most += file.bytes;
    if (!file.compressed) disk.certain += file.bytes;
  }
  return disks;
}

void check_disk(const Disk& disk, const Context& context) {
  const std::string there =
      ", and " + bytes_text(disk.free) + " are free below '" + disk.folder + "'";
  if (disk.certain > disk.free) {
    throw OutputError("the outputs take " + bytes_text(disk.certain) + there +
                      "; make room, or write elsewhere or in a compressed format (.nii.gz)");
  }
  const std::string line =
      "disk: at most " + bytes_text(disk.at_most) + " for images, before compression" + there;
  context.log(disk.at_most > disk.free ? LogLevel::kWarning : LogLevel::kInfo, line);
}

std::string duration_text(double seconds) {
  char text[64];
  if (seconds < 100) {
    std::snprintf(text, sizeof text, "%.0f s", std::max(1.0, seconds));
  } else if (seconds < 6000) {
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  } else {
    std::snprintf(text, sizeof text, "%.1f h", seconds / 3600);
  }
  return text;
}

}  // namespace

std::string aligned(const std::vector<std::vector<std::string>>& table) {
  std::vector<size_t> widths;
  for (const auto& row : table) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : table) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size() + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

void log_plan(const Plan& plan, const Context& context) {
  for (const std::string& note : plan.notes) context.info(note);
  if (plan.memory_bytes > 0) {
    const auto free = static_cast<int64_t>(free_memory_bytes(Device::cpu()));
    context.log(plan.memory_bytes > free ? LogLevel::kWarning : LogLevel::kInfo,
                "memory: roughly " + bytes_text(plan.memory_bytes) + " of the host, " +
                    bytes_text(free) + " are free");
  }
  if (plan.seconds > 0) {
    context.info("time: roughly " + duration_text(plan.seconds) +
                 ", from the sizes and speeds measured elsewhere");
  }
  for (const auto& [device, disk] : disks_of(plan.files)) check_disk(disk, context);
}

}  // namespace larch::detail
