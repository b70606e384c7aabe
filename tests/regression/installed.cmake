# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# An installed tree checks itself, without the sources and whatever the folder it is run from.
# Usage: cmake -D BUILD_DIR=FOLDER -D LIBEXEC=NAME -P installed.cmake
set(tree ${BUILD_DIR}/tests/regression/installed)
file(REMOVE_RECURSE ${tree})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${tree}/first
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${tree}/first ${tree}/moved)
execute_process(COMMAND ${tree}/moved/${LIBEXEC}/larch/regression --device cpu --threads 2
                WORKING_DIRECTORY / OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code)
message("${output}")
if(NOT code EQUAL 0 OR NOT output MATCHES "all outputs are as recorded")
  message(FATAL_ERROR "exit code ${code}")
endif()
file(REMOVE_RECURSE ${tree})
