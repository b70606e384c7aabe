// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/dsa/dsa_config.h"
#include "larch/io/image/image.h"
#include "larch/pipeline/angiography/outputs/angiography_files.h"

namespace larch::pipeline {

/// A volume with contrast agent and one without, before they are subtracted.
struct VolumeRequest {
  std::string fill, mask;
  std::string roi{};  ///< mask on the grid of the volumes; empty: everywhere
  AngiographyFiles files{};
  FieldUnits field_units = FieldUnits::kMm;
  ReadOptions read{};
};

/// Registers the mask volume to the fill volume and subtracts it: US 2008/0037845, claims 11 and
/// 15. Contrast agent raises the values of volumes. Both are on one grid, of whole numbers whose
/// range fits 16 bits. Throws InputError, UsageError, MemoryError.
Outputs subtract_volume(const VolumeRequest& request, const dsa::DsaConfig& config,
                        const Context& context);

/// Throws what subtract_volume would throw for what the headers tell.
void check_volume(const VolumeRequest& request, const dsa::DsaConfig& config,
                  const Context& context);

}  // namespace larch::pipeline
