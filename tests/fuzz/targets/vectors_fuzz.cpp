// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Fields of vectors. The first byte chooses the ending. What is accepted is finite, and the same
// when it is written and read again.
#include <algorithm>
#include <cmath>

#include "larch/data/mat.h"
#include "larch/io/image/vector_image.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;

constexpr int64_t kWrittenBack = 1 << 12;  // vectors; larger fields would only cost time

void use(const VectorField& field) {
  fuzz::require_sound(field.grid());
  fuzz::require(std::all_of(field.begin(), field.end(),
                            [](const Vec3f& v) {
                              return std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z);
                            }),
                "a vector that is not finite was read");
  const Vec3i size = field.size();
  if (field.voxels() > kWrittenBack || std::abs(determinant(field.grid().direction)) < 1e-3) return;
  for (const char* ending : {".nii", ".mha", ".nrrd"}) {
    if (std::max({size.x, size.y, size.z}) > 32767 && ending[2] == 'i') continue;
    const std::string path = fuzz::folder() + "/back" + ending;
    write_vector_field(path, field);
    const VectorField back = read_vector_field(path);
    fuzz::require_close(field.grid(), back.grid());
    fuzz::require(std::equal(field.begin(), field.end(), back.begin()),
                  "a field that was written has other vectors");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr const char* kNames[] = {"case.nii", "case.nrrd", "case.mha", "case.vtk"};
  fuzz::Source in(data, size);
  const std::string name = kNames[in.take<uint8_t>() % 4];
  const std::string path = fuzz::file_of(name, in.bytes(size));
  VectorField field;
  if (fuzz::accepts({ExitCode::kInput}, name, [&] { field = read_vector_field(path); })) use(field);
  return 0;
}
