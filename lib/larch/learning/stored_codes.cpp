// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/stored_codes.h"

#include "larch/core/dispatch.h"
#include "larch/learning/response_source.h"

namespace larch::learning {
namespace cpu {

std::unique_ptr<FeatureSource> stored_source(const StoredCodes& codes, size_t columns,
                                             const Device&) {
  return std::make_unique<ResponseSource<StoredCodes>>(codes, columns, "stored column");
}

}  // namespace cpu

namespace {

constexpr Dispatch<std::unique_ptr<FeatureSource>(const StoredCodes&, size_t, const Device&)>
    kSource{"learning::stored_source", cpu::stored_source, LARCH_CUDA_FN(cuda::stored_source)};

}  // namespace

std::vector<CodeMap> maps_of_codes(std::span<const CodeMap> maps) {
  std::vector<CodeMap> of_codes;
  for (const CodeMap& map : maps) {
    of_codes.push_back(
        make_code_map(0, static_cast<int32_t>(map.lo == map.hi ? 0 : code_of(map, map.hi))));
  }
  return of_codes;
}

std::unique_ptr<FeatureSource> make_stored_source(const StoredCodes& codes, size_t columns,
                                                  const Device& device) {
  return kSource(device, codes, columns, device);
}

}  // namespace larch::learning
