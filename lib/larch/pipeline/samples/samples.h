// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/cases/case_list.h"
#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/phantom/angiogram.h"
#include "larch/phantom/head.h"
#include "larch/phantom/organs.h"
#include "larch/phantom/poses.h"
#include "larch/phantom/scene.h"
#include "larch/phantom/warped.h"

// Samples with known truth. Names of outputs are below the folder of the samples; what they hold is
// made when they are written, one case at a time, so that memory holds only one.

namespace larch::pipeline {

// The files of a case with an image and labels.

inline void add_text(const std::string& name, const std::string& text, Outputs& outputs) {
  outputs.add(name, [text](const std::string& path) { write_file(path, text); });
}

/// A case (such as phantom::OrgansCase) that is made when it is first asked for.
template <class Made>
std::function<Made&()> lazily(const std::function<Made()>& make) {
  return [make, made = std::make_shared<Made>()]() -> Made& {
    if (made->labels.empty()) *made = make();
    return *made;
  };
}

template <class Made>
void add_image(const std::string& name, const std::function<Made&()>& made, int threads,
               Outputs& outputs) {
  outputs.add(name, [=](const std::string& path) { write_volume(path, made().image, threads); });
}

/// The last file of a case, which is let go then.
template <class Made>
void add_labels(const std::string& name, const std::function<Made&()>& made,
                const LabelTable& table, int threads, Outputs& outputs) {
  outputs.add(name, [=](const std::string& path) {
    write_labelmap(path, made().labels, table, threads);
    made() = {};
  });
}

/// Volumes to train on, before they are made.
struct OrgansRequest {
  int training = 0;    ///< cases in train.tsv
  int test = 0;        ///< cases in test.tsv
  std::string format;  ///< ending of the image files, without the dot, or "dicom"
  phantom::OrgansConfig config;

  bool is_dicom() const { return format == "dicom"; }
};

/// Head phantoms with known tissues, before they are made.
struct HeadsRequest {
  int cases = 1;
  std::string format;  ///< ending of the image files, without the dot
  phantom::HeadConfig config;
};

/// Angiograms with known motion, before they are made.
struct AngiogramsRequest {
  int cases = 1;
  std::string format;     ///< ending of the sequences, without the dot: dcm, mha, nrrd, ...
  std::string picture{};  ///< X-ray picture or sequence whose (first) body is taken; may be empty
  bool has_truth = true;  ///< true motion and vessels are written too
  phantom::AngiogramConfig config;
};

/// Objects in known poses, before they are made.
struct PosesRequest {
  int training = 0, test = 0;  ///< cases in train.tsv and test.tsv
  std::string format;          ///< ending of the image files, without the dot
  phantom::PosesConfig config;
};

/// Colour pictures with regions, before they are made.
struct ScenesRequest {
  int training = 0, test = 0;  ///< cases in train.tsv and test.tsv
};

/// Warped copies of images and their label maps, before they are made.
struct WarpedRequest {
  /// Images and label maps. One without an id makes case_000 and so on; others keep their ids, or
  /// get id_0 and so on if there are several copies.
  std::vector<Case> inputs;
  int copies = 1;      ///< of each
  std::string format;  ///< ending of the image files, without the dot
  phantom::WarpedConfig config;
};

/// Throws UsageError if there are no such samples, or the format cannot hold them.
void check(const OrgansRequest& request);
void check(const HeadsRequest& request);
void check(const PosesRequest& request);
inline void check(const ScenesRequest&) {}
void check(const WarpedRequest& request);
void check(const AngiogramsRequest& request);

/// images/, labels/, train.tsv, test.tsv, dataset.json and labels.tsv. A DICOM series is a folder
/// in images/ with a file per slice, and its label map is NIfTI.
Outputs make_samples(const OrgansRequest& request, const Context& context);

/// images/, labels/, cases.tsv and labels.tsv.
Outputs make_samples(const HeadsRequest& request, const Context& context);

/// images/, labels/, poses/ (markups with the boxes of the objects), train.tsv, test.tsv and
/// labels.tsv. Throws UsageError if the objects of a case have no room.
Outputs make_samples(const PosesRequest& request, const Context& context);

/// images/, labels/, train.tsv, test.tsv and labels.tsv.
Outputs make_samples(const ScenesRequest& request, const Context& context);

/// images/ (float), labels/, truth/ (JSON: the similarity and what else was done) and cases.tsv.
/// The draws of a copy depend on its number in cases.tsv. Throws InputError for an id that cannot
/// be a file name, or an image and a label map that are not on one grid of at least 2 voxels along
/// each axis, before anything is made.
Outputs make_samples(const WarpedRequest& request, const Context& context);

/// images/ (sequences), and with the truth fields/ (true motion of every frame in mm, ITK vector
/// images of two components over the frames), labels/ (vessels of every frame), truth/ (JSON: the
/// motion in formulas) and cases.tsv. Frames are made when they are written, so that memory holds
/// one of them (and the vessels of all). A DICOM file is a multi-frame X-ray angiogram whose Mask
/// Subtraction Sequence names the mask frames.
Outputs make_samples(const AngiogramsRequest& request, const Context& context);

/// "case_007".
std::string sample_case_name(int number);

}  // namespace larch::pipeline
