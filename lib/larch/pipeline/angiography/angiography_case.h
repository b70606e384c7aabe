// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "larch/angiography.h"
#include "larch/cases/case_program.h"

// The options and products of a subtraction, and the work on a case.
namespace larch::pipeline {

inline constexpr cases::Product kAngiographyProducts[] = {
    {"output,o", "difference", ".dcm", PathRole::kOutputImage,
     "subtracted frames: .dcm .mha .nrrd .nii.gz"},
    {"field", "field", ".field.mha", PathRole::kOutputImage,
     "motion of every pixel (see --field-units): .mha .nrrd"},
    {"validity", "validity", ".validity.mha", PathRole::kOutputImage,
     "by pixel: 0 valid, 1 beyond the mask, 2 saturated, 3 outside"},
    {"grid", "grid", ".csv", PathRole::kOutputFile, "CSV with a line per frame and block"},
    {"preview", "preview", ".png", PathRole::kOutputPicture,
     "picture before and after correction (.png)"},
    {"animation", "animation", ".gif", PathRole::kOutputFile,
     "the sequence before, shifted and corrected (.gif)"},
    {"native", "native", ".native.dcm", PathRole::kOutputFile,
     "all frames as they are, with masks and shifts for viewers that subtract (.dcm)"}};

/// Says where the mask comes from unless frames are named.
enum class MaskChoice {
  kFile,   ///< the Mask Subtraction Sequence of the file; without one the first frame
  kFirst,  ///< the first frame
  kAuto,   ///< the frame before the contrast agent arrives, by the values
  kBest,   ///< for each frame, the mask frames that differ least from it
};
constexpr auto enum_names(MaskChoice*) {
  return std::to_array<EnumName<MaskChoice>>({{MaskChoice::kFile, "file"},
                                              {MaskChoice::kFirst, "first"},
                                              {MaskChoice::kAuto, "auto"},
                                              {MaskChoice::kBest, "best"}});
}

/// Says where the part that the collimator leaves is known from.
enum class ShutterChoice {
  kAuto,  ///< the shutter of the DICOM file; without one it is looked for in the frames
  kFile,  ///< that of the file alone
  kNone,  ///< all of the picture counts
};
constexpr auto enum_names(ShutterChoice*) {
  return std::to_array<EnumName<ShutterChoice>>({{ShutterChoice::kAuto, "auto"},
                                                 {ShutterChoice::kFile, "file"},
                                                 {ShutterChoice::kNone, "none"}});
}

/// Says what contrast agent does to the values.
enum class ContrastChoice {
  kFile,    ///< what a DICOM file says; it lowers those of other files
  kLowers,  ///< values rise with the X-rays that arrive
  kRaises,  ///< values rise with what is in their way, as line integrals do
};
constexpr auto enum_names(ContrastChoice*) {
  return std::to_array<EnumName<ContrastChoice>>({{ContrastChoice::kFile, "file"},
                                                  {ContrastChoice::kLowers, "lowers"},
                                                  {ContrastChoice::kRaises, "raises"}});
}

/// The unit of a field of motion that is written.
enum class FieldUnits {
  kMm,      ///< mm along LPS, on the grid of the frames
  kPixels,  ///< pixels along columns and rows, on a grid of spacing 1
};
constexpr auto enum_names(FieldUnits*) {
  return std::to_array<EnumName<FieldUnits>>(
      {{FieldUnits::kMm, "mm"}, {FieldUnits::kPixels, "px"}});
}

/// The options of a run over sequences, or over one volume.
struct AngiographyOptions {
  cases::Images images{
      .products = kAngiographyProducts,
      .input_help = "angiogram: DICOM, or frames as .mha .nrrd .nii.gz",
      .are_sequences = true,
      .format = "dcm",
      .memory_help = "memory of the frames in work, such as 4G or 500M (default 1G)"};
  InputImage mask_volume, roi;
  std::string frames, mask_frames;  // empty: all, and by `mask`
  MaskChoice mask = MaskChoice::kFile;
  std::vector<int> roi_rectangle;
  std::vector<double> roi_polygon;
  ShutterChoice shutter = ShutterChoice::kAuto;
  ContrastChoice contrast = ContrastChoice::kFile;
  FieldUnits field_units = FieldUnits::kMm;
  bool scores = true;
  int batch_frames = 0;
  dsa::DsaConfig config;

  template <class F>
  void fields(F&& f) {
    images.fields(f);
    f(Field{"mask-volume", mask_volume,
            "the input is a volume, and this one has no contrast agent"},
      Field{"frames", frames, "frames to subtract, from 1, such as 1-40 (default: all)"},
      Field{"mask-frames", mask_frames, "frames of the mask, from 1, such as 1-3,7"},
      Field{"mask", mask,
            "without --mask-frames: file (what it says, or first), first, auto; or best: for each "
            "frame the mean of the mask frames that differ least from it"},
      Field{"roi-rectangle", roi_rectangle,
            "motion is searched only inside this rectangle: x,y,width,height in pixels"}
          .lengths({0, 4}),
      Field{"roi-polygon", roi_polygon, "the same: x,y of the corners in pixels"},
      Field{"shutter", shutter, "what the collimator covers: auto, file or none"},
      Field{"contrast", contrast,
            "what contrast agent does to values: file (it says so; not DICOM: lowers), lowers, "
            "raises"},
      Field{"roi", roi, "mask of the frame's size; motion is searched only where it is not 0"},
      Field{"field-units", field_units, "of --field: mm, or px (then its spacing is 1 too)"},
      Field{"scores", scores,
            "measure each frame for the report and the record; pixels do not depend on it"},
      Field{"batch-frames", batch_frames, "frames worked on at a time; 0: by memory", 0, 4096}
          .no_effect_on_results());
  }
  /// Returns the grid that a field of motion over `grid` is written on.
  Grid field_grid(const Grid& grid) const;
};

/// Returns the columns of a list that stand for flags of their cases: mask_frames, frames and roi.
std::vector<CaseColumn> angiography_columns();

/// Returns what of a run has no code for a card; empty: nothing.
std::string subtracted_on_cpu_alone(const AngiographyOptions& o);

/// Throws UsageError for settings that contradict each other, whatever the image.
void check_angiography(const AngiographyOptions& o, const GivenFlags& given);
/// Throws UsageError for endings of files that cannot hold what they are for, and for cells of a
/// list that are no frames.
void check_angiography_names(const cases::CaseJob& c, const AngiographyOptions& o,
                             const std::set<std::string>& names);

/// Subtracts a sequence or a volume: the files that are wanted, with figures. All of it is the turn
/// of the case, since frames are read while others are computed.
Outputs subtract_case(const cases::CaseJob& c, const AngiographyOptions& o, const cases::Nothing&);
/// Looks at the header of a sequence or a volume. Throws what would be the failure of the case.
cases::CaseLook look_at_angiography(const cases::CaseJob& c, const AngiographyOptions& o,
                                    const cases::Nothing&);

}  // namespace larch::pipeline
