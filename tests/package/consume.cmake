# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Installs the build into a fresh folder, moves that folder, builds the consumer against it and runs
# it: cmake -D BUILD_DIR= -D SOURCE_DIR= -D GENERATOR= -D CXX= -D SANITIZE= -D VERSION= -P this.
set(work ${BUILD_DIR}/package_test)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

set(flags)
if(SANITIZE)
  set(flags -D CMAKE_CXX_FLAGS=-fsanitize=${SANITIZE})
endif()

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "exit code ${code} from: ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/first)
file(RENAME ${work}/first ${work}/moved)  # a tree that knows its own place fails from here on
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/consumer -B ${work}/build -G ${GENERATOR}
    -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_PREFIX_PATH=${work}/moved
    -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF -D CMAKE_BUILD_TYPE=Debug -D LARCH_VERSION=${VERSION} ${flags})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${CMAKE_COMMAND} -E chdir ${work}/build ${work}/build/consumer)
if(NOT output MATCHES "box sum 27")
  message(FATAL_ERROR "the consumer printed: ${output}")
endif()
file(GLOB apps ${work}/moved/bin/*)
foreach(app ${apps})
  run(${app} --version)
  if(NOT output MATCHES "^larch ${VERSION}")
    message(FATAL_ERROR "${app} --version printed: ${output}")
  endif()
endforeach()
