// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "larch/app/run_app.h"
#include "larch/cases/option_groups.h"
#include "larch/files/atomic_file.h"
#include "larch/pipeline/levelset/segmentation_description.h"
#include "larch/pipeline/levelset/segmentation_plan.h"
#include "larch/pipeline/levelset/segmentation_series.h"

namespace {

using namespace larch;
using pipeline::SegmentationProduct;

struct Options {
  cases::OneImage image;
  pipeline::SegmentationSeeds seeds;
  OutputLabelmap output;
  OutputImage level_set, distance;
  OutputMesh mesh;
  OutputPicture qc, plot;
  bool time_series = false, resume = false;
  std::string checkpoint;
  cases::ManyImages<SegmentationProduct> many{
      .write_help = "with --list: what to write for each image (default labels)",
      .format_help = "with --list: ending of images",
      .mesh_format_help = "with --list: ending of meshes",
      .write = {SegmentationProduct::kLabels}};
  cases::MemoryLimit limit{.help = "with --list: memory of all images in flight, such as 4G"};
  levelset::LevelsetConfig config;

  template <class F>
  void fields(F&& f) {
    image.fields(f);
    seeds.fields(f);
    f(Field{"output,o", output, "label map on the grid of the input"},
      Field{"level-set", level_set, "level set in mm, negative inside"},
      Field{"distance", distance, "exact signed distance in mm, negative inside"},
      Field{"mesh", mesh, "surface: .vtk, .obj, .ply, .stl (LPS mm) or .gii (RAS mm)"},
      Field{"qc", qc, "picture of three slices with the contour (.png)"},
      Field{"plot", plot, "picture of active and changed voxels over the iterations (.png)"},
      Field{"time-series", time_series,
            "all frames of a 4-D image, each from the last one's surfaces"},
      Field{"resume", resume, "go on from the checkpoint of an interrupted run"}
          .no_effect_on_results(),
      Field{"checkpoint", checkpoint,
            "file for --resume (default: the name of the first output and .ckpt)"}
          .no_effect_on_results());
    many.fields(f);
    limit.fields(f);
  }
  bool by_case() const { return static_cast<bool>(many); }
  ListedInputs listed_inputs() const {
    ListedInputs listed{image.inputs()};
    for (const auto& [role, path] : seeds.images()) {
      for (const RunInput& data : cases::detached_inputs(role, path)) listed.inputs.push_back(data);
    }
    return listed;
  }
  pipeline::SegmentationFiles files() const {
    return {output, level_set, distance, mesh, qc, plot};
  }
  std::string checkpoint_path() const {
    if (many || !checkpoint.empty() || files().are_none()) return checkpoint;
    return files().names().outputs.front().path + ".ckpt";
  }
  /// Without --resume, the checkpoint of an earlier run is not replaced unasked.
  std::vector<std::string> companions() const {
    return many || resume ? std::vector<std::string>{} : std::vector{checkpoint_path()};
  }
  void check() const {
    many.check(image);
    seeds.check();
    pipeline::check_levelset_config(config);
    if (many) return check_many();
    if (!seeds.has_start()) {
      throw UsageError(
          "there is no seed: give --sphere-mm x,y,z,r or --sphere-index i,j,k,r with a place in "
          "the structure and a radius, --init-labelmap or --init-level-set");
    }
    pipeline::check_files(files());
    if (time_series) pipeline::check_series(files(), image.frame || resume);
    pipeline::check_checkpoint(checkpoint_path(), image.input, seeds, files());
  }
  void check_many() const {
    if (!files().are_none() || seeds.has_files() || time_series || resume || !checkpoint.empty()) {
      throw UsageError(
          "--output, --level-set, --distance, --mesh, --qc, --plot, --resume, --checkpoint, "
          "--time-series and images beside the input are for one image; with --list give "
          "--output-dir and --write, "
          "and label maps to start from in the column label");
    }
    pipeline::check_files(pipeline::segmentation_files_of_case(
        "", "case", many.write, many.image_ending(), many.mesh_ending()));
  }
  pipeline::SegmentationRequest request(const Context& context) const {
    return {image.input, seeds, files(), image.read_options(context), checkpoint_path(), resume};
  }
  pipeline::SegmentationBatch batch(const Context& context) const {
    return {many.batch(image, limit.memory, context), request(context)};
  }
};

Plan plan(const Options& options, const Context& context, const CaseWriter& writer) {
  if (options.time_series) {
    return pipeline::plan_series(options.request(context), options.config, context);
  }
  if (!options.by_case()) {
    return pipeline::plan_segmentation(options.request(context), options.config, context);
  }
  return pipeline::plan_segmentation_batch(options.batch(context), options.config, writer, context);
}

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "levelset-segment";
  info.summary = "Segment a structure from seeds by a level set of threshold and curvature.";
  info.description = pipeline::kSegmentationDescription;
  info.examples = {
      "levelset-segment --input head.nii.gz --sphere-mm 12,-8,30,4 --lower 88 --upper 116 "
      "--curvature-weight 0.03 --output seg.nii.gz --mesh wm.vtk --report r.json --qc qc.png",
      "levelset-segment --input ct-folder/ --init-labelmap rough.nii.gz --output refined.nii.gz "
      "--level-set phi.nii.gz",
      "levelset-segment --list cases.tsv --output-dir out --write labels,mesh,qc"};
  info.references = {
      "Roberts, Packer, Sousa, Mitchell, A work-efficient GPU algorithm for level set "
      "segmentation, High Performance Graphics 2010"};
  info.uses_seed = false;
  std::string checkpoint;  // not needed any more once the outputs are written
  const auto run = [&](const Options& options, Context& context, const CaseWriter& writer) {
    if (options.by_case()) {
      return pipeline::segment_batch(options.batch(context), options.config, writer, context);
    }
    if (options.time_series) {
      return pipeline::segment_series(options.request(context), options.config, context);
    }
    checkpoint = options.checkpoint_path();
    return pipeline::segment_image(options.request(context), options.config, context);
  };
  const int code = run_app<Options>(info, argc, argv, run, plan);
  if ((code == 0 || code == 7) && !checkpoint.empty()) remove_output(checkpoint);
  return code;
}
