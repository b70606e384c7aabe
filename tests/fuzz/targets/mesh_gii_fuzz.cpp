// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// GIFTI surfaces: XML, base64 and zlib.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  larch::fuzz::read_mesh_bytes("case.gii", larch::fuzz::text_of(data, size));
  return 0;
}
