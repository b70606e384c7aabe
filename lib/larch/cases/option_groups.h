// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/app/outputs/paths.h"
#include "larch/cases/case_inputs.h"
#include "larch/config/bytes.h"
#include "larch/config/fields.h"
#include "larch/core/context.h"
#include "larch/core/error.h"
#include "larch/io/image/image.h"
#include "larch/io/table/case_list.h"
#include "larch/io/table/dataset_json.h"

// Groups of flags that several executables have. The Options of an executable hold a group as a
// member and hand its flags on:
//
//     struct Options {
//       cases::OneImage image;
//       template <class F> void fields(F&& f) { image.fields(f); f(Field{"output,o", ...}); }
//     };
namespace larch::cases {

/// How images are read, whatever names them: --nan-value and --allow.
struct Reading {
  std::optional<double> nan_value{};
  std::vector<Allow> allow{};

  template <class F>
  void fields(F&& f) {
    f(Field{"nan-value", nan_value, "stands for voxels that are not numbers"}, allow_field(allow));
  }
  /// Warnings go to `context`, which must outlive what is returned.
  ReadOptions read_options(const Context& context) const;
};

/// One image: --input, --series, --frame and how it is read.
struct OneImage {
  InputImage input{};
  std::string series{};
  std::optional<int> frame{};
  Reading reading{};

  template <class F>
  void fields(F&& f) {
    f(Field{"input,i", input, "image file or DICOM folder"},
      Field{"series", series, "SeriesInstanceUID, if the DICOM folder holds several"},
      frame_field(frame));
    reading.fields(f);
  }
  /// As Reading::read_options, for this image.
  ReadOptions read_options(const Context& context) const;
  /// The files beside the image that hold its voxels, for the records of the run.
  std::vector<RunInput> inputs() const { return detached_inputs("input", input); }
};

/// A list of images, or a data set: --list, --dataset and --channel.
struct ImageList {
  const char* list_help = "many images: TSV or CSV with the column image, and id if wanted";
  const char* dataset_help = "many images: dataset.json of a Decathlon or nnU-Net folder";
  InputFile list{}, dataset{};
  std::string channel{};

  template <class F>
  void fields(F&& f) {
    f(Field{"list,l", list, list_help}.no_effect_on_results(),
      Field{"dataset", dataset, dataset_help}.no_effect_on_results(),
      Field{"channel", channel,
            "with --dataset: the channel, by name or number from 0, of several"});
  }
  explicit operator bool() const { return list || dataset; }
  /// Throws UsageError if both are given, or a channel for a list.
  void check() const;
  /// The cases, and which frame of their images is the chosen channel. Throws InputError, and
  /// UsageError for a channel.
  OneChannel select(const CaseColumns& columns = {}) const;
  /// What a data set tells of its channels and labels, for people.
  std::vector<std::string> notes() const;
};

/// Many images with results of their own in one folder: the list, --output-dir, --write, --format,
/// --mesh-format and --carry. `Product`: an enum of what can be written for each image.
template <class Product>
struct ManyImages {
  ImageList images{};
  OutputDir output_dir{};
  std::vector<Product> write{};
  std::string format = "nii.gz", mesh_format = "vtk";
  std::vector<std::string> carry{};

  template <class F>
  void fields(F&& f) {
    images.fields(f);
    f(Field{"output-dir", output_dir, "with --list: folder for <id>.nii.gz ... and status.tsv"},
      Field{"write", write, "with --list: what to write for each image (default labels)"}
          .no_effect_on_results(),  // the names of the outputs tell it, as they do the formats
      Field{"format", format, "with --list: ending of label and probability maps"}
          .no_effect_on_results(),
      Field{"mesh-format", mesh_format, "with --list: ending of meshes"}.no_effect_on_results(),
      Field{"carry", carry, "with --list: further columns of the list to copy to status.tsv"}
          .no_effect_on_results());
  }
  explicit operator bool() const { return static_cast<bool>(images); }
  /// Throws UsageError for a list without a folder, a folder without a list, and a list beside the
  /// one image.
  void check(const OneImage& one) const {
    if (images && (one.input || (images.list && images.dataset))) {
      throw UsageError("give one of --input, --list and --dataset");
    }
    if (!images && !one.input) {
      throw UsageError("--input is missing; give it, or --list for many images");
    }
    if (!images && output_dir) throw UsageError("--output-dir goes with --list; give --output");
    if (images && !output_dir) {
      throw UsageError("--output-dir is missing: the folder for the results");
    }
  }
  /// The endings with their dots.
  std::string image_ending() const { return "." + format; }
  std::string mesh_ending() const { return "." + mesh_format; }
};

/// What a run may take on the host: --memory.
struct MemoryLimit {
  Bytes memory{};  ///< 0: not limited

  template <class F>
  void fields(F&& f) {
    f(Field{"memory", memory,
            "memory of the evaluation, such as 4G or 500M (default: most of what is free)"}
          .no_effect_on_results());
  }
};

}  // namespace larch::cases
