// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// PLY, ASCII and binary.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  larch::fuzz::read_mesh_bytes("case.ply", larch::fuzz::text_of(data, size));
  return 0;
}
