// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/json_values.h"
#include "larch/models/pbt_codec.h"
#include "larch/pbt/train_config.h"

namespace larch::models {
namespace {

/// Replaces the floating-point numbers of a value by hexadecimal strings.
void make_hex(Json& value) {
  if (value.is_number_float()) value = hex_float(value.get<double>());
  if (value.is_structured()) {
    for (Json& element : value) make_hex(element);
  }
}

/// The other way, for the members of an object that hold numbers.
void make_decimal(Json& object) {
  for (Json& element : object) {
    if (element.is_string() && (element.get_ref<const std::string&>().rfind("0x", 0) == 0 ||
                                element.get_ref<const std::string&>().rfind("-0x", 0) == 0)) {
      element = real(element, "intensity");
    }
  }
}

Json space_json(const pbt::Model& model) {
  const image::ModelSpace& space = model.space;
  image::IntensityRule intensity = space.intensity;
  return {{"spacing_mm", {space.spacing_mm.x, space.spacing_mm.y, space.spacing_mm.z}},
          {"orientation", enum_name(space.orientation)},
          {"padding", enum_name(model.padding)},
          {"intensity", config::to_json(intensity)}};
}

void read_space(const Json& json, pbt::Model& model) {
  const Json& spacing = list(json, "spacing_mm");
  if (spacing.size() != 3) bad_value("spacing_mm", "does not have three numbers");
  for (int axis = 0; axis < 3; ++axis) {
    model.space.spacing_mm[axis] = real(spacing[static_cast<size_t>(axis)], "spacing_mm");
  }
  model.space.orientation = enum_at<image::Orientation>(json, "orientation");
  model.padding = enum_at<image::Padding>(json, "padding");
  Json intensity = member(json, "intensity");
  if (!intensity.is_object()) bad_value("intensity", "is not an object");
  make_decimal(intensity);
  try {
    config::from_json(model.space.intensity, intensity, "intensity");
  } catch (const Error& error) {
    throw InputError(error.what());
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& what) {
  try {
    return config::parse(std::string(text), what);
  } catch (const Error& error) {
    throw InputError(error.what());
  }
}

Json meta_json(const pbt::Model& model, Doubles style) {
  const pbt::ModelInfo& info = model.info;
  Json space = space_json(model);
  if (style == Doubles::kHex) make_hex(space);
  Json training = info.training_config_json.empty()
                      ? Json()
                      : parse_json(info.training_config_json, "the training configuration");
  Json meta = {{"class", {{"name", info.class_name}, {"value", info.class_value}}},
               {"space", std::move(space)},
               {"tool_version", info.tool_version},
               {"seed", info.seed},
               {"volume_digests", info.volume_digests},
               {"training", std::move(training)}};
  try {
    (void)meta.dump();
  } catch (const Json::exception&) {
    throw InputError("the class name or another text of the model is not UTF-8");
  }
  return meta;
}

void read_meta(const Json& meta, pbt::Model& model) {
  pbt::ModelInfo& info = model.info;
  const Json& label = member(meta, "class");
  info.class_name = text(member(label, "name"), "name");
  info.class_value = integer_at<int32_t>(label, "value");
  read_space(member(meta, "space"), model);
  info.tool_version = text(member(meta, "tool_version"), "tool_version");
  info.seed = integer_at<uint64_t>(meta, "seed");
  for (const Json& digest : list(meta, "volume_digests")) {
    info.volume_digests.push_back(text(digest, "volume_digests"));
  }
  const Json& training = member(meta, "training");
  info.training_config_json = training.is_null() ? "" : training.dump();
}

}  // namespace larch::models
