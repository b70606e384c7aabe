// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/io/table/case_list.h"

namespace larch::cases {

/// The files beside an image that hold its voxels (detached_files), as inputs for the records of a
/// run.
std::vector<RunInput> detached_inputs(const std::string& role, const std::string& image,
                                      const std::string& of_case = "");

/// The image of a case under the role "input", as that of a run over one image.
std::vector<RunInput> inputs_of_image(const Case& c);

/// Images and labels of a list, under the names of their columns.
ListedInputs inputs_of_cases(const std::vector<Case>& cases, const CaseColumns& columns,
                             bool order_matters);

}  // namespace larch::cases
