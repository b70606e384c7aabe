// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/itk/image_io.h"

#include <algorithm>
#include <exception>
#include <mutex>

#include <itkMetaDataObject.h>
#include <itkObjectFactoryBase.h>
#include <itkVersion.h>

#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"
#include "larch/io/itk/register_image_io.h"

namespace larch::io {
namespace {

/// An error of ours on its way through ITK.
class CarriedError : public itk::ExceptionObject {
 public:
  CarriedError(const std::string& what, std::exception_ptr carried)
      : itk::ExceptionObject(__FILE__, __LINE__, what, "larch"), cause(std::move(carried)) {}
  const char* GetNameOfClass() const override { return "CarriedError"; }
  std::exception_ptr cause;
};

template <class F>
void carried(F&& action) {
  try {
    action();
  } catch (const std::exception& error) {
    throw CarriedError(error.what(), std::current_exception());
  }
}

using ComponentEnum = itk::IOComponentEnum;
using TypePair = std::pair<ComponentEnum, Component>;
constexpr TypePair kTypes[] = {
    {ComponentEnum::UCHAR, Component::kUint8},      {ComponentEnum::CHAR, Component::kInt8},
    {ComponentEnum::USHORT, Component::kUint16},    {ComponentEnum::SHORT, Component::kInt16},
    {ComponentEnum::UINT, Component::kUint32},      {ComponentEnum::INT, Component::kInt32},
    {ComponentEnum::ULONG, Component::kUint64},     {ComponentEnum::LONG, Component::kInt64},
    {ComponentEnum::FLOAT, Component::kFloat32},    {ComponentEnum::DOUBLE, Component::kFloat64},
    {ComponentEnum::ULONGLONG, Component::kUint64}, {ComponentEnum::LONGLONG, Component::kInt64}};

/// Returns the type in which a rescaled image is given.
Component rescaled_component(Component stored) {
  return stored == Component::kFloat64 ? stored : Component::kFloat32;
}

template <class T>
void rescale(const Header& header, std::span<const std::byte> stored, T* to) {
  with_type(header.component, [&](auto type) {
    const auto* from = reinterpret_cast<const decltype(type)*>(stored.data());
    for (size_t i = 0; i < stored.size() / sizeof(type); ++i) {
      to[i] = static_cast<T>(static_cast<double>(from[i]) * header.slope + header.intercept);
    }
  });
}

/// A picture in the plane z = 0 is an image of two axes for ITK, which keeps its orientation then.
bool is_flat(const Header& header) {
  const Grid& grid = header.grid;
  const Mat3& m = grid.direction;
  return header.frames == 1 && grid.size.z == 1 && grid.spacing_mm.z == 1 &&
         grid.origin_mm.z == 0 && m.column(2) == Vec3d{0, 0, 1} && m.m[2][0] == 0 && m.m[2][1] == 0;
}

/// Returns the slices or frames of a region: a range of the last axis, of which all others are
/// whole.
FrameRange range_of(const itk::ImageIOBase& io, const itk::ImageIORegion& region) {
  const unsigned axes = io.GetNumberOfDimensions();
  FrameRange range{0, 1};
  for (unsigned axis = 0; axis < axes; ++axis) {
    const bool has = axis < region.GetImageDimension();
    const int64_t size = has ? static_cast<int64_t>(region.GetSize(axis)) : 1;
    const int64_t first = has ? static_cast<int64_t>(region.GetIndex(axis)) : 0;
    const auto all = static_cast<int64_t>(io.GetDimensions(axis));
    const bool is_last = axis + 1 == axes;
    if (first < 0 || size < 1 || size > all - first || (!is_last && size != all)) {
      throw UsageError(std::string("'") + io.GetFileName() +
                       "': a region that is no range of its last axis");
    }
    if (is_last) range = {first, size};
  }
  return range;
}

class ImageFactory : public itk::ObjectFactoryBase {
 public:
  using Self = ImageFactory;
  using Pointer = itk::SmartPointer<Self>;
  itkFactorylessNewMacro(Self);
  itkTypeMacro(ImageFactory, ObjectFactoryBase);
  const char* GetITKSourceVersion() const override { return ITK_SOURCE_VERSION; }
  const char* GetDescription() const override { return "Larch's readers and writers of images"; }

 protected:
  ImageFactory() {
    RegisterOverride("itkImageIOBase", "LarchImageIO", "Larch's image files", true,
                     itk::CreateObjectFunction<ImageIO>::New());
  }
};

}  // namespace

thread_local bool ImageIO::is_asked_by_larch = false;

void rethrow_carried(const itk::ExceptionObject& error) {
  if (const auto* ours = dynamic_cast<const CarriedError*>(&error)) {
    std::rethrow_exception(ours->cause);
  }
  throw InputError(error.GetDescription());
}

ImageIO::ImageIO() {
  for (const Format& format : formats()) {
    AddSupportedReadExtension(format.ending);
    if (format.is_written()) AddSupportedWriteExtension(format.ending);
  }
}

bool ImageIO::CanReadFile(const char* name) {
  return format_for_reading(name) != nullptr;
}

bool ImageIO::CanWriteFile(const char* name) {
  const Format* format = find_format(name);
  if (format == nullptr || !format->is_written()) return false;
  return is_asked_by_larch || file_extension(name) != ".dcm";
}

itk::ImageIORegion ImageIO::GenerateStreamableReadRegionFromRequestedRegion(
    const itk::ImageIORegion& requested) const {
  const unsigned axes = GetNumberOfDimensions();
  const bool by_range = axes == 4 || file_->reads_slices();
  itk::ImageIORegion region(axes);
  for (unsigned axis = 0; axis < axes; ++axis) {
    const bool is_asked = by_range && axis + 1 == axes && axis < requested.GetImageDimension();
    const bool is_first = axis == 3 && axis >= requested.GetImageDimension();  // of the frames
    region.SetIndex(axis, is_asked ? requested.GetIndex(axis) : 0);
    region.SetSize(axis, is_asked ? requested.GetSize(axis) : is_first ? 1 : GetDimensions(axis));
  }
  return region;
}

void ImageIO::take_geometry(const Header& header) {
  const Grid& grid = header.grid;
  const unsigned axes = header.frames > 1 ? 4 : is_flat(header) ? 2 : 3;
  const double fourth = header.times.step > 0 ? header.times.step : header.fourth_spacing;
  SetNumberOfDimensions(axes);
  for (unsigned axis = 0; axis < axes; ++axis) {
    const int i = static_cast<int>(axis);
    std::vector<double> direction(axes, 0);
    const bool is_time = axis == 3;
    if (is_time) direction[3] = 1;
    for (size_t row = 0; row < std::min(axes, 3U) && !is_time; ++row) {
      direction[row] = grid.direction.m[row][i];
    }
    SetDimensions(axis, static_cast<SizeValueType>(is_time ? header.frames : grid.size[i]));
    SetSpacing(axis, !is_time ? grid.spacing_mm[i] : fourth > 0 ? fourth : 1);
    SetOrigin(axis, is_time ? header.times.first : grid.origin_mm[i]);
    SetDirection(axis, direction);
  }
}

void ImageIO::ReadImageInformation() {
  carried([&] {
    const Format* format = format_for_reading(m_FileName);
    if (format == nullptr) bad_path(m_FileName, "not an image that Larch reads");
    try {
      file_ = format->open(m_FileName, options);
    } catch (const InputError&) {
      if (is_file(m_FileName)) refuse_placeholder(m_FileName, read_file(m_FileName, kBeginning));
      throw;
    }
    const Header& header = file_->header();
    checked_bytes(header, m_FileName);
    take_geometry(header);
    const Component component = header.is_rescaled() && !keeps_stored
                                    ? rescaled_component(header.component)
                                    : header.component;
    SetComponentType(std::ranges::find(kTypes, component, &TypePair::second)->first);
    SetNumberOfComponents(static_cast<unsigned>(header.channels));
    using Pixel = itk::IOPixelEnum;
    SetPixelType(header.channels == 1                    ? Pixel::SCALAR
                 : header.colour && header.channels == 3 ? Pixel::RGB
                 : header.colour && header.channels == 4 ? Pixel::RGBA
                                                         : Pixel::VECTOR);
    std::string warnings;
    for (const std::string& warning : header.warnings) warnings += warning + "\n";
    itk::MetaDataDictionary& words = GetMetaDataDictionary();
    const auto say = [&](const char* key, const std::string& value) {
      itk::EncapsulateMetaData<std::string>(words, key, value);
    };
    say("larch_world_frame", std::to_string(static_cast<int>(header.grid.frame)));
    say("larch_rescale_slope", number_text(header.slope, 17));
    say("larch_rescale_intercept", number_text(header.intercept, 17));
    say("larch_warnings", warnings);
  });
}

void ImageIO::read_region(void* buffer) {
  const Header& header = file_->header();
  const FrameRange range = range_of(*this, m_IORegion);
  int64_t unit = header.channels * bytes_of(header.component);  // bytes of a slice or frame
  for (unsigned axis = 0; axis + 1 < GetNumberOfDimensions(); ++axis) {
    unit *= static_cast<int64_t>(GetDimensions(axis));
  }
  const int64_t bytes = unit * range.count;
  if (!header.is_rescaled() || keeps_stored) {
    file_->read(unit * range.first, {static_cast<std::byte*>(buffer), static_cast<size_t>(bytes)});
    return;
  }
  std::vector<std::byte> stored = allocate_voxels(bytes, m_FileName);
  file_->read(unit * range.first, stored);
  if (rescaled_component(header.component) == Component::kFloat64) {
    rescale(header, stored, static_cast<double*>(buffer));
  } else {
    rescale(header, stored, static_cast<float*>(buffer));
  }
}

void ImageIO::Read(void* buffer) {
  carried([&] { read_region(buffer); });
}

/// Returns the image that other programs than ours have described by ITK's fields.
Pixels ImageIO::pixels_of_fields() const {
  Pixels out;
  out.grid.size = {1, 1, 1};
  const unsigned axes = GetNumberOfDimensions();
  if (axes > 4) throw UsageError("cannot write '" + m_FileName + "': more than four axes");
  for (unsigned axis = 0; axis < std::min(axes, 3U); ++axis) {
    const int i = static_cast<int>(axis);
    out.grid.size[i] = static_cast<int32_t>(GetDimensions(axis));
    out.grid.spacing_mm[i] = GetSpacing(axis);
    out.grid.origin_mm[i] = GetOrigin(axis);
    const std::vector<double> direction = GetDirection(axis);
    for (size_t row = 0; row < std::min<size_t>(direction.size(), 3); ++row) {
      out.grid.direction.m[row][axis] = direction[row];
    }
  }
  if (axes > 3) {
    out.frames = static_cast<int64_t>(GetDimensions(3));
    out.times = {GetSpacing(3), GetOrigin(3), 0};
  }
  const auto* type = std::ranges::find(kTypes, GetComponentType(), &TypePair::first);
  if (type == std::end(kTypes)) {
    throw UsageError("cannot write '" + m_FileName + "': numbers of no type that files hold");
  }
  out.component = type->second;
  out.channels = static_cast<int>(GetNumberOfComponents());
  out.colour = GetPixelType() == itk::IOPixelEnum::RGB;
  out.compressed = GetUseCompression();
  return out;
}

/// A whole file by the writer of its format, whose messages name the file that was asked for.
void ImageIO::write_whole(const Format& format, const Pixels& image) {
  std::string written;
  try {
    write_atomically(m_FileName, [&](const std::string& temporary) {
      written = temporary;
      format.write(temporary, image);
    });
  } catch (const UsageError& error) {
    std::string text = error.what();
    const size_t at = written.empty() ? text.npos : text.find(written);
    if (at != text.npos) text.replace(at, written.size(), m_FileName);
    throw UsageError(text);
  }
}

void ImageIO::write_region(const void* buffer) {
  const Format* format = find_format(m_FileName);
  if (format == nullptr || !format->is_written()) {
    throw UsageError("cannot write '" + m_FileName + "': the ending is none that Larch writes");
  }
  const FrameRange range = range_of(*this, m_IORegion);
  const auto all = static_cast<int64_t>(GetDimensions(GetNumberOfDimensions() - 1));
  if (range.first == 0) {  // ITK writes one image after another by one object
    out_.reset();
    written_ = 0;
  }
  Pixels image = pixels ? *pixels : pixels_of_fields();
  image.voxels = buffer;
  // Vectors stand in planes in NIfTI, so that they are no raw voxels behind a header.
  const bool is_nifti = file_extension(m_FileName).starts_with(".nii");
  const bool by_format = format->head == nullptr || image.compressed || is_nifti;
  if (range.count == all && by_format && format->write != nullptr) {
    return write_whole(*format, image);
  }
  if (format->head == nullptr || range.first != written_ || (is_nifti && image.channels > 1)) {
    throw UsageError("cannot write '" + m_FileName + "' in pieces");
  }
  const auto write_piece = [&](const std::string& path) {
    if (!out_) {
      const std::string head = format->head(m_FileName, image);
      const bool packs = file_extension(m_FileName) == ".nii.gz";
      out_ = std::make_unique<ZWriter>(path, packs, image.threads);
      out_->write(head.data(), static_cast<int64_t>(head.size()));
    }
    out_->write(buffer, image.bytes() / all * range.count);
    written_ += range.count;
    if (written_ < all) return;
    out_->close();
    out_.reset();
  };
  // Pieces go to a file that has a temporary name already.
  if (range.count == all) return write_atomically(m_FileName, write_piece);
  write_piece(m_FileName);
}

void ImageIO::Write(const void* buffer) {
  carried([&] {
    try {
      write_region(buffer);
    } catch (...) {
      out_.reset();
      written_ = -1;  // nothing may follow but a beginning
      throw;
    }
  });
}

}  // namespace larch::io

namespace larch {

void register_image_io() {
  static std::once_flag once;
  std::call_once(once, [] {
    itk::ObjectFactoryBase::RegisterFactory(
        io::ImageFactory::New(), itk::ObjectFactoryBase::InsertionPositionEnum::INSERT_AT_FRONT);
  });
}

}  // namespace larch
