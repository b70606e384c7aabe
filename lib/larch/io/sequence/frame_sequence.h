// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/data/frames.h"
#include "larch/io/image/image.h"

namespace larch {

/// What the third axis of a file of three axes is.
enum class ThirdAxis {
  kAsInFile,  ///< of space, unless the file says that it is of time (NRRD: the kind "time")
  kTime,      ///< of time, in ms, as ITK stores a multi-frame DICOM file
};

/// Reads a sequence of pictures with their times:
/// - a DICOM file of several frames that are no volume; times by FrameTimeVector or FrameTime,
///   whichever FrameIncrementPointer names, or that of the two that is there;
/// - NIfTI of four dimensions with one slice; times by pixdim[4], toffset and the unit of time;
/// - NRRD with a third or fourth axis of kind "time"; times by its spacing, if its unit is s, ms or
///   us;
/// - any image of three axes of which `third_axis` says that the third one is time, such as .mha.
/// A single picture is a sequence of one. Values as by read_volume. The grid is that of a single
/// picture; where the third axis is time, its direction counts no more, and the spacing along it is
/// 1. Throws InputError as read_volume does, and if the frames are volumes; MemoryError.
Frames read_frames(const std::string& path, const ReadOptions& options = {},
                   ThirdAxis third_axis = ThirdAxis::kAsInFile);

}  // namespace larch
