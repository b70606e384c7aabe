// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/image/vector_image.h"

#include <vector>

#include "larch/io/formats/formats.h"

namespace larch {

void write_vector_field(const std::string& path, const VectorField& field, int threads) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(field.voxels()) * 3);
  for (const Vec3f& vector : field) values.insert(values.end(), {vector.x, vector.y, vector.z});
  io::write_pixels(path, {field.grid(), io::Component::kFloat32, values.data(), false, threads, 3});
}

}  // namespace larch
