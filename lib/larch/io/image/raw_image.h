// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "larch/io/image/image.h"

namespace larch::io {

/// Component types as files store them.
enum class Component {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kFloat32,
  kFloat64
};

/// "uint8", "float32", ...
std::string name_of(Component component);
int bytes_of(Component component);

/// The types of the components, in their order.
using ComponentTypes = std::tuple<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t,
                                  int64_t, float, double>;

/// Calls `use` with a value of the type of a component.
template <class F>
void with_type(Component component, F&& use) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    ((component == Component(I) ? use(std::tuple_element_t<I, ComponentTypes>{}) : void()), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<ComponentTypes>>{});
}

template <class T>
constexpr Component component_of() {
  return []<class... U>(std::tuple<U...>*) {
    static_assert((std::is_same_v<T, U> || ...));
    int at = 0;
    ((std::is_same_v<T, U> || (++at, false)) || ...);
    return Component(at);
  }(static_cast<ComponentTypes*>(nullptr));
}

/// What is taken only if ReadOptions::allow has the word for it; the texts are those of
/// require_allowed.
struct Doubt {
  Allow what_for{};
  std::string what, taken;
};

/// What a header promises.
struct Header {
  Grid grid{};
  Component component = Component::kUint8;
  int channels = 1;     ///< 1, or 3 or 4 if `colour`
  bool colour = false;  ///< the channels are red, green, blue and perhaps alpha
  double slope = 1;     ///< value = stored * slope + intercept
  double intercept = 0;
  FrameTimes times{};                   ///< of frames of one kind of time
  int64_t most_bytes = INT64_MAX;       ///< of all voxels, that the file can hold, inflated
  std::vector<std::string> warnings{};  ///< what the user should know of it, naming the file
  std::optional<Doubt> doubt{};         ///< whoever reads the image has to allow it
};

/// Voxels as stored, in the machine's byte order, channels interleaved.
struct RawImage {
  Header header{};
  std::vector<std::byte> voxels;  ///< of one frame, or of all of them one after another
};

/// How the palette of an indexed picture is read: as colours, or not at all, for label images.
enum class Palette { kExpand, kKeepIndices };

/// What of a file is read.
struct Selection {
  Palette palette = Palette::kExpand;
  std::optional<int> frame{};  ///< ReadOptions::frame
  bool has_frame_flag = true;  ///< ReadOptions::has_frame_flag
  bool all_frames = false;     ///< of an image that may have several; `frame` is not looked at
};

/// Frames first .. first + count - 1, counted from 0.
struct FrameRange {
  int64_t first = 0, count = 1;
};

/// The selection of the frame that `options` choose, or of none.
inline Selection selected_frame(const ReadOptions& options, Palette palette = Palette::kExpand) {
  return {palette, options.frame, options.has_frame_flag};
}

/// What a message tells to do about an image of several frames.
std::string frame_remedy(int frames, bool has_frame_flag);

/// Those of the `frames` of an image that are read. Throws InputError that says what to do if there
/// are several and none is chosen, or if the chosen one is not there.
FrameRange chosen_frames(const std::string& path, int frames, const Selection& selection);

/// Throws InputError if there are several components per voxel that are no colours.
void require_components(const std::string& path, const Header& header);

/// Bytes of the voxels of one frame of `header`; throws InputError if the sizes are not positive,
/// if their product overflows, or if all `frames` are more than header.most_bytes.
int64_t checked_bytes(const Header& header, const std::string& path, int frames = 1);

/// Memory for the voxels; throws MemoryError with needed and free bytes.
std::vector<std::byte> allocate_voxels(int64_t bytes, const std::string& path);

/// What a geometry may be in every format. Wide enough for a tenth of a nanometre and for the
/// longest table; beyond it float32, in which NIfTI and the meshes store positions, no longer tells
/// neighbouring voxels apart, or overflows.
constexpr double kFinestSpacingMm = 1e-7, kCoarsestSpacingMm = 1e4;
constexpr double kFarthestMm = 1e7;    ///< of any corner of the image from the origin of the world
constexpr double kRoundedAxis = 0.01;  ///< how far from 1 rounding takes the length of an axis

/// Throws InputError unless spacing, origin and direction are finite, the spacings and the eight
/// corners within the limits above, the columns of the direction unit vectors and it invertible.
/// Every reader calls it, with the size already in the grid.
void check_geometry(const Grid& grid, const std::string& path);

/// Applies slope, intercept and luminance and checks each value against T; see read_volume.
template <class T>
Volume<T> convert(const RawImage& raw, const std::string& path, const ReadOptions& options);

}  // namespace larch::io
