// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
//
// Decision forests on the pictures of a folder (images/*.jpg, labels/*.png; 0: void), with the rows
// of figures 8, 9 and 10 of Sharp 2008 beside what this machine takes, and optionally ten trees of
// depth 10 on a volume with labels.
// usage: larch-forest-benchmark PICTURES [NORM.nii.gz ASEG.nii.gz]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "larch/core/device.h"
#include "larch/forest/evaluate.h"
#include "larch/forest/train.h"
#include "larch/io/image/image.h"

namespace {

using namespace larch;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// The median of seven runs after one that warms up.
double median_ms(const Context& context, const std::function<void()>& work) {
  std::vector<double> times;
  for (int k = 0; k < 8; ++k) {
    const auto start = Clock::now();
    work();
    wait_for(context.device);
    if (k > 0) times.push_back(ms_since(start));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void row(const char* what, double seed_ms, double ours_ms) {
  std::printf("| %s | %.4g | %.4g |\n", what, seed_ms, ours_ms);
}

voxels::TrainConfig picture_config() {
  voxels::TrainConfig config;
  config.classifier = voxels::ClassifierKind::kForest;
  config.labels.ignore = {0};
  config.labels.border_voxels = 0;
  config.space.components = {"red", "green", "blue"};
  config.space.intensity.rule = image::IntensityKind::kWindow;
  config.space.intensity.window_low = 0;
  config.space.intensity.window_high = 255;
  config.space.intensity.headroom = 0;
  config.features.channels.clear();
  using image::ChannelKind;
  config.features.filters = {
      {ChannelKind::kSmooth, {1, 2, 4}, voxels::FilterInput::kEach},
      {ChannelKind::kLaplacianOfGaussian, {1, 2, 4, 8}, voxels::FilterInput::kLuminance},
      {ChannelKind::kSmoothDerivativeX, {2, 4}, voxels::FilterInput::kLuminance},
      {ChannelKind::kSmoothDerivativeY, {2, 4}, voxels::FilterInput::kLuminance}};
  config.forest.reach = 25;
  config.forest.largest_box = 20;
  return config;
}
image::ModelSpace space_of(const voxels::TrainConfig& config) {
  return {{1, 1, 1}, image::Orientation::kOwn, config.space.intensity};
}

/// `count` pictures, the first ones again where there are fewer.
std::vector<voxels::TrainingVolume> read_pictures(const std::string& folder, size_t count,
                                                  const voxels::TrainConfig& config,
                                                  const Context& context) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<voxels::TrainingVolume> volumes;
  for (size_t k = 0; k < count; ++k) {
    const auto& path = paths[k % paths.size()];
    const LabelVolume labels = read_labels(folder + "/labels/" + path.stem().string() + ".png");
    const RgbImage rgb = read_rgb(path.string());
    std::vector<Volume<float>> components(3, Volume<float>(labels.grid()));
    for (size_t i = 0; i < rgb.rgb.size(); ++i) {
      components[i % 3][static_cast<int64_t>(i / 3)] = rgb.rgb[i];
    }
    volumes.push_back(forest::make_training_volume(path.string(), components, labels,
                                                   space_of(config), config.labels, context));
  }
  return volumes;
}

/// The components of a picture, repeated up to a size.
std::vector<Volume<int16_t>> tiled(const voxels::TrainingVolume& picture, const Vec3i& size) {
  std::vector<Volume<int16_t>> out;
  for (const Volume<int16_t>& from : picture.components()) {
    Volume<int16_t>& to = out.emplace_back(Grid{size, {1, 1, 1}, {0, 0, 0}, {}});
    for (int64_t i = 0; i < to.voxels(); ++i) {
      const Vec3i at = to.grid().voxel(i);
      to[i] = from({at.x % from.size().x, at.y % from.size().y, at.z % from.size().z});
    }
  }
  return out;
}

/// Filters and integrals, trees alone, and both, on an image that is on the device.
struct Times {
  double channels, trees, both;
};
Times evaluation(const forest::Model& model, const std::vector<Volume<int16_t>>& image,
                 const forest::Wanted& wanted, const Context& context) {
  std::vector<Buffer<int16_t>> there;
  std::vector<VolumeView<const int16_t>> views, resident;
  for (const auto& component : image) {
    views.push_back(component.view());
    const std::span<const int16_t> host(component.data(), static_cast<size_t>(component.voxels()));
    resident.push_back({there.emplace_back(context.device, host).data(), component.size()});
  }
  image::IntegralSet set =
      image::integral_set(views, model.channels, model.padding, model.reach_along(), context);
  const auto channels = [&] {
    image::integrate_resident(resident, model.channels, model.padding, set.layouts, set.data,
                              context);
  };
  const forest::ResidentModel opened(model, context.device);
  const auto trees = [&] { forest::evaluate(opened, set, wanted, context); };
  return {median_ms(context, channels), median_ms(context, trees), median_ms(context, [&] {
            channels();
            trees();
          })};
}

forest::Model trained(const std::vector<voxels::TrainingVolume>& volumes,
                      voxels::TrainConfig config, int trees, int depth, const Context& context) {
  config.forest.trees = trees;
  config.forest.depth = depth;
  return forest::train_forest(volumes, space_of(config), config, {}, nullptr, context);
}

void evaluation_rows(const std::vector<voxels::TrainingVolume>& pictures,
                     const voxels::TrainConfig& config, const Context& context) {
  voxels::TrainConfig four = config;  // classes that most pictures have, the others void
  auto of_four = pictures;
  for (auto& volume : of_four) {
    for (int32_t& label : volume.labels) {
      if (label != 1 && label != 2 && label != 3 && label != 7) label = voxels::kUnlabelled;
    }
  }
  const auto one = trained(pictures, config, 1, 8, context);
  const auto some = trained(pictures, config, 4, 8, context);
  const auto small = trained(of_four, four, 8, 8, context);
  const auto all = trained(pictures, config, 8, 8, context);
  const auto deep = trained(pictures, config, 8, 16, context);
  forest::Wanted leaves, distribution, labels;
  leaves.leaves = distribution.distribution = labels.labels = true;
  const struct {
    Vec3i size;
    double seed[6];
  } sizes[] = {{{320, 240, 1}, {8.5 + 7.0, 0.75, 3.0, 5.69, 6.85, 0}},
               {{640, 480, 1}, {15.5 + 16.6, 2.94, 12.1, 23.1, 25.9, 0}}};
  for (const auto& [size, seed] : sizes) {
    const auto image = tiled(pictures[0], size);
    const std::string at = std::to_string(size.x) + "x" + std::to_string(size.y) + ", ";
    const auto of = [&](const forest::Model& model, const forest::Wanted& wanted) {
      return evaluation(model, image, wanted, context);
    };
    const Times argmax = of(all, labels);
    row((at + "filters and integrals").c_str(), seed[0], argmax.channels);
    row((at + "TreeLeaf, 1 tree").c_str(), seed[1], of(one, leaves).trees);
    row((at + "ForestLeaves, 4 trees").c_str(), seed[2], of(some, leaves).trees);
    row((at + "Distribution, 8 trees, 4 classes").c_str(), seed[3], of(small, distribution).trees);
    row((at + "ArgMax, 8 trees of 256 leaves, all classes").c_str(), seed[4], argmax.trees);
    row((at + "the same with filters and integrals").c_str(), seed[0] + seed[4], argmax.both);
    row((at + "ArgMax, 8 trees of depth 16").c_str(), 0, of(deep, labels).trees);
  }
}

void training_rows(const std::string& folder, voxels::TrainConfig config, const Context& context) {
  const auto volumes = read_pictures(folder, 100, config, context);
  config.forest.samples_per_volume = 0;
  config.forest.bootstrap = false;
  config.forest.trees = 2;  // the second one is measured
  config.forest.depth = 8;
  std::vector<Clock::time_point> ends;
  forest::TrainHooks hooks;
  hooks.after_step = [&](const forest::PartialForest&) {
    wait_for(context.device);
    ends.push_back(Clock::now());
  };
  forest::train_forest(volumes, space_of(config), config, hooks, nullptr, context);
  const auto ms = [&](size_t from, size_t to) {
    return std::chrono::duration<double, std::milli>(ends[to] - ends[from]).count();
  };
  row("a round of 100 pictures, 128 leaves", 12200, ms(14, 15));
  row("a tree of 256 leaves", 98000, ms(7, 15));
}

void volume_row(const std::string& image, const std::string& labels, const Context& context) {
  voxels::TrainConfig config;
  config.labels.positive = {2, 41, 7, 46, 77, 85, 251, 252, 253, 254, 255};
  config.space.orientation = image::Orientation::kOwn;
  config.features.pyramid_levels = 1;
  config.forest.pool = voxels::ForestPool::kHaar;
  config.forest.samples_per_volume = 20000;
  const Volume<float> head = read_volume<float>(image);
  const auto volume = forest::make_training_volume(image, std::span(&head, 1), read_labels(labels),
                                                   space_of(config), config.labels, context);
  const auto model = trained({volume}, config, 10, 10, context);
  Volume<int16_t> part(Grid{{96, 97, 175}, {1, 1, 1}, {0, 0, 0}, {}});
  for (int64_t i = 0; i < part.voxels(); ++i) {
    const Vec3i at = part.grid().voxel(i);
    part[i] = volume.voxels({at.x + 80, at.y + 80, at.z + 40});
  }
  forest::Wanted wanted;
  wanted.distribution = true;
  row("96x97x175, 10 trees of depth 10", 294, evaluation(model, {part}, wanted, context).trees);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2 && argc != 4) {
      std::fprintf(stderr, "usage: larch-forest-benchmark PICTURES [NORM.nii.gz ASEG.nii.gz]\n");
      return 2;
    }
    Context context;
    context.threads = 2;
    context.seed = 1;
    if (cuda_device_count() > 0) context.device = Device::cuda();
    std::printf("%s\n| work | seed ms | ms |\n| --- | --- | --- |\n",
                describe(context.device, context.threads).c_str());
    const voxels::TrainConfig config = picture_config();
    evaluation_rows(read_pictures(argv[1], 70, config, context), config, context);
    training_rows(argv[1], config, context);
    if (argc == 4) volume_row(argv[2], argv[3], context);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "larch-forest-benchmark: error: %s\n", error.what());
    return 1;
  }
}
