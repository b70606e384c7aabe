// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Frames of DICOM in JPEG 2000.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  larch::fuzz::decode_codestream(larch::fuzz::text_of(data, size),
                                 larch::io::TransferSyntax::kJpeg2000);
  return 0;
}
