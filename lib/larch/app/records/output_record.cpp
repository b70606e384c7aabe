// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/records/output_record.h"

#include <algorithm>
#include <filesystem>

#include "larch/app/records/input_digests.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using config::Json;

/// All but the digest; null for what is no regular file. Renaming a file, which changes the time
/// that is left out, changes none of it.
Json stamp_of(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return nullptr;
  Json stamp = input_stamp(path);
  if (stamp.is_object()) stamp.erase("Changed");
  return stamp;
}

Json at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? Json() : *found;
}

}  // namespace

Json content_record(const std::string& path) {
  Json record = stamp_of(path);
  if (record.is_null()) throw OutputError("'" + path + "' is gone; it has just been written");
  try {
    record["SHA256"] = sha256_of_file(path);
  } catch (const InputError& error) {
    throw OutputError("what was written cannot be read again: " + std::string(error.what()));
  }
  return record;
}

Json output_record(const std::string& name, const std::string& role, const Json& content) {
  Json record{{"Name", name}};
  if (!role.empty()) record["Role"] = role;
  if (content.is_object()) record.update(content);
  return record;
}

std::vector<NamedFile> named_files(const Json& record, const std::string& folder) {
  std::vector<NamedFile> files;
  const Json outputs = at(record, "Outputs");
  if (!outputs.is_array()) return files;
  for (const Json& entry : outputs) {
    if (!entry.is_object()) continue;
    const Json name = at(entry, "Name");
    if (!name.is_string()) continue;
    files.push_back({(fs::path(folder) / name.get<std::string>()).string(), entry});
  }
  return files;
}

const NamedFile* find_named(const std::vector<NamedFile>& files, const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  const auto found = std::find_if(files.begin(), files.end(), [&](const NamedFile& file) {
    return fs::path(file.path).lexically_normal() == normal;
  });
  return found == files.end() ? nullptr : &*found;
}

std::string why_not_as_written(const NamedFile& file) {
  const Json now = stamp_of(file.path);
  if (now.is_null()) return "is no regular file";
  const Json digest = at(file.entry, "SHA256"), bytes = at(file.entry, "Bytes");
  if (!digest.is_string() || !bytes.is_number_unsigned()) {
    return "cannot be compared: its sidecar does not tell its content";
  }
  if (bytes != now["Bytes"]) {
    return "has " + now["Bytes"].dump() + " bytes, and " + bytes.dump() + " were written";
  }
  if (at(file.entry, "Modified") == now["Modified"] && at(file.entry, "Inode") == now["Inode"]) {
    return "";
  }
  try {
    return sha256_of_file(file.path) == digest ? "" : "has other content than what was written";
  } catch (const InputError& error) {
    return "cannot be compared: " + std::string(error.what());
  }
}

}  // namespace larch::detail
