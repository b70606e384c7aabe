// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/files/file.h"
#include "larch/levelset.h"
#include "larch/pipeline/case_poses.h"
#include "larch/pipeline/levelset/segmentation.h"
#include "larch/pipeline/structures.h"

namespace {

using namespace larch;

struct Options {
  cases::Images images{.products = pipeline::kSegmentationProducts};
  pipeline::SegmentationSeeds seeds;
  bool time_series = false, by_label = false;
  levelset::LevelsetConfig config;

  template <class F>
  void fields(F&& f) {
    images.fields(f);
    seeds.fields(f);
    f(Field{"time-series", time_series,
            "all frames of a 4-D image, each from the last one's surfaces"},
      Field{"by-label", by_label,
            "level set, distance and mesh of each label too: <name>.label2<ending>"});
  }
  pipeline::SegmentationRequest request() const { return {seeds, config, by_label, time_series}; }
};

void check(const Options& options, const GivenFlags& given) {
  options.seeds.check(options.config, given);
  if (!options.images.is_list() && !options.seeds.has_start()) {
    throw UsageError(
        "there is no seed: give --sphere-mm x,y,z,r or --sphere-index i,j,k,r with a place in the "
        "structure and a radius, --points, --init-labelmap or --init-level-set");
  }
  pipeline::SegmentationSeeds seeds = options.seeds;
  if (is_folder(seeds.init_labelmap)) seeds.init_labelmap = {};
  if (options.images.is_list() && (!seeds.images().empty() || options.time_series)) {
    throw UsageError(
        "--time-series and images beside the input are for one image; with --list give seeds in "
        "columns of the list, or --init-labelmap the folder of a run that made label maps");
  }
}

constexpr const char* kDescription =
    "Grows a structure from seeds: a surface moves outwards where the intensity lies between lower "
    "and upper (fastest in the middle), inwards elsewhere, and is smoothed by its curvature "
    "(curvature_weight) until it comes to rest. Without lower and upper they are found from the "
    "intensities in and around the seeds. The result does not depend on the tracker, the device or "
    "the number of threads.\n\n"
    "Seeds are spheres (--sphere-mm in LPS mm, --sphere-index in voxels from 0, each with a label "
    "as 5th number if there are several structures; 0 is background, which stays outside), points "
    "of 3D Slicer (--points, --background), a label map (--init-labelmap) or a level set "
    "(--init-level-set). Structures of several labels never overlap. If nothing is left of "
    "one the outputs are written with the status 'rejected' and the exit code is 7.\n\n"
    "With --list or --dataset and --output-dir each image starts from the spheres in its columns "
    "sphere_mm and sphere_index (several parted by semicolons), from the label map in the column "
    "label, and from the spheres that are given for all. The folder gets what --write says: "
    "<id>.nii.gz (labels), <id>.phi.nii.gz (level-set), <id>.distance.nii.gz, <id>.vtk (mesh), "
    "<id>.png (qc), <id>.plot.png; a record <id>.larch.json of each case, and status.tsv. A case "
    "that fails does not stop the others; the exit code is then 7.";

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "levelset-segment";
  info.summary = "Segment a structure from seeds by a level set of threshold and curvature.";
  info.description = kDescription;
  info.examples = {
      "levelset-segment --input head.nii.gz --sphere-mm 12,-8,30,4 --lower 88 --upper 116 "
      "--curvature-weight 0.03 --output seg.nii.gz --mesh wm.vtk --report r.json --qc qc.png",
      "levelset-segment --input ct-folder/ --init-labelmap rough.nii.gz --output refined.nii.gz "
      "--level-set phi.nii.gz",
      "levelset-segment --list cases.tsv --output-dir out --write labels,mesh,qc"};
  info.references = {
      "Roberts, Packer, Sousa, Mitchell, A work-efficient GPU algorithm for level set "
      "segmentation, High Performance Graphics 2010"};
  info.results_version = levelset::kArithmeticVersion + 1;  // contours of pictures are smooth
  info.uses_seed = false;
  cases::CaseProgram<Options> program;
  program.check = check;
  program.process = [](const cases::CaseJob& c, const Options& o, const cases::Nothing&) {
    return pipeline::segment_case(c, o.request());
  };
  program.complete = [](const Options& o, Case& c) {
    pipeline::complete_labels(o.seeds.init_labelmap, c);
  };
  program.look = [](const cases::CaseJob& c, const Options& o, const cases::Nothing&) {
    return pipeline::look_at_segmentation(c, o.request());
  };
  program.check_names = [](const cases::CaseJob& c, const Options& o,
                           const std::set<std::string>& names) {
    pipeline::check_segmentation_names(c, o.request(), names);
  };
  program.images = [](const Options& o) { return o.seeds.images(); };
  program.columns = {
      {"label", /*is_file=*/true}, {"sphere_mm"}, {"sphere-mm"}, {"sphere_index"}, {"sphere-index"},
      pipeline::kReference};
  program.figures = {"voxels", "volume_ml", "iterations", "touches_border"};
  program.rejection = "nothing is left of a structure, or it fills the body";
  program.bytes_per_voxel = 48;
  return cases::run_case_app(info, argc, argv, program);
}
