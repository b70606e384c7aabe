// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/pipeline/detection/detection_memory.h"
#include "larch/pipeline/detection/pbt_batch.h"

namespace larch::pipeline {
namespace {

TEST_CASE("memory of a detection: the least holds each step that no slab makes smaller") {
  const pbt::Model model;
  DetectConfig config;
  for (const bool structure : {false, true}) {
    for (const bool image : {false, true}) {
      for (const double threshold : {0.5, 0.3}) {
        for (const double spacing_mm : {0.5, 1.0, 3.0}) {
          config.structure.threshold = threshold;
          ImageInfo info;
          info.grid.size = {40, 50, 60};
          info.grid.spacing_mm = {spacing_mm, spacing_mm, spacing_mm};
          info.bytes = 2 * info.grid.voxels();
          const DetectionMemory memory = detection_memory(
              model, config, {structure, structure, image}, info, 1, Device::cuda(0));
          CAPTURE(structure, image, threshold, spacing_mm);
          CHECK(memory.need.least >= memory.need.reading);
          CHECK(memory.need.least >= memory.need.surveying);
          CHECK(memory.need.least >= memory.need.computing);  // on a device: what waits on the host
          CHECK(memory.need.least <= memory.need.most());
        }
      }
    }
  }
}

TEST_CASE("batch: names that clash or replace inputs are refused before anything is done") {
  BatchRequest request;
  request.folder = "out";
  request.products = {Product::kLabels, Product::kProbability};
  const auto with = [&](const std::vector<Case>& cases) {
    request.cases = cases;
    check_batch(request);
  };
  CHECK_NOTHROW(with({{"a", "in/a.nii.gz", ""}, {"b", "in/b.nii.gz", ""}}));
  CHECK_THROWS_AS(with({{"a", "out/a.nii.gz", ""}}), UsageError);
  CHECK_THROWS_AS(with({{"a", "out/../out/a.nii.gz", ""}}), UsageError);
  CHECK_THROWS_AS(with({{"a", "in/a.nii.gz", "out/a.nii.gz"}}), UsageError);
  CHECK_THROWS_AS(with({{"a", "x", ""}, {"a.probability", "y", ""}}), UsageError);
  CHECK_THROWS_AS(with({{"status", "x", ""}}), UsageError);
  for (const std::string id : {"", "../a", "a/b", ".a", "a\nb"}) {
    CHECK_THROWS_AS(with({{id, "x", ""}}), InputError);
  }
}

}  // namespace
}  // namespace larch::pipeline
