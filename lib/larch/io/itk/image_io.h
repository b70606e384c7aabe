// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include <itkImageIOBase.h>

#include "larch/io/formats/image_file.h"

namespace larch::io {

/// A format by its ending. It is one row of the table of formats; a new format is one more row.
struct Format {
  const char* ending;
  std::unique_ptr<ImageFile> (*open)(const std::string& path, const OpenOptions& options);
  /// The whole file, in the way of the format; null: none, or that of `head` is the only one.
  void (*write)(const std::string& path, const Pixels& pixels);
  /// Returns the bytes before raw voxels, of formats that can be written piece by piece; or null.
  std::string (*head)(const std::string& path, const Pixels& pixels);
  bool of_pictures = false;  ///< 2-D alone

  bool is_read() const { return open != nullptr; }
  bool is_written() const { return write != nullptr || head != nullptr; }
};

std::span<const Format> formats();

/// The row of a file's ending; null if there is none.
const Format* find_format(const std::string& path);

/// The row for reading an existing file or folder: by its ending, or DICOM by its content; or null.
const Format* format_for_reading(const std::string& path);

/// The reason why a file of an ending is not read, with a program that converts it; empty for
/// others.
std::string why_refused(const std::string& path);

/// Larch's readers and writers as ITK knows them. It takes every file whose ending is one of ours,
/// other DICOM files by their content, and folders; of these the other readers of ITK see nothing,
/// because its factory stands in front of theirs.
///
/// ITK gets dimensions (two of a picture in the plane z = 0), spacing, origin and direction
/// in LPS mm, with shear; frames of a 4-D file or of a cine as the fourth axis, with the spacing
/// that the file gives, in its unit; values after rescaling, as float32 where there is one; RGB and
/// vectors with their channels, but colours of DICOM as luminance. The dictionary holds
/// "larch_world_frame" (the code of NIfTI), "larch_rescale_slope", "larch_rescale_intercept" and
/// "larch_warnings" (a line each), as texts, and no elements of DICOM. A region is a range of the
/// last axis.
///
/// It writes scalars of up to four axes, RGB of 8 bits, vectors of one frame; PNG of 8 bits,
/// TIFF of one channel, both without spacing; frames of volumes in NIfTI alone. What a format does
/// not hold is an error. Errors are exceptions of ITK, which carry ours.
class ImageIO : public itk::ImageIOBase {
 public:
  using Self = ImageIO;
  using Superclass = itk::ImageIOBase;
  using Pointer = itk::SmartPointer<Self>;
  itkFactorylessNewMacro(Self);
  itkTypeMacro(ImageIO, ImageIOBase);
  ImageIO(const ImageIO&) = delete;
  ImageIO& operator=(const ImageIO&) = delete;

  bool CanReadFile(const char* name) override;
  bool CanWriteFile(const char* name) override;
  bool CanStreamRead() override { return true; }
  bool SupportsDimension(unsigned long dimension) override { return dimension <= 4; }
  itk::ImageIORegion GenerateStreamableReadRegionFromRequestedRegion(
      const itk::ImageIORegion& requested) const override;
  void ReadImageInformation() override;
  void Read(void* buffer) override;
  void WriteImageInformation() override {}
  void Write(const void* buffer) override;

  // The rest is for Larch's own programs, beyond ITK's interface.

  /// True while the thread asks ITK's factory for Larch's own programs, which alone write DICOM so.
  static thread_local bool is_asked_by_larch;
  OpenOptions options{};      ///< before ReadImageInformation
  bool keeps_stored = false;  ///< Read gives the numbers of the file, without rescaling
  /// Returns the image that ReadImageInformation has opened.
  ImageFile& file() const { return *file_; }
  /// Takes the place of what ITK's fields say, but for the voxels; before Write.
  std::unique_ptr<Pixels> pixels{};

 protected:
  ImageIO();
  ~ImageIO() override = default;

 private:
  void take_geometry(const Header& header);
  void read_region(void* buffer);
  void write_whole(const Format& format, const Pixels& image);
  void write_region(const void* buffer);
  Pixels pixels_of_fields() const;

  std::unique_ptr<ImageFile> file_;
  std::unique_ptr<ZWriter> out_;  ///< of an image that is written region by region
  int64_t written_ = 0;           ///< its slices or frames so far
};

/// Throws what an error of ITK carries.
[[noreturn]] void rethrow_carried(const itk::ExceptionObject& error);

}  // namespace larch::io
