// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/markups/pose_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "larch/io/image/message.h"
#include "larch/io/markups/json_file.h"
#include "larch/io/markups/markups.h"

namespace larch {
namespace {

using io::bad;
using io::Json;
using io::json_of;
using io::numbers;
using io::OrderedJson;

constexpr size_t kMostStructures = 10'000;
constexpr double kRoundedLength = 1e-3;  ///< of quaternions that were written with few digits
constexpr Quaternion kLpsFromRas{0, 0, 0, 1};
/// All keys of a structure that are no figures.
constexpr auto kKeys = std::to_array<std::string_view>(
    {"name", "status", "confidence", "center_mm", "quaternion_wxyz", "size_mm", "matrix"});

/// World from box coordinates, row by row.
OrderedJson matrix_of(const Pose& pose) {
  const Mat3 axes = rotation_matrix(pose.rotation);
  OrderedJson rows = OrderedJson::array();
  for (int row = 0; row < 3; ++row) {
    const double* m = axes.m[row];
    rows.push_back({m[0] * pose.edges_mm.x + 0.0, m[1] * pose.edges_mm.y + 0.0,
                    m[2] * pose.edges_mm.z + 0.0, pose.centre_mm[row]});
  }
  rows.push_back({0.0, 0.0, 0.0, 1.0});
  return rows;
}

OrderedJson json_of(const DetectedPose& found, const std::string& path) {
  OrderedJson json{
      {"name", found.name}, {"status", found.status}, {"confidence", found.confidence}};
  if (!found.has_pose) return json;
  check_pose(found.pose, found.name.c_str());
  const Quaternion& q = found.pose.rotation;
  json["center_mm"] = json_of(found.pose.centre_mm);
  json["quaternion_wxyz"] = {q.w, q.x, q.y, q.z};
  json["size_mm"] = json_of(found.pose.edges_mm);
  json["matrix"] = matrix_of(found.pose);
  for (const auto& [name, value] : found.figures) {
    if (json.contains(name)) bad(path, found.name + ": two values of the name " + name);
    json[name] = value;
  }
  return json;
}

Pose pose_of(const Json& json, bool is_ras, const std::string& path, const std::string& where) {
  const auto centre = numbers(json, "center_mm", 3, path, where);
  const auto wxyz = numbers(json, "quaternion_wxyz", 4, path, where);
  const auto size = numbers(json, "size_mm", 3, path, where);
  Quaternion q{wxyz[0], wxyz[1], wxyz[2], wxyz[3]};
  // Said in this way, the test refuses a length that overflows too.
  if (!(std::abs(std::sqrt(dot(q, q)) - 1) <= kRoundedLength)) {
    bad(path, where + "/quaternion_wxyz: its length is not 1, as that of a rotation is; repair it");
  }
  // A quaternion that is canonical but for rounding keeps its bytes.
  if (std::abs(dot(q, canonical(q)) - 1) > 1e-12) q = canonical(q);
  Pose pose{{centre[0], centre[1], centre[2]}, q, {size[0], size[1], size[2]}};
  if (is_ras) {
    pose.centre_mm = rotate(kLpsFromRas, pose.centre_mm);
    pose.rotation = canonical(kLpsFromRas * pose.rotation);
  }
  check_pose(pose, ("'" + path + "': " + where).c_str());
  return pose;
}

DetectedPose structure_of(const Json& json, bool is_ras, const std::string& path,
                          const std::string& place) {
  if (!json.is_object()) bad(path, place + ": expected an object");
  DetectedPose found{io::text(json, "name"), io::text(json, "status")};
  if (found.name.empty()) bad(path, place + ": it has no \"name\"");
  const std::string where = place + " (" + io::shown(found.name) + ")";
  if (found.status.empty()) bad(path, where + ": it has no \"status\"");
  const auto confidence = json.find("confidence");
  if (confidence != json.end() && !confidence->is_null()) {
    found.confidence = confidence->is_number() ? confidence->get<double>() : -1;
    if (!(found.confidence >= 0 && found.confidence <= 1)) {
      bad(path, where + "/confidence: expected a number from 0 to 1, or null");
    }
  }
  found.has_pose =
      json.contains("center_mm") || json.contains("quaternion_wxyz") || json.contains("size_mm");
  if (!found.has_pose) return found;
  found.pose = pose_of(json, is_ras, path, where);
  for (const auto& [key, value] : json.items()) {
    const bool is_known = std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
    if (value.is_number() && !is_known) found.figures.emplace_back(key, value.get<double>());
  }
  return found;
}

/// Names are what structures are matched by, and stand in tables.
void check_names(const std::string& path, const std::vector<DetectedPose>& structures) {
  std::set<std::string> names;
  for (const DetectedPose& one : structures) {
    const bool has_control = std::any_of(one.name.begin(), one.name.end(),
                                         [](unsigned char c) { return c < 32 || c == 127; });
    if (one.name.empty() || has_control) {
      bad(path, "the name " + io::shown(one.name) +
                    " of a structure is empty or has control characters; give it another");
    }
    if (!names.insert(one.name).second) {
      bad(path, "two structures are called " + io::shown(one.name) + "; rename one");
    }
  }
}

}  // namespace

void write_pose_file(const std::string& path, const std::vector<DetectedPose>& poses) {
  OrderedJson structures = OrderedJson::array();
  for (const DetectedPose& found : poses) structures.push_back(json_of(found, path));
  io::write_json(path, {{"frame", "LPS"}, {"structures", std::move(structures)}});
}

std::vector<DetectedPose> read_pose_file(const std::string& path) {
  const Json file = io::read_json(path);
  const auto all = file.is_object() ? file.find("structures") : file.end();
  if (!file.is_object() || all == file.end() || !all->is_array()) {
    bad(path, "no file of poses: it has no array \"structures\"");
  }
  const std::string frame = io::text(file, "frame");
  if (frame != "LPS" && frame != "RAS") bad(path, "/frame: expected LPS or RAS");
  if (all->size() > kMostStructures) bad(path, "more than 10000 structures, which no body has");
  std::vector<DetectedPose> structures;
  for (size_t i = 0; i < all->size(); ++i) {
    structures.push_back(
        structure_of((*all)[i], frame == "RAS", path, "/structures/" + std::to_string(i)));
  }
  check_names(path, structures);
  return structures;
}

std::vector<DetectedPose> read_any_poses(const std::string& path) {
  if (!path.ends_with(".mrk.json")) return read_pose_file(path);
  std::vector<DetectedPose> structures;
  for (NamedPose& box : read_poses(path)) {
    structures.push_back({std::move(box.name), "found"});
    structures.back().pose = box.pose;
    structures.back().has_pose = true;
  }
  if (structures.size() > kMostStructures) bad(path, "more than 10000 boxes, which no body has");
  check_names(path, structures);
  return structures;
}

}  // namespace larch
