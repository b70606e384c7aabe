// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/markups/markups.h"

#include <cmath>

#include "larch/io/image/message.h"
#include "larch/io/markups/json_file.h"

namespace larch {
namespace {

using io::bad;
using io::Json;
using io::json_of;
using io::numbers;
using io::OrderedJson;
using io::text;

constexpr const char* kSchema =
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/"
    "Schema/markups-schema-v1.0.3.json#";
constexpr double kRoundedAxis = 1e-3;  ///< of unit vectors that were written with few digits

void write_markups(const std::string& path, OrderedJson markups) {
  io::write_json(path, {{"@schema", kSchema}, {"markups", std::move(markups)}});
}

/// A markup of a file, with the sign that its coordinates take on the way to LPS.
struct Markup {
  Json json;
  Vec3d sign{1, 1, 1};
  std::string where;  ///< for messages
};

/// The markups of one type.
std::vector<Markup> read_markups(const std::string& path, const std::string& type) {
  const Json file = io::read_json(path);
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

Vec3d position(const Json& json, const char* key, const Markup& markup, const std::string& path,
               const std::string& where) {
  const auto v = numbers(json, key, 3, path, where);
  return {v[0] * markup.sign.x + 0.0, v[1] * markup.sign.y + 0.0, v[2] + 0.0};
}

/// The rotation of a box from its axes, nine numbers with an axis in each column.
Quaternion rotation_of(const Markup& markup, const std::string& path) {
  Mat3 m;
  if (markup.json.contains("orientation")) {
    const auto all = numbers(markup.json, "orientation", 9, path, markup.where);
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

OrderedJson new_markup(const char* type) {
  return {{"type", type}, {"coordinateSystem", "LPS"}, {"coordinateUnits", "mm"}};
}

OrderedJson control_points(const PointSet& points) {
  OrderedJson list = OrderedJson::array();
  for (size_t i = 0; i < points.points_mm.size(); ++i) {
    OrderedJson point{{"id", std::to_string(i + 1)}};
    if (!points.names.empty()) point["label"] = points.names[i];
    point["position"] = json_of(points.points_mm[i]);
    point["positionStatus"] = "defined";
    list.push_back(std::move(point));
  }
  return list;
}

}  // namespace

void write_points(const std::string& path, const PointSet& points) {
  for (size_t i = 0; i < points.points_mm.size(); ++i) {
    const Vec3d& at = points.points_mm[i];
    if (!std::isfinite(at.x) || !std::isfinite(at.y) || !std::isfinite(at.z)) {
      bad(path, "point " + std::to_string(i + 1) +
                    " has a position that is not finite and cannot be written; repair it");
    }
  }
  OrderedJson markup = new_markup("Fiducial");
  markup["controlPoints"] = control_points(points);
  write_markups(path, OrderedJson::array({std::move(markup)}));
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
    line["controlPoints"] =
        control_points({{axis_end(pose, axis, -0.5), axis_end(pose, axis, 0.5)}, {}});
    list.push_back(std::move(line));
  }
  write_markups(path, std::move(list));
}

std::vector<NamedPose> read_poses(const std::string& path) {
  std::vector<NamedPose> out;
  for (const Markup& markup : read_markups(path, "ROI")) {
    NamedPose named{text(markup.json, "name"), {}};
    named.pose.centre_mm = position(markup.json, "center", markup, path, markup.where);
    named.pose.rotation = rotation_of(markup, path);
    const auto size = numbers(markup.json, "size", 3, path, markup.where);
    named.pose.edges_mm = {size[0], size[1], size[2]};
    check_pose(named.pose, ("'" + path + "': " + markup.where).c_str());
    out.push_back(std::move(named));
  }
  return out;
}

}  // namespace larch
