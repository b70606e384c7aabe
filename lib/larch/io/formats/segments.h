// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "larch/io/formats/image_file.h"
#include "larch/io/formats/text_header.h"

/// Segmentations of 3D Slicer (.seg.nrrd): NRRD files whose lines "Segment0_Name:=liver" and their
/// kin tell names, colours and label values. Segments that overlap stand in several layers, which
/// are the first axis of the array, of the kind "list".
namespace larch::io {

/// Reads the segments of a header into header.labels and `segments`; does nothing if it has none.
/// A layer that is not given is that of the number of the segment, and a label value that is not
/// given is 1, as in files of Slicer before version 4.11. Where segments of several layers have one
/// value, they get the values 1, 2, ... in their order, and a warning says so. Throws InputError
/// for lines that are damaged, and for segments that are no label map, such as fractions.
void set_segments(const TextHeader& text, StoredHeader& out);

/// Returns the lines of the segments of an image that is written; empty if it has none.
std::string segments_text(const Pixels& pixels);

/// Opens a segmentation in several layers as one label map of int32. Reading it throws InputError
/// that names both segments where two of them overlap, and for a value that is that of no segment.
std::unique_ptr<ImageFile> open_layers(const std::string& path, const StoredHeader& stored,
                                       const DigestSink& digest);

}  // namespace larch::io
