// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/xa/dicom_fragments.h"

#include <algorithm>
#include <string>

#include "larch/io/dicom/dicom_codec.h"
#include "larch/io/dicom/dicom_elements.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"

namespace larch::io {
namespace {

[[noreturn]] void bad_fragments(const DicomObject& object, size_t found) {
  const bool more = found > static_cast<size_t>(object.frames);
  bad(object.path, (more ? "the compressed pixel data hold more than the header says: "
                         : "the compressed pixel data are truncated or damaged: ") +
                       std::to_string(found) + " images for " + std::to_string(object.frames) +
                       " frames; " + (more ? "repair NumberOfFrames or export" : "export") +
                       " the file again");
}

// The numbers of the fragments that the offset table names, one for each frame (PS3.5, A.4).
std::vector<size_t> starts_in_table(std::span<const FragmentStart> fragments,
                                    std::string_view table, const DicomObject& object) {
  const FieldReader offsets{table.data(), false};
  std::vector<size_t> starts;
  uint64_t at = 0;
  for (size_t i = 1; i < fragments.size(); ++i) {
    const size_t next = 4 * starts.size();
    if (next < table.size() && offsets.get<uint32_t>(static_cast<int64_t>(next)) == at) {
      starts.push_back(i);
    }
    at += 8 + fragments[i].bytes;
  }
  if (table.size() != 4 * static_cast<size_t>(object.frames) || 4 * starts.size() != table.size() ||
      starts[0] != 1) {
    bad(object.path,
        "the compressed pixel data are damaged: their offset table does not name the start of "
        "each of " +
            std::to_string(object.frames) + " frames; export the file again");
  }
  return starts;
}

}  // namespace

// The header of run-length coding: the number of segments, then their offsets, of which the first
// follows the header.
bool starts_frame(std::string_view fragment, const gdcm::TransferSyntax& syntax,
                  const DicomPixelFormat& format) {
  if (syntax != gdcm::TransferSyntax::RLELossless) return starts_codestream(fragment);
  if (fragment.size() < kFragmentStartBytes) return false;
  const FieldReader in{fragment.data(), false};
  return in.get<uint32_t>(0) ==
             static_cast<uint32_t>(format.samples * (format.bits_allocated / 8)) &&
         in.get<uint32_t>(4) == kFragmentStartBytes;
}

// What starts as an image is a frame.
std::vector<FragmentRun> frames_of_fragments(std::span<const FragmentStart> fragments,
                                             std::string_view table, const DicomObject& object) {
  const auto wanted = static_cast<size_t>(object.frames);
  const bool has_table = !table.empty();
  std::vector<size_t> starts;
  if (has_table) starts = starts_in_table(fragments, table, object);
  const auto used = std::count_if(fragments.begin() + (fragments.empty() ? 0 : 1), fragments.end(),
                                  [](const FragmentStart& fragment) { return fragment.bytes > 0; });
  const bool one_each = !has_table && static_cast<size_t>(used) == wanted;
  std::vector<FragmentRun> frames;
  for (size_t i = 1; i < fragments.size(); ++i) {
    const bool named = std::binary_search(starts.begin(), starts.end(), i);
    const bool follows = fragments[i].bytes == 0 && !named;
    const bool starts_here =
        named || (!follows && (frames.empty() || one_each || fragments[i].starts_image));
    if (starts_here) frames.push_back({i, 0});
    if (!frames.empty()) ++frames.back().count;
  }
  if (frames.size() != wanted) bad_fragments(object, frames.size());
  return frames;
}

}  // namespace larch::io
