// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/dsa/dsa_config.h"
#include "larch/dsa/region.h"
#include "larch/dsa/samples.h"
#include "larch/io/sequence/sequence_reader.h"
#include "larch/pipeline/angiography/input/mask_plan.h"

namespace larch::pipeline {

/// Where the part that the collimator leaves comes from.
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

/// The pixels that count, as the user says it.
struct RegionRequest {
  std::string roi{};              ///< file of a mask of the frame's size; empty: none
  std::vector<int> rectangle{};   ///< x, y, width, height in pixels; empty: none
  std::vector<double> polygon{};  ///< x, y of the corners in pixels; empty: none
  ShutterChoice shutter = ShutterChoice::kAuto;
};

/// A sequence and what is to be subtracted from what, as the user says it.
struct AngiographyInput {
  std::string path;
  std::string frames{};       ///< those that are subtracted, such as "1-40"; empty: all
  std::string mask_frames{};  ///< empty: by `mask`
  MaskChoice mask = MaskChoice::kFile;
  RegionRequest region{};
  ReadOptions read{};

  /// The flags of what stands of all sequences of a run.
  template <class F>
  void fields(F&& f) {
    f(Field{"frames", frames, "frames to subtract, from 1, such as 1-40 (default: all)"},
      Field{"mask-frames", mask_frames, "frames of the mask, from 1, such as 1-3,7"},
      Field{"mask", mask, "without --mask-frames: file (what it says, or first), first, auto"},
      Field{"roi-rectangle", region.rectangle,
            "only there motion is looked for: x,y,width,height in pixels"}
          .lengths({0, 4}),
      Field{"roi-polygon", region.polygon, "the same: x,y of the corners in pixels"},
      Field{"shutter", region.shutter, "what the collimator covers: auto, file or none"});
  }
};

/// Throws UsageError for flags that contradict each other or are no frames, before anything is
/// read.
void check_angiography_input(const AngiographyInput& input);

/// A sequence before it is subtracted.
struct OpenAngiogram {
  SequenceReader reader;
  MaskPlan plan;
  dsa::SampleTable table;
  std::vector<uint8_t> region;       ///< contrast pixels that count, by pixel; empty: all
  std::vector<uint8_t> unshuttered;  ///< what the collimator leaves, by pixel; empty: all
  std::vector<std::string> notes;    ///< what was decided, for the report
};

/// What the header decides: the frames, their masks and the table of samples. `mask` kAuto reads
/// all frames. Throws InputError and UsageError; warns through `context`.
OpenAngiogram open_angiogram(const AngiographyInput& input, const dsa::DsaConfig& config,
                             const Context& context);

/// Fills OpenAngiogram::region: region of interest and shutter, for which some frames are read.
/// Throws InputError: a mask that cannot be read or has another size; no pixel is left.
void find_region(const AngiographyInput& input, OpenAngiogram& open, const Context& context);

/// The sha256, as text, of all that decides the pixels of a subtraction: the bytes of the file
/// `path` and of those that its header names, configuration, masks, region and collimator, and the
/// version of Larch. UIDs are made of it, so that the same run gives the same file, and no other
/// run one with the same UIDs. Throws InputError if a file cannot be read.
std::string angiography_identity(const std::string& path, const dsa::DsaConfig& config,
                                 const OpenAngiogram& open);

}  // namespace larch::pipeline
