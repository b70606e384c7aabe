// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Included before every file of lib/larch/io where the compiler is clang. CMake generated two
// headers of Debian's ITK 5.2 for the compiler that built it: they know the features of GCC alone
// and stop at any other with "Unsupported compiler". clang 14 has all the features that they ask
// for, so it reads these two, and nothing else, under the name of that GCC.
#if defined(__clang__) && __has_include(<itk_compiler_detection.h>)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wbuiltin-macro-redefined"
#pragma push_macro("__clang__")
#pragma push_macro("__GNUC__")
#undef __clang__
#undef __GNUC__
#define __GNUC__ 12
#include <itk_compiler_detection.h>
#include <vcl_compiler_detection.h>
#pragma pop_macro("__GNUC__")
#pragma pop_macro("__clang__")
#pragma clang diagnostic pop
#endif
