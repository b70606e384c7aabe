// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/itk/itk_image.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include <itkBioRadImageIO.h>
#include <itkGiplImageIO.h>
#include <itkMRCImageIO.h>
#include <itkTIFFImageIO.h>
#include <itkVTKImageIO.h>

#include "larch/core/error.h"
#include "larch/core/guard.h"
#include "larch/files/file.h"
#include "larch/io/formats/tiff_check.h"
#include "larch/io/image/message.h"
#include "larch/io/itk/raw_check.h"
#include "larch/io/itk/vtk_check.h"

namespace larch::io {
namespace {

// ITK's messages name its own source files; the last line says what went wrong.
std::string reason(const itk::ExceptionObject& error) {
  std::string text = error.GetDescription();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

// Runs an action of ITK and turns what it throws into an InputError that names the file.
template <class F>
void guarded_by_itk(const std::string& path, F&& action) {
  try {
    action();
  } catch (const Error&) {
    throw;
  } catch (const itk::ExceptionObject& error) {
    bad(path,
        "cannot be read, it is damaged, truncated or of another format (" + reason(error) + ")");
  } catch (const std::bad_alloc&) {
    throw MemoryError("'" + path + "': not enough host memory to read it");
  } catch (const std::exception& error) {
    bad(path, std::string("cannot be read (") + error.what() + ")");
  }
}

using Type = itk::IOComponentEnum;
constexpr std::pair<Type, Component> kTypes[] = {
    {Type::UCHAR, Component::kUint8},   {Type::CHAR, Component::kInt8},
    {Type::USHORT, Component::kUint16}, {Type::SHORT, Component::kInt16},
    {Type::UINT, Component::kUint32},   {Type::INT, Component::kInt32},
    {Type::ULONG, Component::kUint64},  {Type::ULONGLONG, Component::kUint64},
    {Type::LONG, Component::kInt64},    {Type::LONGLONG, Component::kInt64},
    {Type::FLOAT, Component::kFloat32}, {Type::DOUBLE, Component::kFloat64}};

Component component_of(const itk::ImageIOBase& io, const std::string& path) {
  for (const auto& [type, component] : kTypes) {
    if (type == io.GetComponentType()) return component;
  }
  bad(path, "its component type is not supported; convert to float32 or an integer type");
}

int checked_size(itk::SizeValueType n, const std::string& path) {
  if (n < 1 || n > static_cast<itk::SizeValueType>(std::numeric_limits<int32_t>::max())) {
    bad(path, "the header gives a size of " + std::to_string(n) +
                  " along an axis; the file is empty or damaged");
  }
  return static_cast<int>(n);
}

Header header_of(const itk::ImageIOBase& io, const std::string& path) {
  Header header;
  const unsigned dimensions = io.GetNumberOfDimensions();
  if (dimensions > 3) bad(path, "more than three dimensions; it is damaged, or of several frames");
  if (dimensions < 1) bad(path, "the header gives a size of 0; the file is empty or damaged");
  header.grid.size = {1, 1, 1};
  for (unsigned axis = 0; axis < dimensions; ++axis) {
    header.grid.size[static_cast<int>(axis)] = checked_size(io.GetDimensions(axis), path);
  }
  header.component = component_of(io, path);
  header.channels = static_cast<int>(io.GetNumberOfComponents());
  using Pixel = itk::IOPixelEnum;
  const bool of_colours = io.GetPixelType() == Pixel::SCALAR || io.GetPixelType() == Pixel::RGB ||
                          io.GetPixelType() == Pixel::RGBA;
  header.colour = of_colours && header.channels > 1 && header.channels <= 4;
  return header;
}

/// Spacing, origin and direction as ITK has them, which is LPS mm.
void take_geometry(const itk::ImageIOBase& io, Grid& grid) {
  const unsigned dimensions = std::min(io.GetNumberOfDimensions(), 3U);
  for (unsigned axis = 0; axis < dimensions; ++axis) {
    const int i = static_cast<int>(axis);
    grid.spacing_mm[i] = io.GetSpacing(axis);
    grid.origin_mm[i] = io.GetOrigin(axis);
    const std::vector<double> direction = io.GetDirection(axis);
    for (size_t row = 0; row < std::min<size_t>(direction.size(), 3); ++row) {
      grid.direction.m[row][axis] = direction[row];
    }
  }
}

itk::ImageIOBase::Pointer open(const std::string& path, itk::ImageIOBase::Pointer io) {
  itk::Object::GlobalWarningDisplayOff();  // ITK would write them to the terminal of the program
  guarded_by_itk(path, [&] {
    io->SetFileName(path);
    if (!io->CanReadFile(path.c_str())) {
      bad(path, "its content is not what its ending says, or is damaged");
    }
    io->ReadImageInformation();
  });
  return io;
}

void read_voxels(itk::ImageIOBase& io, const std::string& path, void* voxels) {
  guarded_by_itk(path, [&] {
    itk::ImageIORegion region(io.GetNumberOfDimensions());
    for (unsigned axis = 0; axis < io.GetNumberOfDimensions(); ++axis) {
      region.SetIndex(axis, 0);
      region.SetSize(axis, io.GetDimensions(axis));
    }
    io.SetIORegion(region);
    io.Read(voxels);
  });
}

}  // namespace

Header probe_tiff(const std::string& path) {
  const int64_t most_bytes = check_tiff(path);
  Header header = header_of(*open(path, itk::TIFFImageIO::New().GetPointer()), path);
  header.most_bytes = most_bytes;
  check_geometry(header.grid, path);
  return header;
}

RawImage read_tiff(const std::string& path) {
  const int64_t most_bytes = check_tiff(path);
  const auto io = open(path, itk::TIFFImageIO::New().GetPointer());
  RawImage raw{header_of(*io, path), {}};
  check_geometry(raw.header.grid, path);
  if (raw.header.channels > 1 && !raw.header.colour) {
    bad(path, std::to_string(raw.header.channels) +
                  " components per voxel; write one of them to a file of its own");
  }
  raw.header.most_bytes = most_bytes;
  const int64_t bytes = checked_bytes(raw.header, path);
  raw.voxels = allocate_voxels(bytes, path);
  if (static_cast<int64_t>(io->GetImageSizeInBytes()) != bytes) {
    bad(path, "the header contradicts itself about its size; it is damaged");
  }
  read_voxels(*io, path, raw.voxels.data());
  return raw;
}

void write_tiff(const std::string& path, const Grid& grid, Component component,
                const void* voxels) {
  const int64_t bytes = grid.voxels() * bytes_of(component);
  bool sound = false;
  try {
    auto io = itk::TIFFImageIO::New();
    io->SetFileName(path);
    io->SetNumberOfDimensions(2);
    for (unsigned axis = 0; axis < 2; ++axis) {
      io->SetDimensions(axis, static_cast<itk::SizeValueType>(grid.size[static_cast<int>(axis)]));
      io->SetSpacing(axis, 1);
    }
    io->SetPixelType(itk::IOPixelEnum::SCALAR);
    io->SetNumberOfComponents(1);
    io->SetComponentType(
        std::ranges::find(kTypes, component, &std::pair<Type, Component>::second)->first);
    io->SetCompressor("DEFLATE");
    io->UseCompressionOn();
    itk::ImageIORegion region(2);
    for (unsigned axis = 0; axis < 2; ++axis) region.SetSize(axis, io->GetDimensions(axis));
    io->SetIORegion(region);
    io->Write(voxels);
    const RawImage back = read_tiff(path);
    sound = static_cast<int64_t>(back.voxels.size()) == bytes &&
            std::memcmp(back.voxels.data(), voxels, back.voxels.size()) == 0;
  } catch (const itk::ExceptionObject&) {
  } catch (const InputError&) {
  }
  if (!sound) {
    throw OutputError("cannot write '" + path +
                      "': what was written does not read back: check the free space");
  }
}

namespace {

/// A format that ITK reads behind a check of ours.
struct ItkFormat {
  const char* extension;
  const char* reader;
  itk::ImageIOBase::Pointer (*make)();
  RawCheck (*check)(const std::string& path);
};

template <class IO>
itk::ImageIOBase::Pointer make_io() {
  return IO::New().GetPointer();
}

constexpr const char* kMrcReader =
    "MRCImageIO, which takes the lengths of the header, by the format in angstroms, for mm";

constexpr ItkFormat kItkFormats[] = {
    {".vtk", "VTKImageIO", make_io<itk::VTKImageIO>, check_vtk},
    {".gipl", "GiplImageIO", make_io<itk::GiplImageIO>, check_gipl},
    {".gipl.gz", "GiplImageIO", make_io<itk::GiplImageIO>, check_gipl},
    {".mrc", kMrcReader, make_io<itk::MRCImageIO>, check_mrc},
    {".rec", kMrcReader, make_io<itk::MRCImageIO>, check_mrc},
    {".pic", "BioRadImageIO", make_io<itk::BioRadImageIO>, check_bio_rad}};

struct Opened {
  itk::ImageIOBase::Pointer io;
  Header header;
  int64_t bytes = 0;
};

Opened open_checked(const std::string& path) {
  const std::string extension = file_extension(path);
  for (const ItkFormat& format : kItkFormats) {
    if (extension != format.extension) continue;
    const RawCheck found = format.check(path);
    Opened out{open(path, format.make()), {}, 0};
    out.header = header_of(*out.io, path);
    Grid& grid = out.header.grid;
    take_geometry(*out.io, grid);
    grid.spacing_mm.z = found.third_spacing_mm.value_or(grid.spacing_mm.z);
    grid.origin_mm.z = found.third_origin_mm.value_or(grid.origin_mm.z);
    check_geometry(grid, path);
    if (guarded(Guard::kItkClaims)) out.header.most_bytes = found.most_bytes;
    out.bytes = checked_bytes(out.header, path);
    out.header.warnings.push_back("'" + path + "': read by ITK's " + format.reader);
    return out;
  }
  bad(path, "no reader of ITK is known for its ending");
}

}  // namespace

Header probe_by_itk(const std::string& path, int& /*frames*/) {
  return open_checked(path).header;
}

RawImage read_by_itk(const std::string& path, const Selection& selection) {
  Opened opened = open_checked(path);
  chosen_frames(path, 1, selection);
  require_components(path, opened.header);
  RawImage raw{std::move(opened.header), allocate_voxels(opened.bytes, path)};
  if (static_cast<int64_t>(opened.io->GetImageSizeInBytes()) != opened.bytes) {
    bad(path, "the header contradicts itself about its size; it is damaged");
  }
  read_voxels(*opened.io, path, raw.voxels.data());
  return raw;
}

}  // namespace larch::io
