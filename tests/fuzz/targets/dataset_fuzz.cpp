// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Descriptions of data sets of the Decathlon and of nnU-Net.
#include <set>

#include "larch/cases/dataset_json.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;

void require_usable(const std::vector<Case>& cases) {
  std::set<std::string> ids;
  for (const Case& c : cases) {
    fuzz::require(!c.image.empty(), "a case without an image was read");
    fuzz::require(!c.id.empty(), "a case without an id was read");
    fuzz::require(ids.insert(c.id).second, "two cases have one id");
  }
  fuzz::require(!cases.empty(), "a data set without cases was read");
}

// A dataset.json lists files that exist: case_0000.nii and its label do.
void read_data_set(std::string_view bytes) {
  static const bool made = [] {
    for (const char* name : {"case_0000.nii", "label.nii"}) fuzz::file_of(name, "");
    return true;
  }();
  fuzz::require(made, "no files");
  const std::string path = fuzz::file_of("dataset.json", bytes);
  // Usage: two channels of one name, or none of this one.
  for (const DatasetPart part : {DatasetPart::kTest, DatasetPart::kTraining}) {
    fuzz::accepts({ExitCode::kInput, ExitCode::kUsage}, "dataset.json",
                  [&] { require_usable(one_channel(read_dataset(path, part), "0").cases); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_data_set(larch::fuzz::text_of(data, size));
  return 0;
}
