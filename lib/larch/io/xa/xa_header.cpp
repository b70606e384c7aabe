// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/xa/xa_header.h"

#include <limits>

namespace larch {
namespace {

/// The third value of ImageType: which plane of the device (PS3.3, C.8.7.1.1.1). One of two has to
/// name the other one.
std::string plane_of(const std::string& image_type, bool has_other) {
  for (const char* plane : {"BIPLANE A", "BIPLANE B"}) {
    if (has_other && image_type.find(plane) != std::string::npos) return plane;
  }
  return "SINGLE PLANE";
}

}  // namespace

XaHeader derived_xa_header(const Angiogram& source, const std::string& identity,
                           const std::string& derivation, bool is_log) {
  XaHeader header;
  header.is_derived = true;
  header.intensity = is_log ? PixelIntensity::kLog : PixelIntensity::kLinear;
  header.intensity_sign = 0;
  header.series_description =
      "Subtracted" + (source.series_description.empty() ? "" : ": " + source.series_description);
  header.derivation = derivation;
  header.identity = identity;
  header.study_uid = source.study_uid;
  header.source_class_uid = source.sop_class_uid;
  header.source_instance_uid = source.sop_instance_uid;
  header.is_lossy = source.is_lossy;
  header.display_rate_hz = source.display_rate_hz;
  const bool has_other =
      !source.other_plane_class_uid.empty() && !source.other_plane_instance_uid.empty();
  header.plane = plane_of(source.image_type, has_other);
  header.other_plane_class_uid = source.other_plane_class_uid;
  header.other_plane_instance_uid = source.other_plane_instance_uid;
  header.copied = source.copied;
  const bool has_next =
      source.series_number > 0 && source.series_number < std::numeric_limits<int>::max();
  if (has_next) header.series_number = source.series_number + 1;
  header.source_equipment = source.equipment;
  return header;
}

}  // namespace larch
