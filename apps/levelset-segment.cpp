// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "larch/app/run_app.h"
#include "larch/cases/option_groups.h"
#include "larch/levelset/arithmetic_version.h"
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
  bool time_series = false, by_label = false;
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
      Field{"by-label", by_label,
            "level set, distance and mesh of each label too: <name>.label2<ending>"});
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
    return {output, level_set, distance, mesh, qc, plot, by_label};
  }
  std::vector<std::string> companions() const {
    if (many) return {};
    return files().names(seeds.known_labels()).companions;
  }
  void check(const GivenFlags& given) const {
    many.check(image);
    seeds.check();
    pipeline::check_levelset_config(config, seeds, given);
    if (many) return check_many();
    check_one();
    seeds.require_start();
    pipeline::check_files(files());
    if (time_series) pipeline::check_series(files(), static_cast<bool>(image.frame));
    pipeline::check_names(image.input, seeds, files());
  }
  /// 3D Slicer gives every flag, so that one with its default asks for nothing.
  void check_one() const {
    const Options usual;
    for (const auto& [is_usual, flag] :
         {std::pair(many.write == usual.many.write, "--write"),
          std::pair(many.format == usual.many.format, "--format"),
          std::pair(many.mesh_format == usual.many.mesh_format, "--mesh-format"),
          std::pair(limit.memory.count == usual.limit.memory.count, "--memory")}) {
      if (!is_usual) throw UsageError(std::string(flag) + " goes with --list; leave it out");
    }
  }
  void check_many() const {
    if (!files().are_none() || seeds.has_files() || time_series) {
      throw UsageError(
          "--output, --level-set, --distance, --mesh, --qc, --plot, --time-series and images "
          "beside the input are for one image; with --list give --output-dir and --write, and "
          "seeds in columns of the list");
    }
    pipeline::SegmentationFiles of_case = pipeline::segmentation_files_of_case(
        "", "case", many.write, many.image_ending(), many.mesh_ending());
    of_case.by_label = by_label;
    pipeline::check_files(of_case);
  }
  pipeline::SegmentationRequest request(const Context& context) const {
    return {image.input, seeds, files(), image.read_options(context)};
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
    return pipeline::plan_segmentation(options.request(context), options.config, writer, context);
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
  info.results_version = levelset::kArithmeticVersion;  // what else changes outputs is added
  info.uses_seed = false;
  const auto run = [&](const Options& options, Context& context, const CaseWriter& writer) {
    if (options.by_case()) {
      return pipeline::segment_batch(options.batch(context), options.config, writer, context);
    }
    if (options.time_series) {
      return pipeline::segment_series(options.request(context), options.config, context);
    }
    return pipeline::segment_image(options.request(context), options.config, writer, context);
  };
  return run_app<Options>(info, argc, argv, run, plan);
}
