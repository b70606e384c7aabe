// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/cases/step.h"
#include "larch/levelset/segment.h"
#include "larch/pipeline/levelset/input/segmentation_seeds.h"
#include "larch/pipeline/levelset/outputs/segmentation_files.h"

namespace larch::pipeline {

/// One segmentation, before it is done.
struct SegmentationRequest {
  std::string image;
  SegmentationSeeds seeds{};
  SegmentationFiles files{};
  ReadOptions read{};
  int frames = 1;  ///< of the series that the image is a frame of
};

/// One image on its way.
struct SegmentationJob {
  std::string image;
  levelset::SegmentRequest request{};
  levelset::SegmentRun run{};
  bool is_started = false;
  levelset::SegmentResult result{};
  cases::StepSeconds seconds{};
};

/// Throws UsageError where an input or output has the name of a label's file.
void check_names(const std::string& image, const SegmentationSeeds& seeds,
                 const SegmentationFiles& files);

/// Throws OutputError, before anything is computed, if a file of one of the labels is there that
/// may not be replaced: with --by-label the labels of a label map to start from are known late.
/// `inputs`: of the case, beside those of the run.
void require_label_files_free(const SegmentationRequest& request,
                              const std::vector<int32_t>& labels,
                              const std::vector<RunInput>& inputs, const CaseWriter& writer);

/// Reads what a segmentation needs, after a look at its header: does it fit into the host's memory,
/// and the files into their formats? Throws as read_segmentation, require_memory and
/// check_files_hold do.
std::shared_ptr<SegmentationJob> read_job(const SegmentationRequest& request,
                                          const levelset::LevelsetConfig& config,
                                          const Context& context);

/// Speeds and first surfaces; what is odd about them is logged. The job must stay where it is.
/// Throws as start_segmentation, and MemoryError where the device has not the memory.
void start_job(SegmentationJob& job, const Context& context);

/// Moves all jobs until they are done, in one launch where that is possible, with progress.
/// Throws Stopped when the stop flag of `context` is set.
void move_jobs(std::span<SegmentationJob* const> jobs, const Context& context);

/// Labels and level set of a job that was moved.
void finish_job(SegmentationJob& job, const Context& context);

/// The files and figures of a finished job. Rejected if no voxel is inside.
Outputs segmentation_outputs(const SegmentationFiles& files,
                             const std::shared_ptr<const SegmentationJob>& job,
                             const Context& context);

/// From files to files.
Outputs segment_image(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                      const CaseWriter& writer, const Context& context);

}  // namespace larch::pipeline
