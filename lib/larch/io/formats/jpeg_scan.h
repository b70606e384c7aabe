// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace larch::io {

/// True if a JPEG codestream of Huffman coding, sequential (SOF0, SOF1) or lossless (SOF3), holds
/// exactly the coded samples that its header promises: every scan is decoded down to its codes, and
/// each must end where the next marker stands (ITU-T T.81, annexes B, F and H). Decoders fill up
/// what is missing, most of them without a word.
bool is_whole_jpeg(std::string_view data);

}  // namespace larch::io
