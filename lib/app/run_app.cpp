// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/run_app.h"

#include <cstdio>

#include "larch/app/command_line.h"
#include "larch/config/config.h"

namespace larch::detail {

int run_program(const Program& program, int argc, char** argv) {
  try {
    CommandLine line;
    parse_command_line(program, argc, argv, line);
    apply_config(program, line);
    if (line.common.print_config) {
      std::puts(config::to_json(program.config).dump(2).c_str());
      return 0;
    }
    Context context;
    const Outputs outputs = program.run(context);
    for (const Outputs::File& file : outputs.files) file.writer(file.path);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: error: %s\n", program.info.name.c_str(), error.what());
    return static_cast<int>(error.code());
  }
}

}  // namespace larch::detail
