# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# A tree that runs where nothing else is installed: test and benchmark executables too, and beside
# them the shared libraries of all executables, except those of glibc and of the GPU driver.
set(larch_test_dir ${CMAKE_INSTALL_LIBEXECDIR}/larch)
larch_executables_below(larch_tests ${PROJECT_SOURCE_DIR}/tests)
# What a GPU machine is asked for: tests of the algorithms, not of files and command lines.
list(FILTER larch_tests EXCLUDE REGEX "^(io|app|config|skeleton)")
larch_origin(larch_tests_to_lib ${larch_test_dir} ${CMAKE_INSTALL_LIBDIR})
set_target_properties(${larch_tests} PROPERTIES INSTALL_RPATH ${larch_tests_to_lib})
# DT_RPATH, unlike DT_RUNPATH, also serves the libraries that a library needs.
if(TARGET larch_python)
  target_link_options(larch_python PRIVATE -Wl,--disable-new-dtags)
  install(TARGETS larch_python RUNTIME_DEPENDENCY_SET larch_dependencies
          LIBRARY DESTINATION ${larch_python_dir} COMPONENT Python)
endif()
foreach(target ${larch_apps} ${larch_tests})
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endforeach()

install(TARGETS ${larch_apps} RUNTIME_DEPENDENCY_SET larch_dependencies
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${larch_tests} RUNTIME_DEPENDENCY_SET larch_dependencies
        RUNTIME DESTINATION ${larch_test_dir})
install(RUNTIME_DEPENDENCY_SET larch_dependencies
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|pthread|dl|rt|resolv|util|nsl|anl|mvec|cuda)\\.so"
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scripts/ DESTINATION ${larch_test_dir} USE_SOURCE_PERMISSIONS
        FILES_MATCHING PATTERN device-tests PATTERN hippocampus
        PATTERN benchmark PATTERN cmake EXCLUDE PATTERN examples EXCLUDE)
