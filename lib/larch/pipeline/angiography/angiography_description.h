// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace larch::pipeline {

/// What --help and the page of dsa-register say after the summary.
inline constexpr const char* kAngiographyDescription =
    "Finds the motion between the mask (frames without contrast agent) and every contrast frame of "
    "an X-ray angiogram, moves the mask along and subtracts it. Motion is found block by block: "
    "the "
    "displacement whose histogram of differences is the most peaked, by its energy (EHD) or its "
    "entropy, which vessels that fill do not mislead; in whole pixels, then in fractions. Vectors "
    "that contradict their neighbours are replaced, and between the centres of blocks motion is "
    "interpolated. The results do not depend on the device, the number of threads, or how many "
    "frames are worked on at a time.\n\n"
    "The mask is what --mask-frames names; or by the Mask Subtraction Sequence of a DICOM file "
    "(AVG_SUB, TID, REV_TID, frame ranges, contrast frame averaging, sub-pixel shift as the start "
    "of the search); or the first frame; or with --mask auto the frame before the contrast agent "
    "arrives. Frames that are subtracted from nothing, such as those of the mask, are not in the "
    "output. A sequence of frames is never taken for a volume: volumes need --mask-volume, and "
    "their "
    "blocks are 16 voxels a side unless --block says otherwise.\n\n"
    "Values that are linear in the X-rays (Pixel Intensity Relationship LIN, or --stored lin) are "
    "subtracted as logarithms, logarithms (LOG) as they are; values of which the file does not "
    "tell are subtracted as they are, with a warning. The background becomes 0 (--normalize) and "
    "vessels are dark unless --vessels bright. Differences are 16-bit grey values; in DICOM they "
    "are stored with an offset of 32768, in a new derived series whose UIDs follow from the "
    "content of input and configuration, so that the same run gives the same file.\n\n"
    "Saturated pixels, what the collimator covers (--shutter; its blurred edge, which is measured, "
    "belongs to it) and what lies outside of --roi do not count while motion is found. The output "
    "covers the whole frame, and --validity tells its pixels apart; behind the collimator it is 0. "
    "Where motion reads the mask from there, it has the values at its edge, and the pixel counts "
    "as saturated. A block of which less than a quarter counts is not searched.\n\n"
    "--memory bounds what the frames in work take; a sequence of any length passes in it. The "
    "report has the figures of every frame: blocks that were replaced, unreliable or at the edge "
    "of the search range, similarity before and after, and the RMS of the difference outside of "
    "vessels without correction, after the best rigid shift of the frame, and corrected (these "
    "three "
    "take most of the time of quick searches; --scores=false leaves them out). With "
    "--list each sequence is a case: <id>.dcm (difference), <id>.field.mha, <id>.validity.mha, "
    "<id>.csv (grid), <id>.png (preview), <id>.gif (animation) and <id>.native.dcm (native), as "
    "--write says, and status.tsv "
    "with a row for each; a case that fails does not stop the others.";

}  // namespace larch::pipeline
