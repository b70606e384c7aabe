// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/voxel_model.h"

#include "larch/image/preprocess.h"

namespace larch::pipeline {
namespace {

const forest::Model* forest_of(const models::VoxelModel& model) {
  return std::get_if<forest::Model>(&model);
}

/// A colour for a label: as PASCAL VOC has them, whose neighbours are far apart.
LabelEntry coloured(int32_t value, const std::string& name) {
  LabelEntry entry{value, name, {0, 0, 0}};
  auto bits = static_cast<uint32_t>(value);
  if (value < 0) bits = 0 - bits;
  for (int shift = 7; bits != 0 && shift >= 0; --shift, bits >>= 3) {
    for (int k = 0; k < 3; ++k) {
      entry.rgb[k] = static_cast<uint8_t>(entry.rgb[k] | (bits >> k & 1) << shift);
    }
  }
  return entry;
}

Volume<float> resampled(const Volume<float>& map, const Grid& grid, const Context& context) {
  return image::resample(map, grid, context);
}
LabelVolume resampled(const LabelVolume& map, const Grid& grid, const Context& context) {
  return image::resample_labels(map, grid, context);
}
/// `outside`: the value outside of a region, which may be empty.
template <class T>
void bring_to(const Grid& grid, Volume<T>& map, const Volume<uint8_t>& region, T outside,
              const Context& context) {
  if (!describe_difference(map.grid(), grid, 1e-6).empty()) map = resampled(map, grid, context);
  map.set_geometry(grid);  // a single slice agrees whatever the spacing across it is
  for (int64_t i = 0; i < region.voxels(); ++i) {
    if (region[i] == 0) map[i] = outside;
  }
}

}  // namespace

const pbt::ImageModel& image_model(const models::VoxelModel& model) {
  return std::visit([](const pbt::ImageModel& m) -> const pbt::ImageModel& { return m; }, model);
}

bool has_background(const models::VoxelModel& model) {
  const forest::Model* forest = forest_of(model);
  return forest == nullptr || forest->background >= 0;
}

LabelTable classes_of(const models::VoxelModel& model) {
  const forest::Model* forest = forest_of(model);
  const pbt::ModelInfo& info = image_model(model).info;
  if (forest == nullptr) return {{info.class_value, info.class_name, {230, 60, 50}}};
  LabelTable table;
  for (size_t c = 0; c < forest->class_table.size(); ++c) {
    if (static_cast<int32_t>(c) == forest->background) continue;
    table.push_back(coloured(forest->class_table[c].value, forest->class_table[c].name));
  }
  return table;
}

forest::Wanted VoxelRequest::wanted() const {
  forest::Wanted wanted = maps;
  wanted.distribution = maps.distribution || probability;
  return wanted;
}

VoxelMaps evaluate_voxels(const models::VoxelModel& model,
                          const std::vector<Volume<int16_t>>& components,
                          const VoxelRequest& request, const Region& where, const Grid& grid,
                          const Context& context) {
  const Volume<uint8_t>& roi = where.in_model_space;
  const Volume<uint8_t>* region = roi.empty() ? nullptr : &roi;
  VoxelMaps maps;
  const forest::Model* forest = forest_of(model);
  if (forest == nullptr) {
    maps.probability =
        pbt::evaluate_volume<float>(std::get<pbt::Model>(model), components, request.trees,
                                    request.memory_bytes, context, region);
  } else {
    static_cast<forest::Maps&>(maps) = forest::evaluate_volume(
        *forest, components, request.wanted(), request.memory_bytes, context, region);
  }
  if (forest != nullptr && request.probability) {
    const auto around = static_cast<size_t>(forest->background);
    maps.probability = mapped<float>(maps.distribution[around], [](float p) { return 1 - p; });
    for (int64_t i = 0; i < roi.voxels(); ++i) {
      if (roi[i] == 0) maps.probability[i] = 0;
    }
  }
  const Volume<uint8_t>& inside = where.in_image;
  if (!maps.probability.empty()) bring_to(grid, maps.probability, inside, 0.0F, context);
  for (Volume<float>& map : maps.distribution) bring_to(grid, map, inside, 0.0F, context);
  for (LabelVolume& map : maps.leaves) bring_to(grid, map, inside, -1, context);
  for (LabelVolume& map : maps.labels) bring_to(grid, map, inside, 0, context);
  return maps;
}

int64_t slab_bytes(const models::VoxelModel& model, const Vec3i& size, const VoxelRequest& request,
                   bool roi, const Device& device) {
  if (const forest::Model* forest = forest_of(model)) {
    return forest::plan_slabs(*forest, size, request.wanted(), roi, request.memory_bytes, device)
        .bytes;
  }
  pbt::SlabProblem problem{size};
  problem.roi = roi;
  problem.on_gpu = device.is_cuda();
  problem.memory_bytes =
      request.memory_bytes > 0 ? request.memory_bytes : pbt::default_memory_bytes(device);
  return pbt::plan_slabs(std::get<pbt::Model>(model), problem).bytes;
}

LabelVolume classes_inside(const Volume<uint8_t>& mask, const models::VoxelModel& model,
                           const VoxelMaps& maps) {
  const forest::Model* forest = forest_of(model);
  if (forest == nullptr) {
    const int32_t value = image_model(model).info.class_value;
    return mapped<int32_t>(mask, [&](uint8_t m) { return m != 0 ? value : 0; });
  }
  const auto around = static_cast<size_t>(forest->background);
  LabelVolume labels(mask.grid(), forest->class_table[around].value);
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    if (mask[i] == 0) continue;
    labels[i] = forest->class_table[likeliest_structure(*forest, maps.distribution, i)].value;
  }
  return labels;
}

}  // namespace larch::pipeline
