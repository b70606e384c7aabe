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
  /// Throws UsageError if both are given, or a channel without a data set.
  void check() const;
  /// The cases, and which frame of their images is the chosen channel. Throws InputError, and
  /// UsageError for a channel.
  OneChannel select(const CaseColumns& columns = {}) const;
  /// What a data set tells of its channels and labels, for people.
  std::vector<std::string> notes() const;
};

/// Many images of one run, and what it writes for each of them.
template <class Product>
struct ImageBatch {
  std::vector<Case> cases;
  std::string folder;  ///< exists
  std::vector<Product> products{};
  std::string image_ending = ".nii.gz";
  std::string mesh_ending = ".vtk";
  ReadOptions read{};
  /// What the cases in flight may take on the host together, unless one takes more by itself; 0: no
  /// promise is made.
  int64_t memory_bytes = 0;
  std::vector<std::string> carried{};  ///< columns of the list that go to status.tsv
};

/// The cases of the list or data set; `read` gets the frame that holds the channel. Throws as
/// ImageList::select, and UsageError if both a frame and a channel choose a volume of the files.
std::vector<Case> select_cases(const ImageList& images, const CaseColumns& columns,
                               ReadOptions& read);

/// Many images with results of their own in one folder: the list, --output-dir, --write, --format,
/// --mesh-format and --carry. `Product`: an enum of what can be written for each image. The program
/// says what its products are for.
template <class Product>
struct ManyImages {
  const char* folder_help = "with --list: folder for <id>.nii.gz ... and status.tsv";
  const char* write_help = "with --list: what to write for each image";
  const char* format_help = "with --list: ending of images";
  const char* mesh_format_help = nullptr;  ///< none: no meshes are written, and there is no flag
  ImageList images{};
  OutputDir output_dir{};
  std::vector<Product> write{};
  std::string format = "nii.gz", mesh_format = "vtk";
  std::vector<std::string> carry{};

  template <class F>
  void fields(F&& f) {
    images.fields(f);
    // The names of the outputs tell what is written and in which format.
    f(Field{"output-dir", output_dir, folder_help},
      Field{"write", write, write_help}.no_effect_on_results(),
      Field{"format", format, format_help}.no_effect_on_results());
    if (mesh_format_help != nullptr) {
      f(Field{"mesh-format", mesh_format, mesh_format_help}.no_effect_on_results());
    }
    f(Field{"carry", carry, "with --list: further columns of the list to copy to status.tsv"}
          .no_effect_on_results());
  }
  explicit operator bool() const { return static_cast<bool>(images); }
  /// Throws UsageError for a list without a folder, a folder without a list, a list beside the one
  /// image, and flags of the other of the two.
  void check(const OneImage& one) const {
    if (images && (one.input || (images.list && images.dataset))) {
      throw UsageError("give one of --input, --list and --dataset");
    }
    images.check();
    if (images && !one.series.empty()) {
      throw UsageError("--series is for one image; name folders that hold one series each");
    }
    if (!images && !carry.empty()) throw UsageError("--carry goes with --list");
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

  /// What the flags ask for; images are read as `one` says. Warnings of reading go to `context`,
  /// which must outlive the batch. Throws as select_cases does.
  ImageBatch<Product> batch(const OneImage& one, const Bytes& memory,
                            const Context& context) const {
    ImageBatch<Product> batch;
    batch.read = one.read_options(context);
    CaseColumns columns;
    columns.files_exist = false;  // one that is missing is the failure of its case
    batch.cases = select_cases(images, columns, batch.read);
    batch.folder = output_dir;
    batch.products = write;
    batch.image_ending = image_ending();
    batch.mesh_ending = mesh_ending();
    batch.memory_bytes = memory.count;
    batch.carried = carry;
    return batch;
  }
};

/// What a run may take on the host: --memory.
struct MemoryLimit {
  const char* help = "memory of the evaluation, such as 4G or 500M (default: most of what is free)";
  Bytes memory{};  ///< 0: not limited

  template <class F>
  void fields(F&& f) {
    f(Field{"memory", memory, help}.no_effect_on_results());
  }
};

}  // namespace larch::cases
