// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images, label maps with their names, surfaces and poses: values in memory, and their files. A
// Volume holds voxels and its grid in LPS mm (data/volume.h, data/grid.h).
#include "larch/data/volume.h"
#include "larch/io/image/image.h"      // read_volume, read_labels, write_volume, write_labelmap
#include "larch/io/markups/markups.h"  // poses and points
#include "larch/io/mesh/mesh_io.h"     // read_mesh, write_mesh
