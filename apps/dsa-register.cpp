// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/angiography_case.h"

namespace {

using namespace larch;

struct Options {
  cases::Images images{
      .products = pipeline::kAngiographyProducts,
      .input_help = "angiogram: DICOM, or frames as .mha .nrrd .nii.gz",
      .are_sequences = true,
      .format = "dcm",
      .memory_help = "memory of the frames in work, such as 4G or 500M (default 1G)"};
  InputImage mask_volume, roi;
  pipeline::AngiographyInput input;  // what stands here of all sequences of a run
  pipeline::FieldUnits field_units = pipeline::FieldUnits::kMm;
  int batch_frames = 0;
  bool literal = false, scores = true;
  dsa::DsaConfig config;

  template <class F>
  void fields(F&& f) {
    images.fields(f);
    f(Field{"mask-volume", mask_volume,
            "the input is a volume, and this one has no contrast agent"});
    input.fields(f);
    f(Field{"roi", roi, "mask of the frame's size: only there motion is looked for"},
      Field{"field-units", field_units, "of --field: mm, or px (then its spacing is 1 too)"},
      Field{"literal", literal, "the method of US 2008/0037845 to the letter"},
      Field{"scores", scores,
            "measure how well each frame was corrected, beside its best shift as a whole"},
      Field{"batch-frames", batch_frames, "frames worked on at a time; 0: by memory", 0, 4096}
          .no_effect_on_results());
  }
  pipeline::AngiographyRequest request() const {
    pipeline::SequenceRequest sequence{input,  {},           field_units,
                                       scores, batch_frames, images.memory.count};
    sequence.input.region.roi = roi;
    return {sequence, mask_volume, literal, config};
  }
};

void check(const Options& options, const GivenFlags&) {
  pipeline::check_angiography(options.request());
  if (options.images.is_list() && (options.roi || options.mask_volume)) {
    throw UsageError("--roi and --mask-volume are for one image; leave them out beside --list");
  }
}

constexpr const char* kDescription =
    "Finds the motion between the mask (frames without contrast agent) and every contrast frame of "
    "an X-ray angiogram, moves the mask along and subtracts it. Motion is found block by block: "
    "the "
    "displacement whose histogram of differences is the most peaked, which vessels that fill do "
    "not "
    "mislead. The results do not depend on the device, the number of threads, or how many frames "
    "are worked on at a time.\n\n"
    "The mask is what --mask-frames names; or what a DICOM file says; or the first frame; or with "
    "--mask auto the frame before the contrast agent arrives. Volumes need --mask-volume.\n\n"
    "Differences are 16-bit grey values, vessels dark unless --vessels bright; in DICOM they are a "
    "new derived series. --validity tells saturated and covered pixels apart.\n\n"
    "With --list each sequence is a case: <id>.dcm (difference), <id>.field.mha, "
    "<id>.validity.mha, <id>.csv (grid), <id>.png (preview), <id>.gif (animation) and "
    "<id>.native.dcm (native), as --write says, a record <id>.larch.json, and status.tsv with a "
    "row "
    "for each; a case that fails does not stop the others.";

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "dsa-register";
  info.summary = "Subtract the mask of an angiogram, corrected for motion.";
  info.description = kDescription;
  info.examples = {
      "dsa-register --input cine.dcm --output subtracted.dcm --preview before-after.png",
      "dsa-register --input frames.nrrd --mask-frames 1-3 --output out.mha --field field.mha "
      "--grid grid.csv --passes 64/64,64/32,48/16",
      "dsa-register --input fill.nii.gz --mask-volume mask.nii.gz --output sub.nii.gz",
      "dsa-register --list cases.tsv --output-dir out --write difference,preview"};
  info.references = {
      "Deuerling-Zheng, Eisenacher, Galant, Hornegger, Stamminger, Accelerated image registration "
      "by means of parallel processors, US 2008/0037845 A1"};
  info.uses_seed = false;
  cases::CaseProgram<Options> program;
  program.check = check;
  program.process = [](const cases::CaseJob& c, const Options& o, const cases::Nothing&) {
    return pipeline::subtract_case(c, o.request());
  };
  program.look = [](const cases::CaseJob& c, const Options& o, const cases::Nothing&) {
    return pipeline::look_at_angiography(c, o.request());
  };
  program.check_names = [](const cases::CaseJob& c, const Options& o,
                           const std::set<std::string>&) {
    pipeline::check_angiography_names(c, o.request());
  };
  program.images = [](const Options& o) {
    return std::vector<std::pair<std::string, std::string>>{{"roi", o.roi},
                                                            {"mask-volume", o.mask_volume}};
  };
  program.bytes_per_voxel = 0;
  program.figures = {"frames",          "unreliable", "edge_hits",
                     "rms_uncorrected", "rms_shift",  "rms_corrected"};
  return cases::run_case_app(info, argc, argv, program);
}
