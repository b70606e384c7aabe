// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/sequence/sequence_reader.h"

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/formats/formats.h"
#include "larch/io/image/message.h"
#include "larch/io/sequence/frame_source.h"

namespace larch {

SequenceReader::SequenceReader(const std::string& path, const ReadOptions& options) {
  if (is_folder(path)) {
    io::bad(path, "a folder; give the file that holds the sequence");
  }
  source_ = io::goes_to_dicom(path) ? io::open_dicom_frames(path, options)
                                    : io::open_file_frames(path, options);
}
SequenceReader::~SequenceReader() = default;
SequenceReader::SequenceReader(SequenceReader&&) noexcept = default;
SequenceReader& SequenceReader::operator=(SequenceReader&&) noexcept = default;

const Angiogram& SequenceReader::about() const {
  return source_->about;
}

void SequenceReader::tell_contrast(bool raises) {
  if (about().is_dicom) {
    throw UsageError("'" + about().path +
                     "': a DICOM file says by itself what contrast agent does to its values; leave "
                     "--contrast out");
  }
  source_->about.intensity_sign = raises ? -1 : 1;
}

void SequenceReader::read(int64_t first, int64_t count, std::span<uint16_t> to) {
  if (first < 0 || count < 0 || count > about().frames - first) {
    throw UsageError("'" + about().path + "': frames " + std::to_string(first + 1) + " to " +
                     std::to_string(first + count) + " are not all there: it has " +
                     std::to_string(about().frames));
  }
  if (to.size() != static_cast<size_t>(count * frame_pixels())) {
    throw UsageError("'" + about().path + "': no room for the frames that are asked for");
  }
  if (count > 0) source_->read(first, count, to);
}

}  // namespace larch
