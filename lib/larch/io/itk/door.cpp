// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/itk/door.h"

#include <algorithm>

#include <itkImageIOFactory.h>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"
#include "larch/io/itk/image_io.h"
#include "larch/io/itk/register_image_io.h"

namespace larch::io {
namespace {

/// Calls ITK; its exceptions become what they carry.
template <class F>
auto through_itk(F&& action) {
  try {
    return action();
  } catch (const itk::ExceptionObject& error) {
    rethrow_carried(error);
  }
}

/// Asks ITK's factory for the reader or writer of a file; null if it is none of ours.
ImageIO::Pointer asked_of_itk(const std::string& path, itk::IOFileModeEnum mode) {
  register_image_io();
  const auto found = through_itk([&] {
    ImageIO::is_asked_by_larch = true;
    const std::unique_ptr<bool, void (*)(bool*)> until_end(&ImageIO::is_asked_by_larch,
                                                           [](bool* flag) { *flag = false; });
    return itk::ImageIOFactory::CreateImageIO(path.c_str(), mode);
  });
  ImageIO::Pointer ours = dynamic_cast<ImageIO*>(found.GetPointer());
  if (ours) ours->SetFileName(path);
  return ours;
}

std::string known_endings(bool (Format::*is_known)() const) {
  std::string all;
  for (const Format& format : formats()) {
    if ((format.*is_known)()) all += (all.empty() ? "" : " ") + std::string(format.ending);
  }
  return all;
}

/// A range of frames or slices, whose axis is the last one; of a picture of two axes all.
void set_region(ImageIO& io, const FrameRange& range) {
  const unsigned axes = io.GetNumberOfDimensions();
  itk::ImageIORegion region(axes);
  for (unsigned axis = 0; axis < axes; ++axis) {
    const bool is_last = axis >= 2 && axis + 1 == axes;
    region.SetIndex(axis, is_last ? range.first : 0);
    region.SetSize(axis,
                   is_last ? static_cast<itk::SizeValueType>(range.count) : io.GetDimensions(axis));
  }
  io.SetIORegion(region);
}

ImageIO::Pointer writer_of(const std::string& path, const Pixels& pixels) {
  if (pixels.head.empty()) require_writable(path);
  ImageIO::Pointer io = asked_of_itk(path, itk::IOFileModeEnum::WriteMode);
  if (!io) throw OutputError("cannot write '" + path + "': ITK has another writer for it");
  const unsigned axes = pixels.frames > 1 ? 4 : 3;
  io->SetNumberOfDimensions(axes);
  for (int axis = 0; axis < 3; ++axis) {
    io->SetDimensions(static_cast<unsigned>(axis),
                      static_cast<itk::SizeValueType>(pixels.grid.size[axis]));
  }
  if (axes == 4) io->SetDimensions(3, static_cast<itk::SizeValueType>(pixels.frames));
  io->pixels = std::make_unique<Pixels>(pixels);
  return io;
}

}  // namespace

struct OpenImage::State {
  ImageIO::Pointer io;
};

OpenImage::OpenImage(const std::string& path, const OpenOptions& options) {
  if (!is_file(path) && !is_folder(path)) {
    const std::string why = why_missing(path);
    if (why.starts_with("is a link")) throw InputError("'" + path + "' " + why);
    bad_path(path, "no such file or folder; check the path");
  }
  const ImageIO::Pointer io = asked_of_itk(path, itk::IOFileModeEnum::ReadMode);
  if (!io) {
    if (is_file(path)) refuse_placeholder(path, read_file(path, kBeginning));
    const std::string why = format_for_reading(path) != nullptr
                                ? "another reader of ITK's factory stands in front of Larch's"
                                : why_refused(path);
    bad_path(path, !why.empty() ? why
                                : "neither DICOM nor a known ending (" +
                                      known_endings(&Format::is_read) + ")");
  }
  io->options = options;
  io->keeps_stored = true;
  through_itk([&] { io->ReadImageInformation(); });
  state_ = std::make_unique<State>(State{io});
}
OpenImage::~OpenImage() = default;
OpenImage::OpenImage(OpenImage&&) noexcept = default;
OpenImage& OpenImage::operator=(OpenImage&&) noexcept = default;

ImageFile& OpenImage::file() const {
  return state_->io->file();
}

void OpenImage::read(const FrameRange& range, void* to) {
  set_region(*state_->io, range);
  through_itk([&] { state_->io->Read(to); });
}

void write_image(const std::string& path, const Pixels& pixels) {
  const ImageIO::Pointer io = writer_of(path, pixels);
  set_region(*io, {0, pixels.frames > 1 ? pixels.frames : pixels.grid.size.z});
  through_itk([&] { io->Write(pixels.voxels); });
}

struct ImageStream::State {
  ImageIO::Pointer io;
  int64_t written = 0;
};

ImageStream::ImageStream(const std::string& path, const Pixels& pixels)
    : state_(std::make_unique<State>(State{writer_of(path, pixels), 0})) {}
ImageStream::~ImageStream() = default;

void ImageStream::write(const void* voxels, int64_t count) {
  set_region(*state_->io, {state_->written, count});
  through_itk([&] { state_->io->Write(voxels); });
  state_->written += count;
}

void require_writable(const std::string& path) {
  const std::string ending = file_extension(path);
  const auto is_it = [&](const Format& format) {
    return ending == format.ending && format.is_written();
  };
  if (std::ranges::any_of(formats(), is_it)) return;
  throw UsageError(
      "cannot write '" + path +
      "': the ending is none of those that can be written: " + known_endings(&Format::is_written));
}

void require_holds(const std::string& path, const Vec3i& size) {
  require_writable(path);
  if (find_format(path)->of_pictures) require_one_slice(path, size);
}

}  // namespace larch::io
