// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The formats that ITK alone reads, behind the checks of ours. The first byte chooses the ending,
// and whether the rest is compressed first, which mutations of a compressed file would not survive.
#include "larch/io/image/zstream.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace larch;
  constexpr const char* kNames[] = {"case.vtk", "case.gipl",    "case.gipl.gz", "case.mrc",
                                    "case.rec", "case.gipl.gz", "case.pic",     "case.vtk"};
  fuzz::Source in(data, size);
  const auto choice = in.take<uint8_t>();
  const std::string name = kNames[choice % 8];
  const std::string path = fuzz::file_of(name, in.bytes(size));
  if (choice % 8 == 5) {
    io::ZWriter out(path, true);
    out.write(data + 1, static_cast<int64_t>(size == 0 ? 0 : size - 1));
    out.close();
  }
  fuzz::read_image_file(name, name);
  return 0;
}
