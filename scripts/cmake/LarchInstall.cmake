# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Installation: headers, libraries, the CMake package, relocatable executables.
# Included last, when every target exists.
include(CMakePackageConfigHelpers)

option(LARCH_BUNDLE "Install tests, benchmarks and the shared libraries that executables need" OFF)
set(larch_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Larch)

# Libraries that this build has, and one name for all of them: larch::larch.
set(larch_libraries)
set(larch_skeleton)  # the bodies of this project's executables; not an API
foreach(library larch_core larch_algo larch_config larch_models larch_io larch_doors)
  if(TARGET ${library})
    list(APPEND larch_libraries ${library})
  endif()
endforeach()
if(TARGET larch_app)
  set(larch_skeleton larch_app larch_cases larch_pipeline)
endif()
add_library(larch INTERFACE)
add_library(larch::larch ALIAS larch)
target_link_libraries(larch INTERFACE ${larch_libraries})

# larch_origin(OUTPUT FROM TO): $ORIGIN-relative path between two installed folders.
function(larch_origin output from to)
  cmake_path(RELATIVE_PATH to BASE_DIRECTORY ${from} OUTPUT_VARIABLE path)
  set(${output} "$ORIGIN/${path}" PARENT_SCOPE)
endfunction()

# larch_executables_below(OUTPUT FOLDER): executable targets of a source folder and those below it.
function(larch_executables_below output folder)
  set(found)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      list(APPEND found ${target})
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(child ${folders})
    larch_executables_below(below ${child})
    list(APPEND found ${below})
  endforeach()
  set(${output} "${found}" PARENT_SCOPE)
endfunction()

set(larch_apps)
if(LARCH_WITH_ITK)
  larch_executables_below(larch_apps ${PROJECT_SOURCE_DIR}/apps)
endif()
# Where no library of this project or of a bundle stands beside them, executables need no path to libraries.
if(BUILD_SHARED_LIBS OR LARCH_BUNDLE)
  larch_origin(larch_bin_to_lib ${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_LIBDIR})
  set_target_properties(${larch_libraries} ${larch_skeleton} PROPERTIES INSTALL_RPATH "$ORIGIN")
  if(larch_apps)
    set_target_properties(${larch_apps} PROPERTIES INSTALL_RPATH ${larch_bin_to_lib})
  endif()
endif()

# What a build of some targets left out is not installed: static libraries that no program needs, the Python module.
if(TARGET larch_python)
  set(larch_python_dir lib/python3/dist-packages)
  if(BUILD_SHARED_LIBS OR LARCH_BUNDLE)
    larch_origin(larch_python_to_lib ${larch_python_dir} ${CMAKE_INSTALL_LIBDIR})
    set_target_properties(larch_python PROPERTIES INSTALL_RPATH ${larch_python_to_lib})
  endif()
  install(TARGETS larch_python LIBRARY DESTINATION ${larch_python_dir} COMPONENT Python OPTIONAL)
endif()

# The headers directly in lib/larch, the one for ITK, and what they include.
file(GLOB larch_headers RELATIVE ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR}/lib/larch/*.h)
# How a model lies in memory, and a part of a training.
list(REMOVE_ITEM larch_headers larch/opened_model.h larch/train_experts.h)
list(APPEND larch_headers larch/io/itk/register_image_io.h)
set(larch_installed)
while(larch_headers)
  list(POP_FRONT larch_headers header)
  if(NOT header IN_LIST larch_installed)
    list(APPEND larch_installed ${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/lib/${header} lines REGEX "^#include \"larch/")
    string(REGEX MATCHALL "larch/[^\"]+" names "${lines}")
    list(APPEND larch_headers ${names})
    cmake_path(GET header PARENT_PATH folder)
    install(FILES ${PROJECT_SOURCE_DIR}/lib/${header} COMPONENT Development
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
  endif()
endwhile()
install(FILES ${PROJECT_BINARY_DIR}/include/larch_build.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT Development)
install(TARGETS larch larch_settings ${larch_libraries} EXPORT LarchTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Development OPTIONAL
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(larch_skeleton AND BUILD_SHARED_LIBS)
  install(TARGETS ${larch_skeleton} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(EXPORT LarchTargets NAMESPACE larch:: DESTINATION ${larch_package_dir}
        COMPONENT Development)
set(LARCH_ITK_COMPONENTS)
if(LARCH_WITH_ITK)
  get_directory_property(larch_itk DIRECTORY ${PROJECT_SOURCE_DIR}/lib/larch/io DEFINITION ITK_MODULES_REQUESTED)
  list(JOIN larch_itk " " LARCH_ITK_COMPONENTS)
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/LarchConfig.cmake.in
  ${PROJECT_BINARY_DIR}/LarchConfig.cmake INSTALL_DESTINATION ${larch_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LarchConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/LarchConfig.cmake ${PROJECT_BINARY_DIR}/LarchConfigVersion.cmake
        DESTINATION ${larch_package_dir} COMPONENT Development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/larch/configs
        FILES_MATCHING PATTERN "*.json")
# With these a site checks what it installed.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/data-samples DESTINATION ${CMAKE_INSTALL_DATADIR}/larch)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/regression DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/larch)
install(FILES ${PROJECT_SOURCE_DIR}/scripts/larch_runs.py ${PROJECT_SOURCE_DIR}/scripts/larch_content.py
        DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/larch)
# Packages of Debian have a file copyright in place of it.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/larch COMPONENT Licence)

if(LARCH_BUNDLE)
  include(LarchBundle)
endif()
