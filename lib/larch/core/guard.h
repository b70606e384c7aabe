// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

namespace larch {

/// The checks that keep a damaged file from a parser that cannot bear it, or from becoming a wrong
/// result. Each has a name, so that the fuzzing build can leave one of them out and show that its
/// target then finds the input that the check is for (scripts/fuzz --check-guards).
enum class Guard {
  kNrrdClaims,      ///< the reader allocates what a NRRD header claims
  kTiffClaims,      ///< voxels are allocated as a TIFF header claims
  kNiftiOffset,     ///< voxels that would begin inside the header
  kGeometryLimits,  ///< origins, spacings and axes that no scanner gives
  kDicomBitRules,   ///< BitsAllocated, BitsStored and HighBit by which no number can be shifted
  kDicomClaims,     ///< planes and pixels are allocated as a DICOM header claims
};

/// Returns its name in LARCH_FUZZ_WITHOUT.
constexpr std::string_view name_of(Guard guard) {
  switch (guard) {
    case Guard::kNrrdClaims:
      return "nrrd-claims";
    case Guard::kTiffClaims:
      return "tiff-claims";
    case Guard::kNiftiOffset:
      return "nifti-offset";
    case Guard::kGeometryLimits:
      return "geometry-limits";
    case Guard::kDicomBitRules:
      return "dicom-bit-rules";
    case Guard::kDicomClaims:
      return "dicom-claims";
  }
  return "";
}

/// Tells whether a guard is on: `if (guarded(Guard::kNrrdClaims)) check_words(header);`. It is the
/// constant true in every build but the one of the fuzzers (cmake -DLARCH_FUZZ=ON), so that nothing
/// at run time weakens a program that is used. In that build the environment variable
/// LARCH_FUZZ_WITHOUT names the guard that is left out.
#ifdef LARCH_FUZZ
inline bool guarded(Guard guard) {
  static const std::string without = [] {
    const char* value = std::getenv("LARCH_FUZZ_WITHOUT");
    return std::string(value == nullptr ? "" : value);
  }();
  return without != name_of(guard);
}
#else
constexpr bool guarded(Guard) {
  return true;
}
#endif

}  // namespace larch
