# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# What is built, in the last lines of the configuration and of every whole build, and in
# built.txt for scripts. Included last, when every target exists.
if(LARCH_CUDA_ENABLED)
  set(larch_summary "Larch ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, with CUDA code: ${LARCH_CUDA_REASON}")
else()
  set(larch_summary "Larch ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, without CUDA code: ${LARCH_CUDA_REASON}")
endif()
file(WRITE ${PROJECT_BINARY_DIR}/built.txt "${larch_summary}\n")
message(STATUS "${larch_summary}")

add_custom_target(larch_summary ALL COMMAND ${CMAKE_COMMAND} -E true COMMENT "${larch_summary}" VERBATIM)
larch_executables_below(larch_programs ${PROJECT_SOURCE_DIR})
add_dependencies(larch_summary ${larch_libraries} ${larch_skeleton} ${larch_programs})
