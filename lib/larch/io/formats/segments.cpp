// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/formats/segments.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "larch/core/text.h"
#include "larch/io/bytes/message.h"

namespace larch::io {
namespace {

/// Returns the value of a line of a segment; empty if there is none.
std::string line_of(const TextHeader& text, size_t segment, const char* field) {
  const auto found = text.segments.find(std::to_string(segment) + "_" + field);
  return found == text.segments.end() ? "" : found->second;
}

/// Returns a whole number of such a line.
int32_t integer_of(const TextHeader& text, size_t segment, const char* field, int32_t if_absent) {
  const std::string word = line_of(text, segment, field);
  if (word.empty()) return if_absent;
  const auto value = number_of_word(word);
  if (!value || *value != std::floor(*value) || std::abs(*value) > INT32_MAX) {
    bad(text.path, "Segment" + std::to_string(segment) + "_" + field + " is " + shown(word) +
                       ", which is no whole number; repair the header");
  }
  return static_cast<int32_t>(*value);
}

LabelEntry entry_of(const TextHeader& text, size_t segment) {
  LabelEntry entry{0, line_of(text, segment, "Name"), {128, 128, 128}};
  if (entry.name.empty()) entry.name = line_of(text, segment, "ID");
  const std::vector<double> colour = numbers_of(line_of(text, segment, "Color"));
  for (size_t i = 0; colour.size() == 3 && i < 3; ++i) {
    entry.rgb[i] = static_cast<uint8_t>(std::lround(255 * std::clamp(colour[i], 0.0, 1.0)));
  }
  return entry;
}

/// Throws InputError unless the voxels tell whether they are in a segment, and no more.
void require_binary(const TextHeader& text) {
  for (const char* field : {"ation_MasterRepresentation", "ation_SourceRepresentation"}) {
    const auto found = text.segments.find(field);
    if (found == text.segments.end() || found->second == "Binary labelmap") continue;
    bad(text.path, "a segmentation of 3D Slicer as " + shown(found->second) +
                       ", not as a label map; export it there as binary label map");
  }
}

/// A name in a message: that of a file may be as long as it likes.
std::string shown_name(const std::string& name) {
  return "'" + escaped(name.substr(0, 80)) + "'";
}

/// Returns what is written of a name: NRRD has a meaning for backslashes and ends of lines.
std::string plain(std::string name) {
  const auto is_odd = [](unsigned char c) { return c < 32 || c == 127 || c == '\\'; };
  std::ranges::replace_if(name, is_odd, ' ');
  return name;
}

/// The segments of a file by their layer and value.
using Places = std::map<std::pair<int, double>, LabelEntry>;

/// Returns the label of a voxel from its values in all layers.
template <class S>
int32_t label_of(const StoredImage& image, const Places& places, const std::byte* values,
                 int64_t voxel) {
  const LabelEntry* found = nullptr;
  for (int layer = 0; layer < image.header().channels; ++layer) {
    S value{};
    std::memcpy(&value, values + static_cast<size_t>(layer) * sizeof(S), sizeof(S));
    if (value == 0) continue;
    const auto segment = places.find({layer, static_cast<double>(value)});
    if (segment == places.end()) {
      bad(image.path(), "layer " + std::to_string(layer) + " (from 0) has the value " +
                            number_text(static_cast<double>(value), 9) +
                            ", which is that of no segment; save it again in 3D Slicer");
    }
    if (found != nullptr) {
      const Grid& grid = image.header().grid;
      const Vec3i at = grid.voxel(voxel % grid.voxels());
      bad(image.path(),
          "the segments " + shown_name(found->name) + " and " + shown_name(segment->second.name) +
              " overlap, the first time at index (" + std::to_string(at.x) + "," +
              std::to_string(at.y) + "," + std::to_string(at.z) +
              "), and one label map is needed here; take one from the other in 3D Slicer, or "
              "export each to a file of its own");
    }
    found = &segment->second;
  }
  return found == nullptr ? 0 : found->value;
}

/// Returns the labels of all voxels as int32.
std::vector<std::byte> merged(StoredImage& image, const Places& places) {
  const Header& header = image.header();
  const int64_t width = int64_t{bytes_of(header.component)} * header.channels;
  const int64_t voxels = header.grid.voxels() * header.frames;
  const int64_t piece = image.reads_slices() ? voxels / header.grid.size.z : voxels;
  std::vector<std::byte> layers = allocate_voxels(piece * width, image.path());
  std::vector<std::byte> out =
      allocate_voxels(voxels * static_cast<int64_t>(sizeof(int32_t)), image.path());
  std::byte* to = out.data();
  for (int64_t begin = 0; begin < voxels; begin += piece) {
    image.read(begin * width, layers);
    with_type(header.component, [&]<class S>(S) {
      for (int64_t i = 0; i < piece; ++i, to += sizeof(int32_t)) {
        const int32_t label = label_of<S>(image, places, layers.data() + i * width, begin + i);
        std::memcpy(to, &label, sizeof label);
      }
    });
  }
  return out;
}

/// An image that is made of another one.
class MergedImage : public DecodedImage {
 public:
  MergedImage(Header header, const std::shared_ptr<StoredImage>& from, const Places& places)
      : DecodedImage(from->path(), std::move(header), [=] { return merged(*from, places); }),
        from_(from) {}
  std::vector<std::string> files() const override { return from_->files(); }

 private:
  std::shared_ptr<StoredImage> from_;
};

}  // namespace

void set_segments(const TextHeader& text, StoredHeader& out) {
  Header& header = out.header;
  std::set<std::pair<int, int32_t>> places;
  std::set<int32_t> values;
  for (size_t k = 0; !line_of(text, k, "ID").empty(); ++k) {
    const int if_absent = header.channels == 1 ? 0 : static_cast<int>(k);
    const SegmentPlace place{integer_of(text, k, "Layer", if_absent),
                             integer_of(text, k, "LabelValue", 1)};
    LabelEntry entry = entry_of(text, k);
    if (place.layer < 0 || place.layer >= header.channels || place.stored == 0 ||
        !places.insert({place.layer, place.stored}).second) {
      bad(text.path, "the segment " + shown_name(entry.name) + " is in layer " +
                         std::to_string(place.layer) + " of " + std::to_string(header.channels) +
                         " (from 0) with the value " + std::to_string(place.stored) +
                         ", where it cannot be, or another one is; save it again in 3D Slicer");
    }
    entry.value = place.stored;
    values.insert(place.stored);
    header.labels.push_back(entry);
    out.segments.push_back(place);
  }
  if (out.segments.empty()) return;
  require_binary(text);
  if (values.size() == out.segments.size()) return;
  for (size_t k = 0; k < header.labels.size(); ++k) {
    header.labels[k].value = static_cast<int32_t>(k) + 1;
  }
  header.warnings.push_back("'" + text.path +
                            "': segments in several layers have one label value; they are numbered "
                            "from 1 in their order instead");
}

std::string segments_text(const Pixels& pixels) {
  if (pixels.segments.empty()) return "";
  const Vec3i& size = pixels.grid.size;
  // Slicer cuts a layer to the extent of its first segment.
  const std::string extent = "0 " + std::to_string(size.x - 1) + " 0 " +
                             std::to_string(size.y - 1) + " 0 " + std::to_string(size.z - 1);
  std::string text;
  for (size_t k = 0; k < pixels.segments.size(); ++k) {
    const LabelEntry& entry = pixels.segments[k];
    const int layer = k < pixels.layers.size() ? pixels.layers[k] : 0;
    std::string colour;
    for (const uint8_t part : entry.rgb) {
      colour += (colour.empty() ? "" : " ") + number_text(part / 255.0, 6);
    }
    for (const auto& [field, value] :
         {std::pair("Color", colour), std::pair("ColorAutoGenerated", std::string("0")),
          std::pair("Extent", extent), std::pair("ID", "Segment_" + std::to_string(k + 1)),
          std::pair("LabelValue", std::to_string(entry.value)),
          std::pair("Layer", std::to_string(layer)), std::pair("Name", plain(entry.name)),
          std::pair("NameAutoGenerated", std::string("0"))}) {
      text += "Segment" + std::to_string(k) + "_" + field + ":=" + value + "\n";
    }
  }
  // The representation has two names, the first in files before version 5.4 of Slicer.
  return text +
         "Segmentation_ContainedRepresentationNames:=Binary labelmap|\n"
         "Segmentation_MasterRepresentation:=Binary labelmap\n"
         "Segmentation_ReferenceImageExtentOffset:=0 0 0\n"
         "Segmentation_SourceRepresentation:=Binary labelmap\n";
}

std::unique_ptr<ImageFile> open_layers(const std::string& path, const StoredHeader& stored,
                                       const DigestSink& digest) {
  Header header = stored.header;
  Places places;
  for (size_t k = 0; k < stored.segments.size(); ++k) {
    places[{stored.segments[k].layer, stored.segments[k].stored}] = header.labels[k];
  }
  header.component = Component::kInt32;
  header.channels = 1;
  header.most_bytes = INT64_MAX;  // those of the layers are checked
  return std::make_unique<MergedImage>(std::move(header),
                                       std::make_shared<StoredImage>(path, stored, digest), places);
}

}  // namespace larch::io
