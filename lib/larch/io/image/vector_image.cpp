// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/image/vector_image.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "larch/core/error.h"
#include "larch/io/formats/formats.h"
#include "larch/io/image/raw_image.h"

namespace larch {
namespace {

/// One component of each voxel, as an image of its own.
io::RawImage component(const io::RawImage& raw, int number) {
  const auto width = static_cast<size_t>(io::bytes_of(raw.header.component));
  const auto channels = static_cast<size_t>(raw.header.channels);
  io::RawImage out{raw.header, std::vector<std::byte>(raw.voxels.size() / channels)};
  out.header.channels = 1;
  for (size_t i = 0; i * width < out.voxels.size(); ++i) {
    std::memcpy(out.voxels.data() + i * width,
                raw.voxels.data() + (i * channels + static_cast<size_t>(number)) * width, width);
  }
  return out;
}

}  // namespace

VectorField read_vector_field(const std::string& path, const ReadOptions& options) {
  io::Selection selection = io::selected_frame(options);
  selection.vectors = true;
  const io::RawImage raw = io::read_selected(path, options, selection);
  const int channels = raw.header.channels;
  if (raw.header.colour || channels < 2 || channels > 3) {
    throw InputError("'" + path + "': not a field of vectors: " +
                     (raw.header.colour ? std::string("its channels are colours")
                                        : std::to_string(channels) +
                                              (channels == 1 ? " component" : " components") +
                                              " per voxel instead of 2 or 3"));
  }
  ReadOptions strict;  // a vector that is not a number has no value that could stand for it
  VectorField field(raw.header.grid);
  for (int c = 0; c < channels; ++c) {
    const Volume<float> values = io::convert<float>(component(raw, c), path, strict);
    for (int64_t i = 0; i < field.voxels(); ++i) field[i][c] = values[i];
  }
  return field;
}

void write_vector_field(const std::string& path, const VectorField& field, int components,
                        int threads) {
  if (components != 2 && components != 3) {
    throw UsageError("vectors have 2 or 3 components, not " + std::to_string(components));
  }
  const bool flat =
      std::all_of(field.begin(), field.end(), [](const Vec3f& v) { return v.z == 0; });
  if (components == 2 && !flat) {
    throw UsageError("cannot write '" + path +
                     "' with two components: there are vectors whose third one is not 0");
  }
  std::vector<float> values;
  values.reserve(static_cast<size_t>(field.voxels()) * static_cast<size_t>(components));
  for (const Vec3f& vector : field) {
    for (int c = 0; c < components; ++c) values.push_back(vector[c]);
  }
  io::write_pixels(
      path, {field.grid(), io::Component::kFloat32, values.data(), false, threads, components});
}

}  // namespace larch
