# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Run at every build: cmake -D SOURCE_DIR=... -D OUTPUT=... -P git_revision.cmake
# Writes OUTPUT only when the revision changed. A tree that was unpacked inside the checkout of some
# other project must not take that one's revision, hence the comparison of the top folders.
set(ENV{GIT_OPTIONAL_LOCKS} 0)
set(revision unknown)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse --show-toplevel
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  get_filename_component(top "${top}" REALPATH)
  get_filename_component(here "${SOURCE_DIR}" REALPATH)
  if(top STREQUAL here)
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse --short=12 HEAD RESULT_VARIABLE failed
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    if(NOT failed)
      set(revision ${commit})
      if(changes)
        set(revision ${commit}-dirty)
      endif()
    endif()
  endif()
endif()
set(text "// Written by the build.\n#include \"larch/app/build_info.h\"\n
const char* larch::git_revision() { return \"${revision}\"; }\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
