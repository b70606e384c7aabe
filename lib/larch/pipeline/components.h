// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/cases/case_list.h"
#include "larch/data/volume.h"
#include "larch/io/image/image.h"

namespace larch::pipeline {

/// Returns the columns of a list that name the components of an image behind the first: image2, ...
/// image8.
std::vector<CaseColumn> component_columns();

/// Reads the components of an image by their names, which a configuration or a model has: red,
/// green and blue of a picture; channels of a data set; the columns image, image2, ... of a list,
/// or the volumes of a 4-D file, in their order. No names: the one image that there is. Throws
/// InputError, which names the files, for components that are missing, are too many or lie on
/// another grid.
std::vector<Volume<float>> read_components(const Case& c, const std::vector<std::string>& names,
                                           const ReadOptions& read);

/// Returns the grid of a case by the headers of its components. Throws as read_components.
Grid probe_components(const Case& c, const std::vector<std::string>& names,
                      const ReadOptions& read);

}  // namespace larch::pipeline
