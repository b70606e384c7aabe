// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/phantom/head.h"

namespace larch::pipeline {

/// Head phantoms with known tissues, before they are made.
struct HeadRequest {
  std::string folder;
  int cases = 1;
  std::string format;  ///< ending of the image files, without the dot
  phantom::HeadConfig config;
};

/// Throws UsageError if no image has this ending.
void check(const HeadRequest& request);

/// Makes the folders for images and labels and returns all files: images/, labels/, cases.tsv and
/// labels.tsv. A case is made when its files are written, so that memory holds only one. Folders
/// that are still empty when the outputs go are taken away again. Throws OutputError.
Outputs make_heads(const HeadRequest& request, const Context& context);

}  // namespace larch::pipeline
