// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/markups/markups.h"

#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "larch/core/guard.h"
#include "larch/files/file.h"
#include "larch/io/image/message.h"

namespace larch {
namespace {

using Json = nlohmann::ordered_json;
using io::bad;

constexpr const char* kSchema =
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/"
    "Schema/markups-schema-v1.0.3.json#";
constexpr int64_t kMostBytes = 64 << 20;
constexpr int kMostLevels =
    64;  ///< of lists and objects in each other; Slicer writes fewer than 10
constexpr double kRoundedAxis = 1e-3;  ///< of unit vectors that were written with few digits

void write_markups(const std::string& path, Json markups) {
  const Json file{{"@schema", kSchema}, {"markups", std::move(markups)}};
  // Names that are no UTF-8 must not keep the positions from being written.
  write_file(path, file.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

/// A markup of a file, with the sign that its coordinates take on the way to LPS.
struct Markup {
  Json json;
  Vec3d sign{1, 1, 1};
  std::string where;  ///< for messages
};

std::string text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Copies of JSON and messages about it call themselves once per level.
bool is_nested_deeply(const std::string& json) {
  int level = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text && c == '\\') ++i;  // what follows does not end the text
    if (c == '"') in_text = !in_text;
    if (in_text) continue;
    if (c == '[' || c == '{') ++level;
    if (c == ']' || c == '}') --level;
    if (level > kMostLevels) return true;
  }
  return false;
}

/// The markups of one type.
std::vector<Markup> read_markups(const std::string& path, const std::string& type) {
  if (file_bytes(path) > kMostBytes) bad(path, "more than 64 MiB, which no markups take");
  const std::string json_text = read_file(path);
  if (guarded(Guard::kMarkupsDepth) && is_nested_deeply(json_text)) {
    bad(path, "lists and objects in more than 64 levels, which no markups have; it is damaged");
  }
  const Json file = Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (file.is_discarded()) bad(path, "no JSON, or damaged");
  const auto all = file.is_object() ? file.find("markups") : file.end();
  if (!file.is_object() || all == file.end() || !all->is_array()) {
    bad(path, "no markups of 3D Slicer: it has no array \"markups\"");
  }
  std::vector<Markup> out;
  for (size_t i = 0; i < all->size(); ++i) {
    const Json& json = (*all)[i];
    const std::string where = "/markups/" + std::to_string(i);
    if (!json.is_object()) bad(path, where + ": expected an object");
    if (text(json, "type") != type) continue;
    const std::string system = text(json, "coordinateSystem");
    if (system != "LPS" && system != "RAS") {
      bad(path, where + ": the coordinateSystem must be LPS or RAS");
    }
    const std::string units = text(json, "coordinateUnits");
    if (!units.empty() && units != "mm") bad(path, where + ": the coordinateUnits must be mm");
    const double sign = system == "RAS" ? -1 : 1;
    out.push_back({json, {sign, sign, 1}, where});
  }
  if (out.empty()) bad(path, "it has no markup of the type " + type);
  return out;
}

template <size_t N>
std::array<double, N> numbers(const Json& json, const char* key, const std::string& path,
                              const std::string& where) {
  std::array<double, N> out{};
  const auto found = json.is_object() ? json.find(key) : json.end();
  bool sound = json.is_object() && found != json.end() && found->is_array() && found->size() == N;
  for (size_t i = 0; sound && i < N; ++i) {
    sound = (*found)[i].is_number();
    if (sound) out[i] = (*found)[i].template get<double>();
    sound = sound && std::isfinite(out[i]);
  }
  if (!sound) {
    bad(path,
        where + "/" + key + ": expected an array of " + std::to_string(N) + " finite numbers");
  }
  return out;
}

Vec3d position(const Json& json, const char* key, const Markup& markup, const std::string& path,
               const std::string& where) {
  const auto v = numbers<3>(json, key, path, where);
  return {v[0] * markup.sign.x + 0.0, v[1] * markup.sign.y + 0.0, v[2] + 0.0};
}

/// The rotation of a box from its axes, nine numbers with an axis in each column.
Quaternion rotation_of(const Markup& markup, const std::string& path) {
  Mat3 m;
  if (markup.json.contains("orientation")) {
    const auto all = numbers<9>(markup.json, "orientation", path, markup.where);
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
    bad(path, markup.where +
                  "/orientation: the axes are not perpendicular unit vectors of a "
                  "right-handed frame");
  }
  return canonical(quaternion_of(m));
}

Json json_of(const Vec3d& v) {
  return Json::array({v.x, v.y, v.z});
}

}  // namespace

void write_points(const std::string& path, const PointSet& points) {
  Json list = Json::array();
  for (size_t i = 0; i < points.points_mm.size(); ++i) {
    Json point{{"id", std::to_string(i + 1)}};
    if (!points.names.empty()) point["label"] = points.names[i];
    const Vec3d& at = points.points_mm[i];
    if (!std::isfinite(at.x) || !std::isfinite(at.y) || !std::isfinite(at.z)) {
      bad(path, "point " + std::to_string(i + 1) +
                    " has a position that is not finite and cannot be written; repair it");
    }
    point["position"] = json_of(at);
    point["positionStatus"] = "defined";
    list.push_back(std::move(point));
  }
  write_markups(path, Json::array({Json{{"type", "Fiducial"},
                                        {"coordinateSystem", "LPS"},
                                        {"coordinateUnits", "mm"},
                                        {"controlPoints", std::move(list)}}}));
}

PointSet read_points(const std::string& path) {
  PointSet out;
  bool named = false;
  for (const Markup& markup : read_markups(path, "Fiducial")) {
    const auto points = markup.json.find("controlPoints");
    if (points == markup.json.end() || !points->is_array()) {
      bad(path, markup.where + "/controlPoints: expected an array");
    }
    for (size_t i = 0; i < points->size(); ++i) {
      const Json& point = (*points)[i];
      const std::string where = markup.where + "/controlPoints/" + std::to_string(i);
      if (!point.is_object()) bad(path, where + ": expected an object");
      const std::string status = text(point, "positionStatus");
      if (status == "undefined" || status == "missing") continue;
      out.points_mm.push_back(position(point, "position", markup, path, where));
      out.names.push_back(text(point, "label"));
      named = named || !out.names.back().empty();
    }
  }
  if (!named) out.names.clear();
  return out;
}

void write_poses(const std::string& path, const std::vector<NamedPose>& poses) {
  Json list = Json::array();
  for (const auto& [name, pose] : poses) {
    check_pose(pose, name.c_str());
    const Mat3 axes = rotation_matrix(pose.rotation);
    Json orientation = Json::array();
    for (const auto& row : axes.m) {
      for (const double value : row) orientation.push_back(value + 0.0);
    }
    list.push_back(Json{{"type", "ROI"},
                        {"coordinateSystem", "LPS"},
                        {"coordinateUnits", "mm"},
                        {"name", name},
                        {"roiType", "Box"},
                        {"center", json_of(pose.centre_mm)},
                        {"orientation", std::move(orientation)},
                        {"size", json_of(pose.edges_mm)},
                        {"insideOut", false}});
  }
  write_markups(path, std::move(list));
}

std::vector<NamedPose> read_poses(const std::string& path) {
  std::vector<NamedPose> out;
  for (const Markup& markup : read_markups(path, "ROI")) {
    NamedPose named{text(markup.json, "name"), {}};
    named.pose.centre_mm = position(markup.json, "center", markup, path, markup.where);
    named.pose.rotation = rotation_of(markup, path);
    const auto size = numbers<3>(markup.json, "size", path, markup.where);
    named.pose.edges_mm = {size[0], size[1], size[2]};
    check_pose(named.pose, ("'" + path + "': " + markup.where).c_str());
    out.push_back(std::move(named));
  }
  return out;
}

}  // namespace larch
