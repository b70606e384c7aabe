// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/run_app.h"
#include "larch/cases/option_groups.h"
#include "larch/pipeline/angiography/angiography_batch.h"
#include "larch/pipeline/angiography/angiography_description.h"
#include "larch/pipeline/angiography/angiography_options.h"
#include "larch/pipeline/angiography/subtract_volume.h"

namespace {

using namespace larch;
using pipeline::AngiographyProduct;

struct Options {
  cases::OneImage image;
  InputImage mask_volume;
  OutputImage output, field, validity;
  OutputFile grid, animation, native;
  OutputPicture preview;
  cases::ManyImages<AngiographyProduct> many{
      .folder_help = "with --list: folder for <id>.dcm ... and status.tsv",
      .write_help = "with --list: what to write for each sequence (default difference)",
      .format_help = "with --list: ending of the differences",
      .write = {AngiographyProduct::kDifference},
      .format = "dcm"};
  InputImage roi;
  pipeline::AngiographyInput input;  // what stands here of all sequences of a run
  pipeline::FieldUnits field_units = pipeline::FieldUnits::kMm;
  int batch_frames = 0;
  bool literal = false, scores = true;
  cases::MemoryLimit limit{.help = "memory of the frames in work, such as 4G or 500M (default 1G)"};
  dsa::DsaConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"input,i", image.input, "angiogram: DICOM, or frames as .mha .nrrd .nii.gz"},
      Field{"mask-volume", mask_volume,
            "the input is a volume, and this one has no contrast agent"},
      Field{"output,o", output, "subtracted frames: .dcm .mha .nrrd .nii.gz"},
      Field{"field", field, "motion of every pixel (see --field-units): .mha .nrrd"},
      Field{"validity", validity, "by pixel: 0 valid, 1 beyond the mask, 2 saturated, 3 outside"},
      Field{"grid", grid, "CSV with a line per frame and block"},
      Field{"preview", preview, "picture before and after correction (.png)"},
      Field{"animation", animation, "the sequence before, shifted and corrected (.gif)"},
      Field{"native", native,
            "all frames as they are, with masks and shifts for viewers that subtract (.dcm)"});
    many.fields(f);
    input.fields(f);
    f(Field{"roi", roi, "mask of the frame's size: only there motion is looked for"},
      Field{"field-units", field_units, "of --field: mm, or px (then its spacing is 1 too)"},
      Field{"literal", literal, "the method of US 2008/0037845 to the letter"},
      Field{"scores", scores,
            "measure how well each frame was corrected, beside its best shift as a whole"},
      Field{"batch-frames", batch_frames, "frames worked on at a time; 0: by memory", 0, 4096}
          .no_effect_on_results());
    limit.fields(f);
    f(allow_field(image.reading.allow));
  }
  ListedInputs listed_inputs() const {
    ListedInputs listed{image.inputs()};
    for (const auto& [role, path] :
         {std::pair("roi", roi), std::pair("mask-volume", mask_volume)}) {
      for (const RunInput& data : cases::detached_inputs(role, path)) listed.inputs.push_back(data);
    }
    return listed;
  }
  bool by_case() const { return static_cast<bool>(many); }
  dsa::DsaConfig settings() const { return literal ? dsa::literal_config(config) : config; }
  pipeline::AngiographyFiles files() const {
    return {output, field, validity, grid, preview, animation, native};
  }
  void check() const {
    many.check(image);
    pipeline::check_angiography_input(input);
    if (literal) pipeline::check_literal(config);
    dsa::passes_of(settings(), static_cast<bool>(mask_volume));
    if (mask_volume) {
      const pipeline::SequenceRequest said{input,  {},           field_units,
                                           scores, batch_frames, limit.memory.count};
      pipeline::check_volume_options(said, config);
    }
    if (!many) return pipeline::check_angiography_files(files(), static_cast<bool>(mask_volume));
    if (!files().are_none() || roi || mask_volume) {
      throw UsageError(
          "--output, --field, --validity, --grid, --preview, --animation, --native, --roi and "
          "--mask-volume are for one sequence; with --list give --output-dir and --write");
    }
    pipeline::check_angiography_files(
        pipeline::angiography_files_of_case("", "case", many.write, many.image_ending()), false);
  }
  pipeline::SequenceRequest sequence(const Context& context) const {
    pipeline::SequenceRequest request{input,  files(),      field_units,
                                      scores, batch_frames, limit.memory.count};
    request.input.path = image.input;
    request.input.region.roi = roi;
    request.input.read = image.read_options(context);
    request.input.read.has_frame_flag = false;
    return request;
  }
  pipeline::AngiographyBatch batch(const Context& context) const {
    return {many.batch(image, limit.memory, context), sequence(context)};
  }
  pipeline::VolumeRequest volume(const Context& context) const {
    return {image.input, mask_volume, roi, files(), field_units, sequence(context).input.read};
  }
};

Plan plan(const Options& options, const Context& context, const CaseWriter& writer) {
  const dsa::DsaConfig config = options.settings();
  if (options.by_case()) {
    return pipeline::plan_angiography_batch(options.batch(context), config, writer, context);
  }
  if (options.mask_volume) return pipeline::plan_volume(options.volume(context), config, context);
  return pipeline::plan_sequence(options.sequence(context), config, context);
}

Outputs run(const Options& options, Context& context, const CaseWriter& writer) {
  const dsa::DsaConfig config = options.settings();
  if (options.by_case()) {
    return pipeline::subtract_batch(options.batch(context), config, writer, context);
  }
  if (options.mask_volume) {
    return pipeline::subtract_volume(options.volume(context), config, context);
  }
  return pipeline::subtract_sequence(options.sequence(context), config, context);
}

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "dsa-register";
  info.summary = "Subtract the mask of an angiogram, corrected for motion.";
  info.description = pipeline::kAngiographyDescription;
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
  return run_app<Options>(info, argc, argv, run, plan);
}
