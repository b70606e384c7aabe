// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/case_inputs.h"

#include "larch/io/image/image.h"

namespace larch::cases {

std::vector<RunInput> detached_inputs(const std::string& role, const std::string& image,
                                      const std::string& of_case) {
  std::vector<RunInput> inputs;
  if (image.empty()) return inputs;
  for (const std::string& file : detached_files(image)) {
    inputs.push_back({role + " data", file, of_case});
  }
  return inputs;
}

std::vector<RunInput> inputs_of_image(const Case& c) {
  std::vector<RunInput> inputs{{"input", c.image}};
  for (const RunInput& data : detached_inputs("input", c.image)) inputs.push_back(data);
  return inputs;
}

ListedInputs inputs_of_cases(const std::vector<Case>& cases, const CaseColumns& columns,
                             bool order_matters) {
  ListedInputs listed{{}, order_matters};
  const auto add = [&](const std::string& role, const std::string& path, const std::string& id) {
    if (path.empty()) return;
    listed.inputs.push_back({role, path, id});
    const std::vector<RunInput> data = detached_inputs(role, path, id);
    listed.inputs.insert(listed.inputs.end(), data.begin(), data.end());
  };
  for (const Case& c : cases) {
    add(columns.image, c.image, c.id);
    add(columns.label, c.label, c.id);
  }
  return listed;
}

}  // namespace larch::cases
