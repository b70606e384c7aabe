#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Usage: clang_itk_test.sh SOURCE_DIR BUILD_DIR ITK_INCLUDE_DIR...
# clang 14 compiles a user of ITK, whose headers on Debian know GCC alone. Exit code 77 (skipped)
# where there is no clang 14.
set -euo pipefail
source_dir=$1 build_dir=$2
shift 2
command -v clang++-14 >/dev/null || exit 77
clang++-14 -std=c++20 -fsyntax-only -Wall -Wextra -Werror -include "$source_dir/scripts/cmake/itk_for_clang.h" \
  -I "$source_dir" -I "$source_dir/lib" -I "$build_dir/include" "${@/#/-isystem}" "$source_dir/lib/larch/io/itk/image_io.cpp"
