// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/picture/qc.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "larch/core/error.h"
#include "larch/picture/text.h"

namespace larch::picture {
namespace {

constexpr int kMostPixels = 4096;
constexpr int kGap = 4;

struct Rgb {
  uint8_t r, g, b;
};

/// One index axis on the screen.
struct ScreenAxis {
  int axis;
  bool flipped;  ///< the index grows to the left or upwards
};

/// A slice as it is shown: index axis `normal` is fixed at `position`.
struct View {
  int normal, position;
  ScreenAxis across, down;
};

/// The index axis that is nearest to each world axis; each is taken once.
std::array<int, 3> index_axis_of_world(const Mat3& direction) {
  std::array<int, 3> out{-1, -1, -1};
  std::array<bool, 3> taken{};
  for (int round = 0; round < 3; ++round) {
    int best_world = -1, best_axis = -1;
    double best = -1;
    for (int world = 0; world < 3; ++world) {
      for (int axis = 0; axis < 3; ++axis) {
        const double size = std::fabs(direction.m[world][axis]);
        if (out[world] < 0 && !taken[axis] && size > best) {
          best = size;
          best_world = world;
          best_axis = axis;
        }
      }
    }
    out[best_world] = best_axis;
    taken[best_axis] = true;
  }
  return out;
}

/// The patient's side that an index axis runs to, forwards or backwards.
char letter_of(const Mat3& direction, int axis, bool backwards) {
  int world = 0;
  for (int w = 1; w < 3; ++w) {
    if (std::fabs(direction.m[w][axis]) > std::fabs(direction.m[world][axis])) world = w;
  }
  const bool positive = (direction.m[world][axis] > 0) != backwards;
  return (positive ? "LPS" : "RAI")[world];
}

/// For each index axis the slice in which most voxels have a label; the middle if none has.
Vec3i best_slices(const LabelVolume& labels, const LabelVolume* reference) {
  const Vec3i size = labels.size();
  for (const LabelVolume* volume : {&labels, reference}) {
    if (volume == nullptr) continue;
    std::array<std::vector<int64_t>, 3> area;
    for (int axis = 0; axis < 3; ++axis) area[axis].assign(size[axis], 0);
    bool any = false;
    for (int64_t i = 0; i < volume->voxels(); ++i) {
      if ((*volume)[i] == 0) continue;
      any = true;
      const Vec3i at = volume->grid().voxel(i);
      for (int axis = 0; axis < 3; ++axis) ++area[axis][at[axis]];
    }
    if (!any) continue;
    Vec3i best;
    for (int axis = 0; axis < 3; ++axis) {
      // Of several slices with the largest area, the middle one.
      const int64_t most = *std::max_element(area[axis].begin(), area[axis].end());
      const int64_t ties = std::count(area[axis].begin(), area[axis].end(), most);
      best[axis] = 0;
      for (int64_t before = (ties - 1) / 2; area[axis][best[axis]] != most || before-- > 0;) {
        ++best[axis];
      }
    }
    return best;
  }
  return {size.x / 2, size.y / 2, size.z / 2};
}

std::vector<View> choose_views(const Grid& grid, const Vec3i& slices) {
  const std::array<int, 3> axis = index_axis_of_world(grid.direction);
  // Across the screen grows x (to the patient's left) or y (to posterior), down grows y or falls z.
  const auto screen = [&](int world, bool grows) {
    const bool along = grid.direction.m[world][axis[world]] > 0;
    return ScreenAxis{axis[world], along != grows};
  };
  const std::array<View, 3> all{
      View{axis[2], slices[axis[2]], screen(0, true), screen(1, true)},    // axial
      View{axis[1], slices[axis[1]], screen(0, true), screen(2, false)},   // coronal
      View{axis[0], slices[axis[0]], screen(1, true), screen(2, false)}};  // sagittal
  std::vector<View> views;
  for (const View& view : all) {
    const bool line = grid.size[view.across.axis] == 1 || grid.size[view.down.axis] == 1;
    if (!line) views.push_back(view);
  }
  if (views.empty()) views.push_back(all[0]);
  return views;
}

/// Black and white, from quantiles of at most about a million voxels.
std::array<double, 2> window(const Volume<float>& image, const QcOptions& options) {
  const int64_t step = image.voxels() / 1000000 + 1;
  std::vector<float> sample;
  for (int64_t i = 0; i < image.voxels(); i += step) {
    if (std::isfinite(image[i])) sample.push_back(image[i]);
  }
  if (sample.empty()) return {0, 1};
  std::sort(sample.begin(), sample.end());
  const auto quantile = [&](double q) {
    const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(sample.size() - 1);
    return static_cast<double>(sample[static_cast<size_t>(std::lround(place))]);
  };
  const double low = quantile(options.window_low), high = quantile(options.window_high);
  return {low, high > low ? high : low + 1};
}

Rgb colour_of(int32_t label, const LabelTable& table) {
  for (const LabelEntry& entry : table) {
    const bool black = entry.rgb[0] == 0 && entry.rgb[1] == 0 && entry.rgb[2] == 0;
    if (entry.value == label && !black) return {entry.rgb[0], entry.rgb[1], entry.rgb[2]};
  }
  static constexpr std::array<Rgb, 8> kPalette{Rgb{255, 80, 80}, {80, 220, 80},   {80, 160, 255},
                                               {255, 220, 60},   {255, 110, 220}, {70, 230, 230},
                                               {255, 150, 50},   {180, 130, 255}};
  const int64_t turn = (static_cast<int64_t>(label) - 1) % 8;
  return kPalette[static_cast<size_t>(turn < 0 ? turn + 8 : turn)];
}

/// A view on the screen: `width` x `height` pixels from (left, top).
struct Panel {
  View view;
  int left = 0, top = 0, width = 0, height = 0;
};

/// Where a pixel lies on an index axis.
double index_at(int pixel, int pixels, int voxels, bool flipped) {
  const double at = (pixel + 0.5) / pixels * voxels - 0.5;
  return flipped ? voxels - 1 - at : at;
}

class Painter {
 public:
  Painter(const Volume<float>& image, const LabelVolume& labels, const QcOptions& options)
      : image_(image), labels_(labels), options_(options), window_(window(image, options)) {
    const Vec3i slices = best_slices(labels, options.reference);
    for (const View& view : choose_views(image.grid(), slices)) panels_.push_back({view});
    lay_out();
  }

  RgbImage paint() {
    for (const Panel& panel : panels_) {
      paint_image(panel);
      if (options_.reference != nullptr) {
        paint_contours(panel, *options_.reference, Rgb{255, 255, 255});
      }
      paint_contours(panel, labels_, std::nullopt);
      paint_letters(panel);
    }
    return std::move(picture_);
  }

 private:
  double extent_mm(int axis) const {
    return image_.grid().size[axis] * image_.grid().spacing_mm[axis];
  }

  void lay_out() {
    double width_mm = 0, height_mm = 0;
    for (const Panel& panel : panels_) {
      width_mm += extent_mm(panel.view.across.axis);
      height_mm = std::max(height_mm, extent_mm(panel.view.down.axis));
    }
    const Vec3d& spacing = image_.grid().spacing_mm;
    const int gaps = kGap * (static_cast<int>(panels_.size()) - 1);
    double per_mm = std::max((options_.min_width - gaps) / width_mm,
                             1 / std::min({spacing.x, spacing.y, spacing.z}));
    per_mm = std::min({per_mm, (kMostPixels - gaps - 3) / width_mm, kMostPixels / height_mm});
    int left = 0;
    for (Panel& panel : panels_) {
      const auto pixels = [&](int axis) {
        return std::clamp(static_cast<int>(std::ceil(extent_mm(axis) * per_mm - 1e-6)), 1,
                          kMostPixels);
      };
      panel.width = pixels(panel.view.across.axis);
      panel.height = pixels(panel.view.down.axis);
      panel.left = left;
      left += panel.width + kGap;
      picture_.height = std::max(picture_.height, panel.height);
    }
    picture_.width = left - kGap;
    picture_.rgb.assign(static_cast<size_t>(3) * picture_.width * picture_.height, 0);
    for (Panel& panel : panels_) panel.top = (picture_.height - panel.height) / 2;
  }

  void put(int x, int y, const Rgb& colour) {
    const size_t at = 3 * (static_cast<size_t>(y) * picture_.width + x);
    picture_.rgb[at] = colour.r;
    picture_.rgb[at + 1] = colour.g;
    picture_.rgb[at + 2] = colour.b;
  }

  /// The continuous index of a pixel of the panel.
  Vec3d index(const Panel& panel, int x, int y) const {
    const View& view = panel.view;
    Vec3d at;
    at[view.normal] = view.position;
    at[view.across.axis] =
        index_at(x, panel.width, image_.size()[view.across.axis], view.across.flipped);
    at[view.down.axis] =
        index_at(y, panel.height, image_.size()[view.down.axis], view.down.flipped);
    return at;
  }

  int32_t label_at(const Panel& panel, const LabelVolume& labels, int x, int y) const {
    const Vec3d at = index(panel, x, y);
    Vec3i voxel;
    for (int axis = 0; axis < 3; ++axis) {
      voxel[axis] =
          std::clamp(static_cast<int>(std::floor(at[axis] + 0.5)), 0, labels.size()[axis] - 1);
    }
    return labels(voxel);
  }

  /// Linear interpolation in the slice; values beyond the outermost voxel centres are repeated.
  double value_at(const Panel& panel, int x, int y) const {
    const Vec3d at = index(panel, x, y);
    const int u = panel.view.across.axis, v = panel.view.down.axis;
    Vec3i voxel;
    voxel[panel.view.normal] = panel.view.position;
    double sum = 0;
    for (int corner = 0; corner < 4; ++corner) {
      double weight = 1;
      for (const auto& [axis, upper] : {std::pair{u, corner & 1}, std::pair{v, corner >> 1}}) {
        const double low = std::floor(at[axis]), t = at[axis] - low;
        weight *= upper ? t : 1 - t;
        voxel[axis] = std::clamp(static_cast<int>(low) + upper, 0, image_.size()[axis] - 1);
      }
      if (weight > 0) sum += weight * image_(voxel);
    }
    return sum;
  }

  void paint_image(const Panel& panel) {
    for (int y = 0; y < panel.height; ++y) {
      for (int x = 0; x < panel.width; ++x) {
        const double share = (value_at(panel, x, y) - window_[0]) / (window_[1] - window_[0]);
        // Voxels that are not finite stay black.
        const auto grey = static_cast<uint8_t>(share > 0 ? std::min(share, 1.0) * 255 + 0.5 : 0.0);
        put(panel.left + x, panel.top + y, {grey, grey, grey});
      }
    }
  }

  void paint_contours(const Panel& panel, const LabelVolume& labels,
                      const std::optional<Rgb>& colour) {
    std::vector<int32_t> shown(static_cast<size_t>(panel.width) * panel.height);
    const auto at = [&](int x, int y) -> int32_t& {
      return shown[static_cast<size_t>(y) * panel.width + x];
    };
    for (int y = 0; y < panel.height; ++y) {
      for (int x = 0; x < panel.width; ++x) at(x, y) = label_at(panel, labels, x, y);
    }
    for (int y = 0; y < panel.height; ++y) {
      for (int x = 0; x < panel.width; ++x) {
        const int32_t label = at(x, y);
        const bool rim = (x > 0 && at(x - 1, y) != label) || (y > 0 && at(x, y - 1) != label) ||
                         (x + 1 < panel.width && at(x + 1, y) != label) ||
                         (y + 1 < panel.height && at(x, y + 1) != label);
        if (label != 0 && rim) {
          put(panel.left + x, panel.top + y, colour.value_or(colour_of(label, options_.colours)));
        }
      }
    }
  }

  void paint_letters(const Panel& panel) {
    if (image_.grid().frame == WorldFrame::kUnknown) return;
    const int scale = std::clamp(std::min(panel.width, panel.height) / 130, 1, 4);
    const int width = kLetterWidth * scale, height = kLetterHeight * scale, margin = 2 * scale;
    if (panel.width < 3 * width || panel.height < 3 * height) return;
    const Mat3& direction = image_.grid().direction;
    const View& view = panel.view;
    const auto letter = [&](const ScreenAxis& axis, bool start) {
      return letter_of(direction, axis.axis, axis.flipped != start);
    };
    const int middle_x = panel.left + (panel.width - width) / 2;
    const int middle_y = panel.top + (panel.height - height) / 2;
    const int right = panel.left + panel.width - width - margin;
    const int bottom = panel.top + panel.height - height - margin;
    draw_letter(picture_, panel.left + margin, middle_y, letter(view.across, true), scale);
    draw_letter(picture_, right, middle_y, letter(view.across, false), scale);
    draw_letter(picture_, middle_x, panel.top + margin, letter(view.down, true), scale);
    draw_letter(picture_, middle_x, bottom, letter(view.down, false), scale);
  }

  const Volume<float>& image_;
  const LabelVolume& labels_;
  const QcOptions& options_;
  std::array<double, 2> window_;
  std::vector<Panel> panels_;
  RgbImage picture_;
};

void require_same_grid(const Grid& image, const Grid& other, const char* name) {
  const std::string difference = describe_difference(image, other);
  if (!difference.empty()) {
    throw InputError("picture: the image and the " + std::string(name) +
                     " are on different grids: " + difference);
  }
}

}  // namespace

RgbImage qc_picture(const Volume<float>& image, const LabelVolume& labels,
                    const QcOptions& options) {
  if (image.empty()) throw InputError("picture: the image has no voxels");
  require_same_grid(image.grid(), labels.grid(), "labels");
  if (options.reference != nullptr) {
    require_same_grid(image.grid(), options.reference->grid(), "reference");
  }
  return Painter(image, labels, options).paint();
}

}  // namespace larch::picture
