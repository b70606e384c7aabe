// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/markups/markups.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>

#include <nlohmann/json.hpp>

#include "larch/core/json_watcher.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"

namespace larch {
namespace {

using io::bad;
/// Keys are sorted, so that a file with millions of them takes no quadratic time.
using Json = nlohmann::json;
/// Keys keep their order in files that are written.
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kSchema =
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/"
    "Schema/markups-schema-v1.0.3.json#";
constexpr double kRoundedAxis = 1e-3;  ///< of unit vectors that were written with few digits
constexpr size_t kMaximumStructures = 10'000;
constexpr double kRoundedLength = 1e-3;  ///< of quaternions that were written with few digits
constexpr Quaternion kLpsFromRas{0, 0, 0, 1};
/// All keys of a structure that are no figures.
constexpr auto kKeys = std::to_array<std::string_view>(
    {"name", "status", "confidence", "center_mm", "quaternion_wxyz", "size_mm", "matrix"});
constexpr int64_t kMaximumBytes = 64 << 20;

Json read_json(const std::string& path) {
  if (file_extension(path) == ".fcsv") {
    bad(path, "points of 3D Slicer before version 5 (.fcsv); save them there as .mrk.json");
  }
  if (file_bytes(path) > kMaximumBytes)
    bad(path, "more than 64 MiB, which no points or boxes take");
  const std::string json_text = read_file(path);
  refuse_placeholder(path, json_text);
  // A copy of JSON calls itself once per level: none is made here, and none may be by mistake.
  JsonWatcher<Json> watcher{
      [&] {
        bad(path, "lists and objects in more than 64 levels, which no markups have; it is damaged");
      },
      [&](const std::string& key) {
        bad(path, "the key '" + key.substr(0, 40) + "' stands twice in an object; damaged?");
      }};
  Json json = Json::parse(json_text, std::ref(watcher), /*allow_exceptions=*/false);
  if (json.is_discarded()) bad(path, "no JSON, or damaged");
  return json;
}

void write_json(const std::string& path, const OrderedJson& json) {
  // Names that are no UTF-8 must not keep the positions from being written.
  write_file(path, json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
}

/// An object of a file, and the place of it there.
struct Object {
  const Json& json;
  std::string path, where;
  Vec3d sign{1, 1, 1};  ///< of its coordinates on the way to LPS

  [[noreturn]] void refuse(const std::string& what) const { bad(path, where + what); }

  /// Returns a member that is a text; empty if there is none.
  std::string text(const char* key) const {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  }

  /// Returns a member that is an array of `count` numbers that millimetres can mean.
  std::vector<double> numbers(const char* key, size_t count) const {
    std::vector<double> out;
    const auto found = json.find(key);
    if (found != json.end() && found->is_array() && found->size() == count) {
      for (const Json& number : *found) {
        if (number.is_number() && std::abs(number.get<double>()) <= kFarthestMm)
          out.push_back(number);
      }
    }
    if (out.size() == count) return out;
    refuse(std::string("/") + key + ": expected an array of " + std::to_string(count) +
           " finite numbers of at most 1e7 (10 km)");
  }
  Vec3d vector(const char* key) const {
    const auto v = numbers(key, 3);
    return {v[0], v[1], v[2]};
  }
  /// In LPS, without negative zeros.
  Vec3d position(const char* key) const {
    const Vec3d v = vector(key);
    return {v.x * sign.x + 0.0, v.y * sign.y + 0.0, v.z + 0.0};
  }
};

/// The array that makes a file what it should be, `none` if it is not there.
const Json& array_of(const std::string& path, const Json& file, const char* key,
                     const std::string& none) {
  const auto found = file.is_object() ? file.find(key) : file.end();
  if (!file.is_object() || found == file.end() || !found->is_array()) {
    bad(path, none + ": it has no array \"" + key + "\"");
  }
  return *found;
}

/// Returns the markups of one type in a file. `may_lack`: there may be none.
std::vector<Object> markups_of(const std::string& path, const Json& file, const std::string& type,
                               bool may_lack = false) {
  const Json& all = array_of(path, file, "markups", "no markups of 3D Slicer");
  std::vector<Object> out;
  for (size_t i = 0; i < all.size(); ++i) {
    Object markup{all[i], path, "/markups/" + std::to_string(i)};
    if (!markup.json.is_object()) markup.refuse(": expected an object");
    if (markup.text("type") != type) continue;
    const std::string system = markup.text("coordinateSystem");
    if (system != "LPS" && system != "RAS") {
      markup.refuse(": the coordinateSystem must be LPS or RAS");
    }
    const std::string units = markup.text("coordinateUnits");
    if (!units.empty() && units != "mm") markup.refuse(": the coordinateUnits must be mm");
    if (system == "RAS") markup.sign = {-1, -1, 1};
    out.push_back(std::move(markup));
  }
  if (out.empty() && !may_lack) bad(path, "it has no markup of the type " + type);
  return out;
}

/// Returns the rotation of a box from its axes, nine numbers with an axis in each column.
Quaternion rotation_of(const Object& markup) {
  Mat3 m;
  if (markup.json.contains("orientation")) {
    const auto all = markup.numbers("orientation", 9);
    for (int i = 0; i < 9; ++i) m.m[i / 3][i % 3] = all[static_cast<size_t>(i)];
  } else {
    m = {{{markup.sign.x, 0, 0}, {0, markup.sign.y, 0}, {0, 0, 1}}};
  }
  for (int row = 0; row < 3; ++row) {
    for (double& value : m.m[row]) value *= markup.sign[row];
  }
  bool sound = determinant(m) > 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const double wanted = i == j ? 1 : 0;
      sound = sound && std::abs(dot(m.column(i), m.column(j)) - wanted) <= kRoundedAxis;
    }
  }
  if (!sound) {
    markup.refuse(
        "/orientation: the axes are not perpendicular unit vectors of a right-handed frame");
  }
  return canonical(quaternion_of(m));
}

OrderedJson json_of(const Vec3d& v) {
  return OrderedJson::array({v.x, v.y, v.z});
}

void write_markups(const std::string& path, OrderedJson markups) {
  write_json(path, {{"@schema", kSchema}, {"markups", std::move(markups)}});
}

OrderedJson new_markup(const char* type) {
  return {{"type", type}, {"coordinateSystem", "LPS"}, {"coordinateUnits", "mm"}};
}

OrderedJson control_points(const std::vector<Vec3d>& points_mm) {
  OrderedJson list = OrderedJson::array();
  for (size_t i = 0; i < points_mm.size(); ++i) {
    list.push_back({{"id", std::to_string(i + 1)},
                    {"position", json_of(points_mm[i])},
                    {"positionStatus", "defined"}});
  }
  return list;
}

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

Pose pose_of(const Object& object, bool is_ras) {
  Pose pose;
  pose.centre_mm = object.vector("center_mm");
  const auto wxyz = object.numbers("quaternion_wxyz", 4);
  pose.edges_mm = object.vector("size_mm");
  Quaternion q{wxyz[0], wxyz[1], wxyz[2], wxyz[3]};
  // Said in this way, the test refuses a length that overflows too.
  if (!(std::abs(std::sqrt(dot(q, q)) - 1) <= kRoundedLength)) {
    object.refuse("/quaternion_wxyz: its length is not 1, as that of a rotation is; repair it");
  }
  // A quaternion that is canonical but for rounding keeps its bytes.
  if (std::abs(dot(q, canonical(q)) - 1) > 1e-12) q = canonical(q);
  pose.rotation = q;
  if (is_ras) {
    pose.centre_mm = rotate(kLpsFromRas, pose.centre_mm);
    pose.rotation = canonical(kLpsFromRas * pose.rotation);
  }
  check_pose(pose, ("'" + object.path + "': " + object.where).c_str());
  return pose;
}

DetectedPose structure_of(Object object, bool is_ras) {
  const Json& json = object.json;
  if (!json.is_object()) object.refuse(": expected an object");
  DetectedPose found{object.text("name"), object.text("status")};
  if (found.name.empty()) object.refuse(": it has no \"name\"");
  object.where += " (" + io::shown(found.name) + ")";
  if (found.status.empty()) object.refuse(": it has no \"status\"");
  const auto confidence = json.find("confidence");
  if (confidence != json.end() && !confidence->is_null()) {
    found.confidence = confidence->is_number() ? confidence->get<double>() : -1;
    if (!(found.confidence >= 0 && found.confidence <= 1)) {
      object.refuse("/confidence: expected a number from 0 to 1, or null");
    }
  }
  found.has_pose =
      json.contains("center_mm") || json.contains("quaternion_wxyz") || json.contains("size_mm");
  if (!found.has_pose) return found;
  found.pose = pose_of(object, is_ras);
  for (const auto& [key, value] : json.items()) {
    const bool is_known = std::ranges::find(kKeys, key) != kKeys.end();
    if (value.is_number() && !is_known) found.figures.emplace_back(key, value.get<double>());
  }
  return found;
}

/// Names are what structures are matched by, and stand in tables.
void check_names(const std::string& path, const std::vector<DetectedPose>& structures) {
  std::set<std::string> names;
  for (const DetectedPose& one : structures) {
    const bool has_control =
        std::ranges::any_of(one.name, [](unsigned char c) { return c < 32 || c == 127; });
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

PointSet read_points(const std::string& path) {
  PointSet out;
  bool named = false;
  const Json file = read_json(path);
  for (const Object& markup : markups_of(path, file, "Fiducial")) {
    const auto points = markup.json.find("controlPoints");
    if (points == markup.json.end() || !points->is_array()) {
      markup.refuse("/controlPoints: expected an array");
    }
    for (size_t i = 0; i < points->size(); ++i) {
      const Object point{(*points)[i], path, markup.where + "/controlPoints/" + std::to_string(i),
                         markup.sign};
      if (!point.json.is_object()) point.refuse(": expected an object");
      const std::string status = point.text("positionStatus");
      if (status == "undefined" || status == "missing") continue;
      out.points_mm.push_back(point.position("position"));
      out.names.push_back(point.text("label"));
      named = named || !out.names.back().empty();
    }
  }
  if (!named) out.names.clear();
  return out;
}

void write_poses(const std::string& path, const std::vector<NamedPose>& poses, bool axial_lines) {
  OrderedJson list = OrderedJson::array();
  for (const auto& [name, pose] : poses) {
    check_pose(pose, name.c_str());
    const Mat3 axes = rotation_matrix(pose.rotation);
    OrderedJson orientation = OrderedJson::array();
    for (const auto& row : axes.m) {
      for (const double value : row) orientation.push_back(value + 0.0);
    }
    OrderedJson box = new_markup("ROI");
    box["name"] = name;
    box["roiType"] = "Box";
    box["center"] = json_of(pose.centre_mm);
    box["orientation"] = std::move(orientation);
    box["size"] = json_of(pose.edges_mm);
    box["insideOut"] = false;
    list.push_back(std::move(box));
    if (!axial_lines) continue;
    const int axis = longest_axis(pose.edges_mm);
    OrderedJson line = new_markup("Line");
    line["name"] = name + " axis";
    line["controlPoints"] = control_points({axis_end(pose, axis, -0.5), axis_end(pose, axis, 0.5)});
    list.push_back(std::move(line));
  }
  write_markups(path, std::move(list));
}

std::vector<NamedPose> read_poses(const std::string& path) {
  std::vector<NamedPose> out;
  const Json file = read_json(path);
  for (const Object& markup : markups_of(path, file, "ROI")) {
    NamedPose& named = out.emplace_back(NamedPose{markup.text("name"), {}});
    named.pose.centre_mm = markup.position("center");
    named.pose.rotation = rotation_of(markup);
    named.pose.edges_mm = markup.vector("size");
    check_pose(named.pose, ("'" + path + "': " + markup.where).c_str());
  }
  return out;
}

void write_pose_file(const std::string& path, const std::vector<DetectedPose>& poses) {
  OrderedJson structures = OrderedJson::array();
  for (const DetectedPose& found : poses) structures.push_back(json_of(found, path));
  write_json(path, {{"frame", "LPS"}, {"structures", std::move(structures)}});
}

std::vector<DetectedPose> read_pose_file(const std::string& path) {
  const Json file = read_json(path);
  const Json& all = array_of(path, file, "structures", "no file of poses");
  const std::string frame = Object{file, path, ""}.text("frame");
  if (frame != "LPS" && frame != "RAS") bad(path, "/frame: expected LPS or RAS");
  if (all.size() > kMaximumStructures) bad(path, "more than 10000 structures, which no body has");
  std::vector<DetectedPose> structures;
  for (size_t i = 0; i < all.size(); ++i) {
    structures.push_back(
        structure_of({all[i], path, "/structures/" + std::to_string(i)}, frame == "RAS"));
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
  if (structures.size() > kMaximumStructures) bad(path, "more than 10000 boxes, which no body has");
  check_names(path, structures);
  return structures;
}

PosesOfFile read_poses_or_points(const std::string& path) {
  const bool are_points = path.ends_with(".mrk.json") &&
                          markups_of(path, read_json(path), "ROI", /*may_lack=*/true).empty();
  if (!are_points) return {read_any_poses(path)};
  const PointSet points = read_points(path);
  PosesOfFile found{std::vector<DetectedPose>(points.points_mm.size()), true};
  for (size_t i = 0; i < found.poses.size(); ++i) {
    DetectedPose& one = found.poses[i];
    one.name = points.names.empty() ? "" : points.names[i];
    one.status = "found";
    one.pose = {points.points_mm[i], {}, {kPointEdgeMm, kPointEdgeMm, kPointEdgeMm}};
    one.has_pose = true;
  }
  check_names(path, found.poses);
  return found;
}

}  // namespace larch
