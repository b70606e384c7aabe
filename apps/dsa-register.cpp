// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/angiography_case.h"

namespace {

using namespace larch;

constexpr const char* kDescription =
    "Finds the motion between the mask (frames without contrast agent) and every contrast frame of "
    "an X-ray angiogram, moves the mask along and subtracts it. Motion is found block by block: "
    "the displacement whose histogram of differences is the most peaked, which vessels that fill "
    "do not mislead. The results do not depend on the device, the number of threads, or how many "
    "frames are worked on at a time.\n\n"
    "The mask is what --mask-frames names; or what a DICOM file says; or the first frame; or with "
    "--mask auto the frame before the contrast agent arrives, with --mask best for each frame "
    "those "
    "that it is most like. Several are moved to each other. Volumes need --mask-volume.\n\n"
    "Differences are 16-bit grey values, vessels dark unless --vessels bright; in DICOM they are a "
    "new derived series. --validity tells saturated and covered pixels apart.\n\n"
    "With --list each sequence is a case: <id>.dcm (difference), <id>.field.mha, "
    "<id>.validity.mha, <id>.csv (grid), <id>.png (preview), <id>.gif (animation) and "
    "<id>.native.dcm (native), as --write says, a record <id>.larch.json, and status.tsv with a "
    "row for each; a case that fails does not stop the others. The columns mask_frames, frames and "
    "roi of the list stand for the flags of these names.";

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
  info.results_version = 2;  // DICOM files tell SoftwareVersions
  info.uses_seed = false;
  using Options = pipeline::AngiographyOptions;
  cases::CaseProgram<Options> program;
  program.check = pipeline::check_angiography;
  program.process = pipeline::subtract_case;
  program.look = pipeline::look_at_angiography;
  program.check_names = pipeline::check_angiography_names;
  program.images = [](const Options& o) {
    return std::vector<std::pair<std::string, std::string>>{{"roi", o.roi},
                                                            {"mask-volume", o.mask_volume}};
  };
  program.cpu_alone = pipeline::subtracted_on_cpu_alone;
  program.columns = pipeline::angiography_columns();
  program.bytes_per_voxel = 0;
  program.figures = {"frames",          "unreliable", "edge_hits",
                     "rms_uncorrected", "rms_shift",  "rms_corrected"};
  return cases::run_case_app(info, argc, argv, program);
}
