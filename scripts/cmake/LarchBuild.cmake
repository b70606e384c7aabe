# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Compiler settings that every target shares.

include(LarchCuda)

# Headers are included as "larch/<room>/<file>.h", in the build as after installation.
configure_file(${PROJECT_SOURCE_DIR}/scripts/cmake/larch_build.h.in
               ${PROJECT_BINARY_DIR}/include/larch_build.h)

add_library(larch_settings INTERFACE)
target_include_directories(larch_settings INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# Not in the build: CMake 3.25 does not know CUDA C++20 and would refuse the dialect for nvcc too, so the
# flag is given by hand below.
target_compile_features(larch_settings INTERFACE $<INSTALL_INTERFACE:cxx_std_20>)

# Private flags of this project: warnings, and arithmetic that is the same on every device.
add_library(larch_private INTERFACE)
target_include_directories(larch_private INTERFACE ${PROJECT_SOURCE_DIR})
# GCC 12 warns of overlapping copies inside std::string that cannot happen (GCC bug 105651).
set(larch_warnings -Wall -Wextra)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND larch_warnings -Wno-restrict)
  # Once its headers are precompiled, of endless ones too. Other builds keep the warnings.
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    list(APPEND larch_warnings -Wno-array-bounds -Wno-stringop-overflow)
  endif()
  # At -O3 it also warns of strings in the options of executables, for the case that the making of
  # another member throws; then they are not touched. Other builds keep the warning.
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    list(APPEND larch_warnings -Wno-maybe-uninitialized)
  endif()
endif()
if(LARCH_TEST_ALL AND NOT LARCH_SANITIZE)
  list(APPEND larch_warnings -Werror)
endif()
list(JOIN larch_warnings "," larch_host_warnings)
target_compile_options(larch_private INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-std=c++20;${larch_warnings};-ffp-contract=off;-fno-math-errno>
  $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--fmad=false;--expt-relaxed-constexpr;-Xcompiler=${larch_host_warnings},-ffp-contract=off,-fno-math-errno>)
if(LARCH_SANITIZE)
  target_compile_options(larch_private INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${LARCH_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=undefined>)
  target_link_options(larch_private INTERFACE -fsanitize=${LARCH_SANITIZE})
endif()

# What most files include. A file must include what it uses all the same: the preset clang has no
# precompiled headers, and no groups of files.
set(larch_precompiled <algorithm> <array> <atomic> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <mutex>
                      <optional> <span> <string> <vector>)

if(LARCH_FUZZ)
  target_compile_definitions(larch_settings INTERFACE $<BUILD_INTERFACE:LARCH_FUZZ>)
  target_compile_options(larch_private INTERFACE -fsanitize=fuzzer-no-link)
endif()

# larch_library(name [TOGETHER] DEPENDS a b): a library of the project with the shared settings. TOGETHER: files
# that use the same large templates are compiled together, unless CMAKE_UNITY_BUILD says OFF. Loops over
# voxels are not: the compiler inlines less in large files.
function(larch_library name)
  cmake_parse_arguments(ARG "TOGETHER" "" "DEPENDS" ${ARGN})
  add_library(${name})
  target_link_libraries(${name} PUBLIC larch_settings ${ARG_DEPENDS}
                                PRIVATE $<BUILD_INTERFACE:larch_private>)
  # Without a definition of their own, objects of shared and of static libraries are the same.
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${name} DEFINE_SYMBOL "")
  if(ARG_TOGETHER AND NOT DEFINED CMAKE_UNITY_BUILD)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
  endif()
  if(name STREQUAL "larch_core")
    target_precompile_headers(${name} PRIVATE ${larch_precompiled})
  else()
    target_precompile_headers(${name} REUSE_FROM larch_core)
  endif()
endfunction()
