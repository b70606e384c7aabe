# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# ctest lists the parity tests as skipped where no CUDA device is visible: they do not pass.
# Usage: cmake -D CTEST=ctest -D BUILD=FOLDER -D TESTS=NAME;... -P skips.cmake
set(ENV{CUDA_VISIBLE_DEVICES} "-1")
# A test folder of its own: two runs of ctest in one folder would write one log.
set(folder ${BUILD}/tests/parity/skips)
file(MAKE_DIRECTORY ${folder})
file(WRITE ${folder}/CTestTestfile.cmake "subdirs(${BUILD}/tests/parity)\n")
execute_process(COMMAND ${CTEST} --test-dir ${folder} -R "_parity_test$"
                OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code)
foreach(test ${TESTS})
  if(NOT output MATCHES "${test} [.]+[*]+Skipped")
    message(FATAL_ERROR "${test} is not listed as skipped:\n${output}")
  endif()
endforeach()
# Whoever asks for the names gets them all the same.
execute_process(COMMAND ${BUILD}/tests/parity/pbt_parity_test --list-test-names-only
                OUTPUT_VARIABLE names RESULT_VARIABLE ignored)
if(NOT names MATCHES "integral channels are the same bytes on both devices")
  message(FATAL_ERROR "the test cases are not listed:\n${names}")
endif()
