// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Frames of a DICOM file, from their places in it.
#include <bit>
#include <fstream>
#include <vector>

#include "larch/io/dicom/dicom_dataset.h"
#include "larch/io/dicom/dicom_elements.h"
#include "larch/io/dicom/dicom_file.h"
#include "larch/io/image/message.h"
#include "larch/io/sequence/frame_source.h"
#include "larch/io/xa/angiogram_dicom.h"
#include "larch/io/xa/dicom_fragments.h"

namespace larch::io {
namespace {

class DicomFrames : public FrameSource {
 public:
  DicomFrames(const std::string& path, const ReadOptions& options)
      : options_(options), file_(read_dicom_head(path)), object_(describe_dicom(file_)) {
    about = describe_angiogram(file_, object_);
    if (!file_.place) {
      if (file_.data.find(kPixelData) == nullptr) bad(path, "it has no pixel data");
      return;
    }
    in_.open(path, std::ios::binary);
    if (file_.place->is_encapsulated) {
      find_frames();
    } else {
      const int64_t samples = about.grid.voxels() * about.frames;
      if (file_.place->native.bytes < samples * (object_.format.bits_allocated / 8)) truncated();
    }
  }

  void read(int64_t first, int64_t count, std::span<uint16_t> to) override {
    if (read_as_stored(first, count, to)) return;
    const DicomPixels pixels = decode(first, count);
    to_pixels(pixels.bytes, pixels.component, about.least_stored, to);
  }

 private:
  /// Most files hold just what is wanted; false where there is more to do.
  bool read_as_stored(int64_t first, int64_t count, std::span<uint16_t> to) {
    const DicomPixelFormat& format = object_.format;
    const bool plain = file_.place && !file_.place->is_encapsulated &&
                       format.bits_allocated == 16 && format.representation == 0 &&
                       format.high_bit == format.bits_stored - 1 && !file_.data.is_big_endian &&
                       std::endian::native == std::endian::little;
    if (!plain) return false;
    const int64_t frame_bytes = 2 * about.grid.voxels();
    read_piece({file_.place->native.offset + first * frame_bytes, count * frame_bytes},
               reinterpret_cast<char*>(to.data()));
    uint32_t beyond = 0;
    for (const uint16_t pixel : to) beyond |= pixel;
    return beyond >> format.bits_stored == 0;
  }

  [[noreturn]] void truncated() const {
    bad(about.path, "the pixel data are truncated; copy or export the file again");
  }

  void read_piece(const FilePiece& piece, char* to) {
    in_.clear();
    in_.seekg(piece.offset);
    in_.read(to, piece.bytes);
    if (in_.gcount() != piece.bytes) truncated();
  }

  std::string bytes_of_piece(const FilePiece& piece) {
    std::string bytes(static_cast<size_t>(piece.bytes), '\0');
    read_piece(piece, bytes.data());
    return bytes;
  }

  /// Which fragments make which frame.
  void find_frames() {
    const gdcm::TransferSyntax syntax =
        gdcm::TransferSyntax::GetTSType(file_.transfer_syntax.c_str());
    const std::vector<FilePiece>& pieces = file_.place->fragments;
    std::vector<FragmentStart> starts;
    starts.reserve(pieces.size());
    for (const FilePiece& piece : pieces) {
      const std::string start =
          bytes_of_piece({piece.offset, std::min<int64_t>(piece.bytes, kFragmentStartBytes)});
      starts.push_back(
          {static_cast<size_t>(piece.bytes), starts_frame(start, syntax, object_.format)});
    }
    const std::string table = pieces.empty() ? std::string() : bytes_of_piece(pieces.front());
    frames_ = frames_of_fragments(starts, table, object_);
  }

  /// The element that holds `count` frames and nothing else, as if the file had no others.
  DicomPixels decode(int64_t first, int64_t count) {
    if (!file_.place) {
      return decode_dicom_pixels(*file_.data.find(kPixelData), file_.transfer_syntax, object_,
                                 {first, count}, options_);
    }
    DicomObject part = object_;
    part.frames = static_cast<int>(count);
    DicomElement element;
    element.tag = kPixelData.number();
    element.vr = file_.place->vr;
    const int64_t frame_bytes = about.grid.voxels() * (object_.format.bits_allocated / 8);
    if (!file_.place->is_encapsulated) {
      const FilePiece piece{file_.place->native.offset + first * frame_bytes, count * frame_bytes};
      std::vector<std::byte> bytes = allocate_voxels(piece.bytes, about.path);
      read_piece(piece, reinterpret_cast<char*>(bytes.data()));
      element.value = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
      return decode_dicom_pixels(element, file_.transfer_syntax, part, {0, count}, options_);
    }
    std::vector<std::string> joined(static_cast<size_t>(count));
    element.is_encapsulated = true;
    element.fragments.emplace_back();  // no offset table: one fragment is one frame
    for (size_t i = 0; i < joined.size(); ++i) {
      const FragmentRun& run = frames_[static_cast<size_t>(first) + i];
      for (size_t k = 0; k < run.count; ++k) {
        joined[i] += bytes_of_piece(file_.place->fragments[run.first + k]);
      }
      element.fragments.emplace_back(joined[i]);
    }
    return decode_dicom_pixels(element, file_.transfer_syntax, part, {0, count}, options_);
  }

  ReadOptions options_;
  DicomFile file_;
  DicomObject object_;
  std::ifstream in_;
  std::vector<FragmentRun> frames_;
};

}  // namespace

std::unique_ptr<FrameSource> open_dicom_frames(const std::string& path,
                                               const ReadOptions& options) {
  return std::make_unique<DicomFrames>(path, options);
}

}  // namespace larch::io
