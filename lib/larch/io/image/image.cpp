// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/image/image.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/host_memory.h"
#include "larch/core/portable_math.h"
#include "larch/core/text.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"
#include "larch/io/dicom/dicom_derived.h"
#include "larch/io/itk/door.h"

namespace larch {
namespace {

using io::bad;
using io::Component;
using io::Header;
using io::OpenImage;

// Scaling with a float32 slope leaves values such as 3.0000001, which are meant to be whole.
constexpr double kWholeTolerance = 1e-4;

template <class T>
bool fits(double value) {
  return value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
         value <= static_cast<double>(std::numeric_limits<T>::max());
}

// Counts what cannot be represented, so that one message can tell all of it.
struct Problem {
  int64_t count = 0, first = 0;
  double value = 0, lowest = 0, highest = 0;  ///< value: of the first

  void add(int64_t at, double one) {
    if (count++ == 0) {
      first = at;
      value = lowest = highest = one;
    }
    lowest = std::min(lowest, one);
    highest = std::max(highest, one);
  }
};
struct Problems {
  Problem not_finite{}, out_of_range{}, not_whole{};
};

template <class T>
T checked_value(double value, int64_t at, bool round, Problems& problems) {
  if (!std::isfinite(value)) {
    problems.not_finite.add(at, 0);
    return T{};
  }
  if constexpr (!std::is_floating_point_v<T>) {
    const double whole = std::nearbyint(value);
    if (!round && std::abs(value - whole) > kWholeTolerance) problems.not_whole.add(at, value);
    value = whole;
  }
  if (fits<T>(value)) return static_cast<T>(value);
  problems.out_of_range.add(at, value);
  return T{};
}

/// Applies slope, intercept and luminance to the stored voxels of one frame and checks each value
/// against T. The voxels may stand at the end of `out` itself: none is overwritten before it is
/// read.
template <class S, class T>
void convert_all(const Header& header, const std::byte* voxels, const ReadOptions& options,
                 Volume<T>& out, Problems& problems) {
  const auto stored = [&](int64_t i) {
    S number{};
    std::memcpy(&number, voxels + i * static_cast<int64_t>(sizeof(S)), sizeof(S));
    return static_cast<double>(number);
  };
  const bool scaled = header.is_rescaled();
  if (std::is_same_v<S, T> && !std::is_floating_point_v<S> && !scaled && header.channels == 1) {
    return;  // they were read to where they belong
  }
  const auto value_of = [&](int64_t i) {
    const int64_t at = i * header.channels;
    if (!header.colour || header.channels < 3) return stored(at);
    return 0.2126 * stored(at) + 0.7152 * stored(at + 1) + 0.0722 * stored(at + 2);
  };
  const auto checked = [&](double value, int64_t at) {
    if (options.nan_value && !std::isfinite(value)) value = *options.nan_value;
    if (std::is_floating_point_v<T> && options.keeps_not_finite && !std::isfinite(value))
      return static_cast<T>(value);
    return checked_value<T>(value, at, header.colour, problems);
  };
  constexpr int64_t kPiece = 512;
  std::array<double, kPiece> values;
  for (int64_t first = 0; first < out.voxels(); first += kPiece) {
    const int64_t count = std::min(kPiece, out.voxels() - first);
    int is_plain = 1;  // every value of the piece is one of T
    for (int64_t k = 0; k < count; ++k) {
      double value = value_of(first + k);
      if (scaled) value = value * header.slope + header.intercept;
      const bool is_whole = std::is_floating_point_v<T> || nearest_whole(value) == value;
      is_plain &= fits<T>(value) && is_whole ? 1 : 0;
      values[k] = value;
    }
    for (int64_t k = 0; k < count; ++k) {
      out[first + k] = is_plain != 0 ? static_cast<T>(values[k]) : checked(values[k], first + k);
    }
  }
}

template <class T>
void report(const Problems& problems, const Grid& grid, const std::string& path) {
  const auto& [not_finite, out_of_range, not_whole] = problems;
  const auto first_of = [&](const Problem& problem) {
    const Vec3i at = grid.voxel(problem.first);
    return ", the first at index (" + std::to_string(at.x) + "," + std::to_string(at.y) + "," +
           std::to_string(at.z) + ")";
  };
  if (not_finite.count > 0) {
    bad(path,
        std::to_string(not_finite.count) + " voxels are NaN or infinite" + first_of(not_finite) +
            (std::is_floating_point_v<T> ? "; give --nan-value to replace them, or repair the image"
                                         : "; whole numbers are needed: repair the image"));
  }
  const std::string wanted = io::name_of(io::component_of<T>());
  if (not_whole.count > 0) {
    bad(path, std::to_string(not_whole.count) + " voxels are not whole numbers" +
                  first_of(not_whole) + " (" + number_text(not_whole.value, 9) + "), but " +
                  wanted +
                  " is needed here; is it a label image, and resampled with the nearest "
                  "neighbour?");
  }
  if (out_of_range.count > 0) {
    bad(path, std::to_string(out_of_range.count) + " voxels do not fit " + wanted +
                  " (values from " + number_text(out_of_range.lowest, 9) + " to " +
                  number_text(out_of_range.highest, 9) + ")" + first_of(out_of_range) +
                  "; rescale the image");
  }
}

template <class T>
Volume<T> volume_of(const Grid& grid, const std::string& path) {
  const size_t bytes = static_cast<size_t>(grid.voxels()) * sizeof(T);
  try {
    if (host_memory_allows(bytes)) return Volume<T>::unfilled(grid);
  } catch (const std::bad_alloc&) {
  }
  throw MemoryError("'" + path + "': " + out_of_memory_text(bytes));
}

/// Returns the chosen frame of an image, which is converted in its own memory where that has the
/// room.
template <class T>
Volume<T> read_frame(const std::string& path, OpenImage& image, const ReadOptions& choice,
                     const ReadOptions& conversion) {
  const Header& header = image.header();
  const io::FrameRange frame = io::chosen_frame(path, header, choice);
  io::require_components(path, header);
  if (choice.warn) std::ranges::for_each(header.warnings, choice.warn);
  const int64_t bytes = io::checked_bytes(header, path);
  const int64_t room = header.grid.voxels() * static_cast<int64_t>(sizeof(T));
  const bool in_place = header.channels == 1 && bytes <= room;
  Volume<T> out;
  std::vector<std::byte> stored;
  if (in_place) {
    out = volume_of<T>(header.grid, path);
  } else {
    stored = io::allocate_voxels(bytes, path);
  }
  std::byte* voxels =
      in_place ? reinterpret_cast<std::byte*>(out.data()) + (room - bytes) : stored.data();
  image.read(header.frames > 1 ? frame : io::FrameRange{0, header.grid.size.z}, voxels);
  image.file().finish();
  if (!in_place) out = volume_of<T>(header.grid, path);
  Problems problems;
  io::with_type(header.component, [&](auto type) {
    convert_all<decltype(type)>(header, voxels, conversion, out, problems);
  });
  report<T>(problems, header.grid, path);
  return out;
}

struct LabelRange {
  int32_t lowest = 0, highest = 0;

  void operator()(int32_t label) {
    lowest = std::min(lowest, label);
    highest = std::max(highest, label);
  }
  template <class T>
  bool fits() const {
    return lowest >= std::numeric_limits<T>::min() && highest <= std::numeric_limits<T>::max();
  }
  /// Calls `use` with a value of the smallest type that holds all labels.
  template <class F>
  void with_smallest(const F& use) const {
    if (fits<uint8_t>()) return use(uint8_t{});
    if (fits<int16_t>()) return use(int16_t{});
    if (fits<uint16_t>()) return use(uint16_t{});
    use(int32_t{});
  }
};

template <class T, class From>
void write_series_as(const std::string& path, std::span<const Volume<From>> frames,
                     const FrameTimes& times, int threads) {
  const Grid& grid = frames[0].grid();
  Volume<T> small(grid);
  io::Pixels pixels{grid, io::component_of<T>(), nullptr, std::is_same_v<From, int32_t>, threads};
  pixels.frames = static_cast<int64_t>(frames.size());
  pixels.times = times;
  io::ImageStream out(path, pixels);
  const int64_t pieces = frames.size() == 1 ? grid.size.z : 1;
  for (const Volume<From>& frame : frames) {
    std::transform(frame.begin(), frame.end(), small.begin(),
                   [](From value) { return static_cast<T>(value); });
    out.write(small.data(), pieces);
  }
}

}  // namespace

template <class T>
Volume<T> read_volume(const std::string& path, const ReadOptions& options) {
  OpenImage image(path, {options});
  return read_frame<T>(path, image, options, options);
}
template Volume<float> read_volume(const std::string&, const ReadOptions&);
template Volume<int16_t> read_volume(const std::string&, const ReadOptions&);
template Volume<int32_t> read_volume(const std::string&, const ReadOptions&);
template Volume<uint8_t> read_volume(const std::string&, const ReadOptions&);

LabelVolume read_labels(const std::string& path, const ReadOptions& options) {
  OpenImage image(path, {options, io::Palette::kKeepIndices});
  if (image.header().colour) {
    bad(path, "a colour picture cannot be read as labels; save it as grey or indexed");
  }
  if (image.header().is_lossy) {
    bad(path, "JPEG is lossy, so that labels are no longer what they were; save them as PNG");
  }
  return read_frame<int32_t>(path, image, options, {});
}

ImageInfo probe_image(const std::string& path, const ReadOptions& options) {
  const OpenImage image(path, {options});
  const Header& header = image.header();
  const auto [component, channels] =
      header.stored.value_or(std::pair(header.component, header.channels));
  ImageInfo info;
  info.grid = header.grid;
  info.component_type = io::name_of(component);
  info.components = channels;
  info.times = header.times;
  info.labels = header.labels;
  info.frames = header.frames;
  // Frames of NIfTI and its kin are told of, and refused only when they are read.
  if (options.frame || !header.no_volume.empty()) {
    info.frames = static_cast<int>(io::chosen_frame(path, header, options).count);
  }
  info.bytes = header.grid.voxels() * channels * io::bytes_of(component) * info.frames;
  return info;
}

std::vector<std::string> detached_files(const std::string& path) {
  std::vector<std::string> files;
  try {
    if (is_file(path)) files = OpenImage(path, {}).file().files();
  } catch (const std::exception&) {  // reading the image says what is wrong
  }
  std::erase(files, path);
  return files;
}

template <class T>
void write_volume(const std::string& path, const Volume<T>& volume, int threads,
                  const std::string& description) {
  io::write_image(
      path, {volume.grid(), io::component_of<T>(), volume.data(), false, threads, 1, description});
}
template void write_volume(const std::string&, const Volume<uint8_t>&, int, const std::string&);
template void write_volume(const std::string&, const Volume<uint16_t>&, int, const std::string&);
template void write_volume(const std::string&, const Volume<int16_t>&, int, const std::string&);
template void write_volume(const std::string&, const Volume<int32_t>&, int, const std::string&);
template void write_volume(const std::string&, const Volume<float>&, int, const std::string&);

void write_vector_field(const std::string& path, const VectorField& field, int threads) {
  static_assert(sizeof(Vec3f) == 3 * sizeof(float));
  if (file_extension(path) == ".dcm") io::require_writable(path);
  io::write_image(path, {field.grid(), Component::kFloat32, field.data(), false, threads, 3});
}

void require_png_extension(const std::string& path, const std::string& flag) {
  if (file_extension(path) == ".png") return;
  throw UsageError("cannot write '" + path + "': " + flag + " writes a picture that ends in .png");
}

void require_image_extension(const std::string& path) {
  io::require_writable(path);
}

void require_image_holds(const std::string& path, const Vec3i& size) {
  io::require_holds(path, size);
}

RgbImage read_rgb(const std::string& path) {
  OpenImage image(path, {});
  const Header& header = image.header();
  const bool wide = header.component == Component::kUint16;
  if (header.frames > 1 || header.grid.size.z != 1 ||
      (!wide && header.component != Component::kUint8)) {
    bad(path, "not a picture of 8 or 16 bits, so it has no colours to read");
  }
  io::require_components(path, header);
  std::vector<std::byte> voxels = io::allocate_voxels(io::checked_bytes(header, path), path);
  image.read({0, 1}, voxels.data());
  RgbImage picture{header.grid.size.x, header.grid.size.y, {}};
  picture.rgb.resize(static_cast<size_t>(header.grid.voxels()) * 3);
  const auto* bytes = reinterpret_cast<const uint8_t*>(voxels.data());
  const size_t channels = static_cast<size_t>(header.channels);
  for (size_t i = 0; i < picture.rgb.size(); ++i) {
    const size_t component = i / 3 * channels + (channels >= 3 ? i % 3 : 0);
    picture.rgb[i] = wide ? bytes[2 * component + 1] : bytes[component];  // the high byte
  }
  return picture;
}

void write_png(const std::string& path, const RgbImage& picture) {
  Grid grid;
  grid.size = {picture.width, picture.height, 1};
  io::write_image(path,
                  {grid, Component::kUint8, picture.rgb.data(), false, 1, 3, {}, /*colour=*/true});
}

void require_series_ending(const std::string& path) {
  const std::string ending = file_extension(path);
  if (ending == ".nii" || ending == ".nii.gz") return;
  throw UsageError("cannot write '" + path + "': the volumes of a series go to .nii or .nii.gz");
}

template <class T>
void write_volume_series(const std::string& path, std::span<const Volume<T>> frames, int threads) {
  require_series_ending(path);
  write_atomically(path, [&](const std::string& temporary) {
    write_series_as<T>(temporary, frames, {}, threads);
  });
}
template void write_volume_series(const std::string&, std::span<const Volume<uint8_t>>, int);
template void write_volume_series(const std::string&, std::span<const Volume<uint16_t>>, int);
template void write_volume_series(const std::string&, std::span<const Volume<float>>, int);

void write_labelmap(const std::string& path, const LabelVolume& labels, const LabelTable& table,
                    int threads) {
  if (file_extension(path) == ".seg.nrrd") {
    return write_segmentation(path, {&labels, 1}, table, threads);
  }
  LabelRange range;
  std::ranges::for_each(labels, std::ref(range));
  // Labels of the table that happen to be absent count too: all cases of a study get one type.
  for (const LabelEntry& entry : table) range(entry.value);
  range.with_smallest([&]<class T>(T) {
    const auto small = mapped<T>(labels, [](int32_t label) { return label; });
    io::write_image(path, {labels.grid(), io::component_of<T>(), small.data(), true, threads});
  });
}

LabelEntry coloured_label(int32_t value, const std::string& name) {
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

void write_segmentation(const std::string& path, std::span<const LabelVolume> layers,
                        const LabelTable& table, int threads) {
  const Grid& grid = layers[0].grid();
  io::Pixels pixels{grid, Component::kInt32, nullptr, true, threads};
  pixels.channels = static_cast<int>(layers.size());
  pixels.segments = table;
  pixels.layers.assign(table.size(), 0);
  LabelRange range;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (const int32_t value : labels_in(layers[layer])) {
      if (value == 0) continue;
      const auto known = std::ranges::find(pixels.segments, value, &LabelEntry::value);
      const auto at = static_cast<size_t>(known - pixels.segments.begin());
      if (known == pixels.segments.end()) {
        pixels.segments.push_back(coloured_label(value, "Segment_" + std::to_string(value)));
        pixels.layers.push_back(0);
      }
      pixels.layers[at] = static_cast<int>(layer);
    }
  }
  for (LabelEntry& entry : pixels.segments) {
    const bool is_black = entry.rgb[0] + entry.rgb[1] + entry.rgb[2] == 0;
    if (is_black) entry = coloured_label(entry.value, entry.name);
    range(entry.value);
  }
  range.with_smallest([&]<class T>(T) {
    const auto voxels = static_cast<size_t>(grid.voxels());
    std::vector<T> all(voxels * layers.size());
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = static_cast<T>(layers[i % layers.size()][static_cast<int64_t>(i / layers.size())]);
    }
    pixels.component = io::component_of<T>();
    pixels.voxels = all.data();
    io::write_image(path, pixels);
  });
}

void write_labelmap_series(const std::string& path, std::span<const LabelVolume> frames,
                           const FrameTimes& times, int threads) {
  require_series_ending(path);
  LabelRange range;
  for (const LabelVolume& frame : frames) std::ranges::for_each(frame, std::ref(range));
  write_atomically(path, [&](const std::string& temporary) {
    if (range.fits<uint8_t>()) return write_series_as<uint8_t>(temporary, frames, times, threads);
    if (range.fits<uint16_t>()) return write_series_as<uint16_t>(temporary, frames, times, threads);
    write_series_as<int32_t>(temporary, frames, times, threads);
  });
}

void write_label_table(const std::string& path, const LabelTable& table) {
  const bool is_slicer = file_extension(path) == ".ctbl";
  std::string text = is_slicer ? "0 background 0 0 0 0\n" : "index\tname\tcolor\n";
  for (const LabelEntry& entry : table) {
    if (is_slicer && (entry.value < 0 || entry.value > 32768)) {
      throw UsageError("cannot write '" + path + "': a table of 3D Slicer has no place for label " +
                       std::to_string(entry.value) + "; end the name with .tsv");
    }
    const auto colour = formatted(is_slicer ? "%d %d %d 255" : "#%02x%02x%02x", entry.rgb[0],
                                  entry.rgb[1], entry.rgb[2]);
    std::string name = entry.name;
    std::replace_if(
        name.begin(), name.end(),
        [&](unsigned char c) { return c < 32 || c == 127 || (is_slicer && c == ' '); },
        is_slicer ? '_' : ' ');
    const char between = is_slicer ? ' ' : '\t';
    text += std::to_string(entry.value) + between + name + between + colour + "\n";
  }
  write_file(path, text);
}

namespace {

using io::decimal, io::decimals, io::DicomWriter;

void put_identity(DicomWriter& out, const DicomSeriesNames& names, int slice) {
  out.text(0x0008'0008, "CS", "DERIVED\\PRIMARY\\OTHER");    // ImageType
  out.text(0x0008'0016, "UI", "1.2.840.10008.5.1.4.1.1.4");  // MR image storage
  out.text(0x0008'0018, "UI", dicom_uid(names.series_uid + " " + std::to_string(slice)));
  out.text(0x0008'0060, "CS", "MR");  // Modality
  out.text(0x0008'0070, "LO", "Larch");
  out.text(0x0008'103e, "LO", names.description);
  out.text(0x0010'0010, "PN", names.patient_name);
  out.text(0x0010'0020, "LO", names.patient_id);
  out.text(0x0018'0020, "CS", "RM");    // ScanningSequence: research mode
  out.text(0x0018'0021, "CS", "NONE");  // SequenceVariant
  out.text(0x0018'0022, "CS", "");      // ScanOptions
  out.text(0x0018'0023, "CS", "3D");    // MRAcquisitionType
  out.text(0x0018'0081, "DS", "");      // EchoTime
  out.text(0x0018'0091, "IS", "");      // EchoTrainLength
  out.text(0x0018'5100, "CS", "HFS");   // PatientPosition
  out.text(0x0020'000d, "UI", names.study_uid);
  out.text(0x0020'000e, "UI", names.series_uid);
  out.text(0x0020'0010, "SH", "1");  // StudyID
  out.text(0x0020'0011, "IS", "1");  // SeriesNumber
  out.text(0x0020'0013, "IS", std::to_string(slice + 1));
  out.text(0x0020'0052, "UI", names.reference_frame_uid);
  out.text(0x0020'1040, "LO", "");  // PositionReferenceIndicator
  io::put_least(out, io::kStudyRows);
}

void put_geometry(DicomWriter& out, const Grid& grid, int slice) {
  const Vec3d row = grid.direction.column(0), column = grid.direction.column(1);
  const Vec3d position = world_from_index(grid, {0, 0, static_cast<double>(slice)});
  out.text(0x0018'0050, "DS", decimal(grid.spacing_mm.z));  // SliceThickness
  if (grid.size.z > 1) out.text(0x0018'0088, "DS", decimal(grid.spacing_mm.z));
  out.text(0x0020'0032, "DS", decimals(std::array{position.x, position.y, position.z}));
  out.text(0x0020'0037, "DS",
           decimals(std::array{row.x, row.y, row.z, column.x, column.y, column.z}));
  // PixelSpacing is between rows, then between columns.
  out.text(0x0028'0030, "DS", decimals(std::array{grid.spacing_mm.y, grid.spacing_mm.x}));
}

}  // namespace

void write_dicom_slice(const std::string& path, const Volume<int16_t>& volume, int slice,
                       const DicomSeriesNames& names) {
  const Grid& grid = volume.grid();
  const Vec3d normal = cross(grid.direction.column(0), grid.direction.column(1));
  if (norm(normal - grid.direction.column(2)) > 1e-6) {
    throw UsageError("'" + path +
                     "': DICOM holds voxel grids with a right-handed, orthogonal direction; write "
                     "NIfTI, NRRD or MetaImage");
  }
  if (grid.size.x > 65535 || grid.size.y > 65535) {
    throw UsageError("'" + path + "': DICOM holds at most 65535 rows and columns, this is " +
                     describe(grid));
  }
  DicomWriter out;
  put_identity(out, names, slice);
  put_geometry(out, grid, slice);
  out.pixels(grid.size, 16, 16, /*has_sign=*/true);
  io::Pixels pixels{grid, io::Component::kInt16};
  pixels.grid.size.z = 1;
  pixels.voxels = volume.data() + pixels.grid.voxels() * slice;
  pixels.head =
      out.file() + io::dicom_element_head(0x7fe0'0010, "OW", static_cast<uint32_t>(pixels.bytes()));
  io::write_image(path, pixels);
}

}  // namespace larch
