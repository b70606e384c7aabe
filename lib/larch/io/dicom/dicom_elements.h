// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "larch/io/dicom/dicom_dataset.h"

namespace larch::io {

/// The value as text, without padding; empty if the element is absent or empty.
std::string text_of(const DicomDataset& data, const DicomTag& tag);

/// True if the element is there and not empty.
bool has_value(const DicomDataset& data, const DicomTag& tag);

/// The first number of an element of 16-bit numbers; `missing` if it is absent or empty. Throws
/// InputError if it holds something else: sizes and bit positions are not guessed.
int uint16_of(const DicomDataset& data, const DicomTag& tag, int missing, const std::string& path);

/// All numbers of an element of 16-bit numbers.
std::vector<uint16_t> uint16s_of(const DicomDataset& data, const DicomTag& tag);

/// The decimal strings of an element (PS3.5, 6.2: digits, sign, point and exponent alone). An
/// element that is absent or empty gives none. Throws InputError unless exactly `count` finite
/// numbers stand there: a number that is present and broken is not a number that is missing.
std::vector<double> numbers_of(const DicomDataset& data, const DicomTag& tag, size_t count,
                               const std::string& path);

/// The items of a sequence; none if the element is absent or no sequence. They live as long as
/// `data` does.
std::span<const DicomItem> items_of(const DicomDataset& data, const DicomTag& tag);

}  // namespace larch::io
