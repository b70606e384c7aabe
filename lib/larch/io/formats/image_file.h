// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "larch/data/mesh.h"
#include "larch/data/volume.h"
#include "larch/files/file.h"
#include "larch/io/bytes/zstream.h"
#include "larch/io/formats/read_options.h"

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
    static_cast<void>(((std::is_same_v<T, U> || (++at, false)) || ...));
    return Component(at);
  }(static_cast<ComponentTypes*>(nullptr));
}

/// Holds what a header promises.
struct Header {
  Grid grid{};
  Component component = Component::kUint8;
  int channels = 1;       ///< values per voxel
  bool colour = false;    ///< the channels are red, green, blue and perhaps alpha, or were
  bool is_lossy = false;  ///< JPEG, which changes values
  int frames = 1;         ///< of one grid: volumes of a 4-D image, pictures of a cine
  double slope = 1;       ///< value = stored * slope + intercept
  double intercept = 0;
  bool is_rescaled() const { return slope != 1 || intercept != 0; }
  double fourth_spacing = 0;       ///< of an axis of frames that says nothing of times; 0: none
  FrameTimes times{};              ///< of frames of one kind of time
  int64_t most_bytes = INT64_MAX;  ///< of all voxels, that the file can hold, inflated
  std::vector<std::string> warnings{};  ///< what the user should know of it, naming the file
  LabelTable labels{};                  ///< the segments of a segmentation
  std::string no_volume{};              ///< why the frames make no volume, where that is in doubt
  /// Of DICOM, whose voxels are rescaled when they are read: how the file stores them.
  std::optional<std::pair<Component, int>> stored{};
};

/// How the palette of an indexed picture is read: as colours, or not at all, for label images.
enum class Palette { kExpand, kKeepIndices };

/// Frames first .. first + count - 1, counted from 0.
struct FrameRange {
  int64_t first = 0, count = 1;
};

/// Returns the frame of an image that is read. Throws InputError that says what to do if there are
/// several and none is chosen, or if the chosen one is not there.
FrameRange chosen_frame(const std::string& path, const Header& header, const ReadOptions& options);

/// Throws InputError if there are several components per voxel that are no colours.
void require_components(const std::string& path, const Header& header);

/// Returns bytes of the voxels of one frame of `header`; throws InputError if the sizes are not
/// positive, if their product overflows, or if all frames are more than header.most_bytes.
int64_t checked_bytes(const Header& header, const std::string& path);

/// Memory for the voxels; throws MemoryError with needed and free bytes.
std::vector<std::byte> allocate_voxels(int64_t bytes, const std::string& path);

/// Says what a geometry may be in every format. Wide enough for a tenth of a nanometre and for the
/// longest table; beyond it float32, in which NIfTI and the meshes store positions, no longer tells
/// neighbouring voxels apart, or overflows.
constexpr double kFinestSpacingMm = 1e-7, kCoarsestSpacingMm = 1e4;
constexpr double kRoundedAxis = 0.01;  ///< how far from 1 rounding takes the length of an axis

/// Throws InputError unless spacing, origin and direction are finite, the spacings and the eight
/// corners within the limits above, the columns of the direction unit vectors and it invertible.
/// Every reader calls it, with the size already in the grid.
void check_geometry(const Grid& grid, const std::string& path);

/// An image that is open: what its header says, and its voxels when they are asked for.
class ImageFile {
 public:
  explicit ImageFile(std::string path) : path_(std::move(path)) {}
  virtual ~ImageFile() = default;
  ImageFile(const ImageFile&) = delete;
  ImageFile& operator=(const ImageFile&) = delete;

  const std::string& path() const { return path_; }
  const Header& header() const { return header_; }

  /// Bytes of the voxels of all frames, in the machine's byte order, channels side by side, from
  /// byte `from` on. Whole slices are read; in ascending order best. Throws InputError,
  /// MemoryError.
  virtual void read(int64_t from, std::span<std::byte> to) = 0;
  /// Tells whether parts of a frame can be read.
  virtual bool reads_slices() const { return true; }
  /// Compares the check sum at the end of a compressed file of which a part was read.
  virtual void finish() {}
  /// Returns the files that are read.
  virtual std::vector<std::string> files() const { return {path_}; }

 protected:
  Header header_{};

 private:
  std::string path_;
};

/// The place of the voxels in a file, all frames one after another.
struct VoxelPlace {
  std::string path{};  ///< of the file that holds them
  Packing packing = Packing::kNone;
  int64_t byte = 0;            ///< of the file, where they or their stream begin
  int64_t skipped = 0;         ///< unpacked bytes before them
  bool swapped = false;        ///< other byte order than this machine's
  int64_t values_between = 1;  ///< voxels between the channels of one; 1: they stand side by side
  std::optional<FileStamp> stamp{};  ///< of a file that was known when its header was read
};

/// Throws InputError that tells damage of packed voxels from a truncated file.
[[noreturn]] void bad_voxels(const VoxelPlace& place,
                             const char* what = "voxels are missing at the end");

/// The voxels of a segment of 3D Slicer: those of one layer, which is a channel, with this value.
struct SegmentPlace {
  int layer = 0;
  int32_t stored = 1;
};

/// The header of a NIfTI, NRRD or MetaImage file.
struct StoredHeader {
  Header header{};
  std::vector<SegmentPlace> segments{};  ///< of header.labels, if these are segments of 3D Slicer
  std::string path{};                    ///< of the file that holds the header
  VoxelPlace place{};
};

/// The voxels of such a file: the one reader of raw, gzip and zlib data, whole or in batches.
class StoredImage : public ImageFile {
 public:
  /// `digest` is told that of the file of the voxels when these are read in one go.
  StoredImage(const std::string& path, StoredHeader stored, DigestSink digest);
  void read(int64_t from, std::span<std::byte> to) override;
  bool reads_slices() const override { return place_.values_between == 1; }
  void finish() override;
  std::vector<std::string> files() const override;

 private:
  void seek(int64_t from);

  std::string header_path_;
  VoxelPlace place_;
  int64_t frame_bytes_ = 0, all_bytes_ = 0, at_ = 0;
  std::unique_ptr<ZReader> in_;
  DigestSink digest_;
  bool is_hashed_ = false;  ///< what in_ reads
};

/// An image of a format whose decoder gives all voxels at once.
class DecodedImage : public ImageFile {
 public:
  using Decode = std::function<std::vector<std::byte>()>;
  DecodedImage(const std::string& path, Header header, Decode decode)
      : ImageFile(path), decode_(std::move(decode)) {
    header_ = std::move(header);
  }
  void read(int64_t from, std::span<std::byte> to) override;

 private:
  Decode decode_;
  std::vector<std::byte> voxels_;  ///< once a part of them was asked for
};

/// Options of opening an image.
struct OpenOptions {
  ReadOptions read{};
  Palette palette = Palette::kExpand;
  /// Frames of a sequence are wanted: DICOM gives its stored numbers and needs no place in space.
  bool is_sequence = false;
};

/// An image for a writer: grid.voxels() values of `frames` frames, or vectors of `channels` values.
struct Pixels {
  Grid grid{};
  Component component = Component::kUint8;
  const void* voxels = nullptr;  ///< those of a whole image; a header alone looks at none
  bool labels = false;           ///< for formats that can say so
  int threads = 1;               ///< that compress .nii.gz
  int channels = 1;              ///< more than 1: they stand side by side
  std::string description{};     ///< for the header, one line; may be empty
  bool colour = false;           ///< the channels are red, green and blue
  int64_t frames = 1;
  FrameTimes times{};  ///< of the frames
  /// NRRD and MetaImage: gzip and zlib. NIfTI goes by its ending, pictures are compressed anyway.
  bool compressed = true;
  /// Of NRRD: the segments of a segmentation of 3D Slicer, and for each of them the channel in
  /// which it is, whose axis is then one of layers.
  LabelTable segments{};
  std::vector<int> layers{};
  /// The bytes before the voxels of a DICOM file, which has more to say than a Pixels does.
  std::string head{};

  int64_t bytes() const { return grid.voxels() * channels * bytes_of(component) * frames; }
};

/// Throws UsageError unless the volume is 2-D.
void require_one_slice(const std::string& path, const Vec3i& size);

/// Throws UsageError unless the volume is 2-D and its type one of `allowed`.
void require_picture(const std::string& path, const Pixels& pixels,
                     std::initializer_list<Component> allowed);

}  // namespace larch::io
