// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// A program with the library: model and image in, label map and surface out.
#include "larch/detect.h"

#include "larch/image.h"

int main(int /*count*/, char** arguments) {
  larch::Context context;  // the CPU; larch::Device::cuda(0) is the first GPU
  context.threads = 8;
  const auto model = larch::open_model(arguments[1], larch::ModelKind::kVoxels, context.device);
  larch::DetectRequest request;
  request.surfaces = true;
  const auto image = larch::read_volume<float>(arguments[2]);
  const auto found = larch::detect(model, {image}, request, context);
  larch::write_labelmap("labels.nii.gz", found.labels, model.structures());
  larch::write_mesh("surface.vtk", found.surfaces[0]);
}
