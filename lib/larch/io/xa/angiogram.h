// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "larch/data/grid.h"
#include "larch/io/dicom/dicom_writer.h"

namespace larch {

/// Frames `first` to `last`, both included, counted from 0 (DICOM counts from 1).
struct FrameSpan {
  int first = 0, last = 0;
};

/// Says what the file says about the relation of stored values to the intensity of the X-rays
/// (PS3.3, C.8.7.1.1.2).
enum class PixelIntensity : uint8_t {
  kUnknown,  ///< it does not say it
  kLinear,   ///< LIN
  kLog,      ///< LOG
  kDisplay,  ///< DISP: made for looking at
};

/// MaskOperation of a Mask Subtraction Sequence (PS3.3, C.7.6.10).
enum class MaskOperation : uint8_t {
  kNone,        ///< NONE: nothing is subtracted
  kAverage,     ///< AVG_SUB: the mean of the mask frames is subtracted
  kTid,         ///< TID: the frame `tid_offset` frames before is subtracted
  kReverseTid,  ///< REV_TID: the mask runs backwards while the frames run forwards
};

/// One item of a Mask Subtraction Sequence.
struct MaskItem {
  MaskOperation operation = MaskOperation::kNone;
  std::vector<FrameSpan> ranges{};  ///< the contrast frames; empty: those that the standard implies
  std::vector<int> mask_frames{};   ///< of AVG_SUB, counted from 0
  int contrast_averaging = 1;       ///< AVG_SUB: contrast frames that are averaged, from each on
  int tid_offset = 1;               ///< mask frame = frame - tid_offset; negative: a later frame
  /// By how many pixels the mask is moved before it is subtracted: x to the right, y down, z is 0;
  /// the pull displacement of larch/dsa is its negative. MaskSubPixelShift of the file has the row
  /// first, and counts columns to the left (PS3.3, C.7.6.10.1.2).
  Vec3d shift_px{};
  std::string explanation{};
};

/// The part of the picture that the collimator leaves, by the shutter of the file
/// (PS3.3, C.7.6.11); coordinates in pixels from 0, both ends inside.
struct Shutter {
  bool has_rectangle = false, has_circle = false;
  int left = 0, right = 0, upper = 0, lower = 0;  ///< first and last column and row that show
  double centre_x = 0, centre_y = 0, radius = 0;
  std::vector<std::array<int, 2>> polygon{};  ///< corners (x, y); empty: none

  bool is_given() const { return has_rectangle || has_circle || !polygon.empty(); }
  /// Tells whether a pixel shows: inside of all the shapes that are given.
  bool shows(int x, int y) const;
};

/// Where a sequence comes from, which what is derived from it shares or names; empty for other
/// formats than DICOM.
struct AngiogramOrigin {
  std::string sop_class_uid{}, sop_instance_uid{}, study_uid{};
  std::string series_description{}, image_type{};
  int series_number = 0;       ///< 0: none that can be read
  double display_rate_hz = 0;  ///< RecommendedDisplayFrameRate; 0: not given
  bool is_lossy = false;       ///< the pixels were compressed with loss at some time
  /// The picture of the other plane of a biplane device, by ReferencedImageSequence.
  std::string other_plane_class_uid{}, other_plane_instance_uid{};
  std::vector<CopiedElement> copied{};     ///< patient, study, acquisition, calibration
  std::vector<CopiedElement> equipment{};  ///< the device that made it
};

/// A sequence of pictures before anything of its pixels is read: an X-ray angiogram, or frames of
/// another format, for which all that only DICOM knows is as it stands here.
struct Angiogram : AngiogramOrigin {
  std::string path{};
  bool is_dicom = false;
  std::string modality_name{};
  /// Of one frame, size.z is 1. PixelSpacing, which may be calibrated to the patient, or else
  /// ImagerPixelSpacing, which is that of the detector's plane.
  Grid grid{};
  bool has_spacing = false;        ///< the file gives it; otherwise it is 1
  int64_t frames = 1;              ///< at least 1
  std::vector<double> times_ms{};  ///< of each frame; empty: not known

  // Stored values: the reader gives pixel = stored value - least_stored, which is 0 to 2^bits - 1.
  int bits = 16;             ///< BitsStored; of other formats the fewest of 8, 10, 12, 14, 16 that
                             ///< hold all values
  int32_t least_stored = 0;  ///< -2^(bits-1) for signed pixels, otherwise 0
  bool is_monochrome1 = false;
  PixelIntensity intensity = PixelIntensity::kUnknown;
  /// PixelIntensityRelationshipSign: 1: larger values mean more X-rays, -1: fewer, 0: not given.
  int intensity_sign = 0;
  /// Says what Modality LUT or rescaling make of each pixel, by its number, all finite; empty: they
  /// change nothing. For `kLog` it leads back to the intensity, so that differences are made
  /// without it.
  std::vector<float> modality{};
  bool is_viewed_subtracted = false;  ///< RecommendedViewingMode: SUB (true) or NAT, or not given

  Shutter shutter{};
  std::vector<MaskItem> masks{};
  /// Why `masks` cannot be used, as a whole message; whoever uses them throws it as InputError.
  /// Empty: each item agrees with the file.
  std::string mask_problem{};
  std::vector<std::string> warnings{};  ///< what the user should know, naming the file
};

/// Tells whether contrast agent raises the stored values, that is, whether these fall with the
/// X-rays: by PixelIntensityRelationshipSign, or else by MONOCHROME1, which shows small values
/// white.
bool contrast_raises(const Angiogram& about);

/// Value = slope * pixel + intercept, of the reader's pixels.
struct PixelRescaling {
  double slope = 1, intercept = 0;

  friend bool operator==(const PixelRescaling&, const PixelRescaling&) = default;
};
/// Returns what Modality LUT or rescaling come to, or the sign alone (`least_stored`); nothing for
/// a Modality LUT that is no straight line.
std::optional<PixelRescaling> rescaling_of(const Angiogram& about);

}  // namespace larch
