// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/app/outputs/paths.h"
#include "larch/app/program.h"
#include "larch/cases/case_list.h"
#include "larch/cases/dataset_json.h"
#include "larch/config/fields.h"
#include "larch/config/node.h"
#include "larch/config/text.h"
#include "larch/core/context.h"
#include "larch/core/error.h"
#include "larch/io/image/image.h"

// Groups of flags that several executables have. The Options of an executable hold a group as a
// member and hand its flags on:
//
//     struct Options {
//       cases::Images images{.products = kProducts};
//       template <class F> void fields(F&& f) { images.fields(f); f(Field{"model,m", ...}); }
//     };
namespace larch::cases {

/// The flags by which images are read, whatever names them: --nan-value and --allow.
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

/// A list of images, or a data set: --list, --dataset and --channel.
struct ImageList {
  const char* list_help =
      "many images: TSV or CSV with the column image, and id if wanted; or a folder of images";
  const char* dataset_help = "many images: a Decathlon or nnU-Net folder, or its dataset.json";
  InputList list{}, dataset{};
  std::string channel{};
  DatasetPart part = DatasetPart::kTest;  ///< of the data set

  template <class F>
  void fields(F&& f) {
    f(Field{"list,l", list, list_help}.no_effect_on_results().endings(".tsv,.csv"),
      Field{"dataset", dataset, dataset_help}.no_effect_on_results().endings(".json"),
      Field{"channel", channel,
            "with --dataset: the channel, by name or number from 0, of several"});
  }
  explicit operator bool() const { return list || dataset; }
  /// Returns the data set that is meant: --dataset, or --list if it is a folder with a
  /// dataset.json; empty: there is none.
  const std::string& dataset_path() const;
  /// Throws UsageError if both are given, or a channel without a data set.
  void check() const;
  /// Returns the cases; `read` gets the frame that holds the chosen channel, and is warned of
  /// columns that are neither known nor carried. Throws InputError, and UsageError for a channel,
  /// or if both a frame and a channel choose a volume of the files. For `part` training images of a
  /// folder have the labels that are beside them.
  std::vector<Case> select(const CaseColumns& columns, ReadOptions& read,
                           const std::vector<std::string>& carried = {}) const;
  /// Lines for people about the channels and labels of a data set.
  std::vector<std::string> notes() const;
};

/// A file that a program can write for each image.
struct Product {
  const char* flag;    ///< of one image: "output,o"
  const char* write;   ///< its word for --write
  const char* ending;  ///< of a list: behind the id
  PathRole kind;
  const char* help;
  const char* companion = nullptr;  ///< ending of a file beside it, in place of its own: ".tsv"
};

/// One image, or many with results of their own in one folder: what is read, and the products.
struct Images {
  std::span<const Product> products;
  const char* input_help = "image file or DICOM folder";
  /// Images are sequences of frames: no --series, --frame and --nan-value, and the program checks
  /// the endings of images itself.
  bool are_sequences = false;
  std::string format = "nii.gz", mesh_format = "vtk";
  const char* memory_help =
      "memory of the images in work, such as 4G or 500M (default: half of "
      "what is free)";

  InputImage input{};
  std::string series{};
  std::optional<int> frame{};
  Reading reading{};
  std::vector<std::string> paths = std::vector<std::string>(products.size());  ///< of products
  ImageList list{};
  OutputDir output_dir{};
  std::vector<std::string> write{products.front().write};
  std::vector<std::string> carry{};
  InputFile label_table{};
  bool identifiers = false;
  Bytes memory{};                      ///< 0: not limited
  std::array<uint64_t, 2> part{1, 1};  ///< K and N
  int reject_code = static_cast<int>(ExitCode::kRejected);
  std::string default_format = format, default_mesh_format = mesh_format;

  template <class F>
  void fields(F&& f) {
    f(Field{"input,i", input, input_help});
    if (are_sequences) {
      f(allow_field(reading.allow));
    } else {
      f(Field{"series", series, "SeriesInstanceUID, if the DICOM folder holds several"},
        frame_field(frame));
      reading.fields(f);
    }
    for (size_t i = 0; i < products.size(); ++i) f(product_flag(i));
    const auto of_lists = [&f](const auto&... field) { f(field.of_lists()...); };
    list.fields(of_lists);
    of_lists(Field{"dataset-part", list.part, "with --dataset: its test or its training images"}
                 .no_effect_on_results());
    // The names of the outputs tell what is written and in which format.
    of_lists(Field{"output-dir", output_dir, "with --list: folder for <id>.* and status.tsv"});
    f(write_flag());
    of_lists(Field{"format", format,
                   has(PathRole::kOutputLabelmap)
                       ? "with --list: ending of images; dcm: label maps are DICOM segmentations"
                       : "with --list: ending of images"}
                 .no_effect_on_results());
    if (has(PathRole::kOutputMesh)) {
      of_lists(Field{"mesh-format", mesh_format, "with --list: ending of meshes"}
                   .no_effect_on_results());
    }
    of_lists(Field{"carry", carry, "with --list: further columns of the list to copy to status.tsv"}
                 .no_effect_on_results(),
             Field{"part", part, "with --list: K,N does every Nth case, from the Kth on", 1, 10000}
                 .no_effect_on_results());
    if (has(PathRole::kOutputLabelmap)) {
      f(Field{"label-table", label_table,
              "TSV with index, name, color, code_scheme, code_value, code_meaning of labels"}
            .endings(".tsv,.csv"));
    }
    f(Field{"reject-code", reject_code, "exit code if results are rejected and no case failed"}
          .one_of({0, 7})
          .no_effect_on_results(),
      Field{"identifiers", identifiers, "records hold the PatientID of DICOM, too"}
          .no_effect_on_results(),
      Field{"memory", memory, memory_help}.no_effect_on_results());
  }

  bool is_list() const { return static_cast<bool>(list); }
  /// Throws UsageError for a list without a folder, flags of one image beside a list and the other
  /// way round, no product at all, and endings that cannot be written.
  void check(const GivenFlags& given) const;
  /// Names of the products of one image, or of a case of the list: those that are wanted, each with
  /// the name of its flag.
  std::vector<CaseOutput> files() const;
  std::vector<CaseOutput> files_of(const std::string& id) const;
  /// Returns the companions of such files.
  std::vector<std::string> companions(const std::vector<CaseOutput>& files) const;
  /// Returns the options by which the one image is read, or all of a list.
  ReadOptions read_options(const Context& context) const;
  /// Returns the name of a product's flag: "output" of "output,o".
  static std::string flag_name(const Product& product);

 private:
  bool has(PathRole kind) const;
  config::Node product_flag(size_t i);
  config::Node write_flag();
  void check_files(const std::vector<CaseOutput>& files) const;
};

/// Returns the file of a product by the name of its flag; empty if it is not wanted.
std::string file_of(const std::vector<CaseOutput>& files, const std::string& flag);

/// Returns the image of a header. Throws InputError if it has several volumes or values per voxel,
/// or cannot be read.
ImageInfo probe_one_volume(const std::string& path, const ReadOptions& read);

/// Throws InputError, which names both files, unless their images lie on one grid
/// (require_on_grid).
void require_same_grid(const std::string& path, const Grid& grid, const std::string& other,
                       const Grid& grid_of_other);

/// Returns the files beside an image that hold its voxels, for records.
std::vector<RunInput> detached_inputs(const std::string& role, const std::string& image,
                                      const std::string& of_case = "");
/// Returns an image of a role, with the files beside it that hold its voxels, for records.
std::vector<RunInput> image_inputs(const std::string& role, const std::string& image,
                                   const std::string& of_case = "");
/// Returns the image of a case, of the files of a series where its folder holds others too.
std::vector<RunInput> image_inputs(const std::string& role, const Case& c,
                                   const std::string& of_case = "");
/// How the image of a case is read: as all are, but for the series that its cell names.
ReadOptions options_of_case(const Case& c, ReadOptions read);
/// Images and labels of a list, under the names of their columns, and which series are read.
ListedInputs inputs_of_cases(const std::vector<Case>& cases, const CaseColumns& columns,
                             bool order_matters);

/// Returns the file beside a product that has `ending` in place of its own: "seg.tsv" of
/// "seg.nii.gz".
std::string companion_of(const std::string& path, const std::string& ending);

/// Warns of the columns of a list of cases that nobody reads, since one that is misspelt would be
/// passed over without a word.
void warn_of_unread_columns(const std::string& list, const std::vector<Case>& cases,
                            const CaseColumns& columns, const std::vector<std::string>& carried,
                            const ReadOptions& read);

/// "512x512x60" and "0.5x0.5x2" for tables of a dry run.
std::string size_cell(const Grid& grid);
std::string spacing_cell(const Grid& grid);

}  // namespace larch::cases
