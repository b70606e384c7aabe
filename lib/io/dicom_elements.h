// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <gdcmDataSet.h>
#include <gdcmSequenceOfItems.h>
#include <gdcmTrace.h>

#include "larch/core/error.h"

namespace larch::io {

/// An element with the name that PS3.6 gives it, for messages.
struct DicomTag {
  uint16_t group, element;
  const char* name;
  operator gdcm::Tag() const { return {group, element}; }
};

/// Throws InputError "'path': what".
[[noreturn]] void bad_dicom(const std::string& path, const std::string& what);

/// The value as text, without padding; empty if the element is absent or empty.
std::string text_of(const gdcm::DataSet& data, const gdcm::Tag& tag);

/// The first 16-bit number; `missing` if there is none.
int uint16_of(const gdcm::DataSet& data, const gdcm::Tag& tag, int missing);

/// The decimal strings of an element (PS3.5, 6.2: digits, sign, point and exponent alone). An
/// element that is absent or empty gives none. Throws InputError unless exactly `count` finite
/// numbers stand there: a number that is present and broken is not a number that is missing.
std::vector<double> numbers_of(const gdcm::DataSet& data, const DicomTag& tag, size_t count,
                               const std::string& path);

/// The items of a sequence; empty if the element is absent or no sequence. They live as long as
/// `data` does.
using DicomSequence = gdcm::SmartPointer<gdcm::SequenceOfItems>;
DicomSequence sequence_of(const gdcm::DataSet& data, const gdcm::Tag& tag);

/// Runs an action that uses GDCM, which throws its own exceptions and writes to the terminal. GDCM
/// sees a file only after its lengths were compared with its size (dicom_syntax.h), so that
/// bad_alloc means a lack of memory, not a damaged length, and goes on as it is.
template <class F>
auto with_gdcm(const std::string& path, F&& action) {
  gdcm::Trace::DebugOff();
  gdcm::Trace::WarningOff();
  gdcm::Trace::ErrorOff();
  try {
    return action();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    bad_dicom(path, std::string("cannot be read as DICOM: ") + error.what());
  }
}

}  // namespace larch::io
