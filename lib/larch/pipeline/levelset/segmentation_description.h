// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace larch::pipeline {

/// What --help and the page of levelset-segment say after the summary.
inline constexpr const char* kSegmentationDescription =
    "Grows a structure from seeds: a surface moves outwards where the intensity lies between lower "
    "and upper (fastest in the middle), inwards elsewhere, and is smoothed by its curvature "
    "(curvature_weight) until it comes to rest. Without lower and upper they are found from the "
    "intensities in and around the seeds. Only voxels (bricks) near where the surface still moves "
    "are computed (tracker); both trackers, all devices and numbers of threads give the bytes of a "
    "run that computes all of them.\n\n"
    "Seeds are spheres (--sphere-mm in LPS mm, --sphere-index in voxels from 0, as many as wanted, "
    "each with a label as 5th number if there are several structures), a label map or mask "
    "(--init-labelmap) or a level set (--init-level-set); structures of several labels never "
    "overlap. lower and upper count for all labels but those that have a --window. Edges can slow "
    "the surface down (edge_stop) or attract it (advection_weight), and region_weight compares "
    "with the mean intensities inside and outside (Chan, Vese).\n\n"
    "--level-set is in mm, negative inside, and held within 3 voxels of the surface; --distance is "
    "the exact distance of every voxel from the outermost ones of the structures, negative "
    "inside. With several labels both, and the mesh, are of all structures together; --by-label "
    "writes those of each beside them, such as wm.label2.vtk beside wm.vtk. --report has "
    "the parameters as they were used, why each label stopped, and its active and changed voxels "
    "over the iterations, which --plot draws. A structure that touches the border of the image is "
    "flagged. If nothing is left the outputs are written with the status 'rejected' and the exit "
    "code is 7.\n\n"
    "With --time-series each frame of a 4-D image starts from the surfaces and has the windows of "
    "the one before it; --output is a label map of four axes. A label of which nothing is left in "
    "a frame is missing from there on: the outputs are written as well, with the status 'rejected' "
    "and exit code 7.\n\n"
    "With --list or --dataset and --output-dir many images are segmented in one run, on a GPU "
    "several in one launch: each starts from the spheres in the columns sphere_mm and sphere_index "
    "(as the flags have them, several parted by semicolons), from the label map in the column "
    "label, and from the spheres that are given for all. The folder gets what --write says, with "
    "the bytes that each image by itself would give: <id>.nii.gz (labels), <id>.phi.nii.gz "
    "(level-set), "
    "<id>.distance.nii.gz, <id>.vtk (mesh), <id>.png (qc), <id>.plot.png; and status.tsv. A case "
    "that fails does not stop the others; the exit code is 7 if any failed or was rejected. "
    "--skip-existing goes on with an interrupted run, as in pbt-detect.";

}  // namespace larch::pipeline
