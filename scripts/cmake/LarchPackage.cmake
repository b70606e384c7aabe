# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Pages, examples and licences, and the packages of CPack: `cpack` makes an archive of everything, `cpack -G DEB`
# packages for this Debian: larch, and python3-larch where the module is built.
set(larch_doc_dir ${CMAKE_INSTALL_DATADIR}/doc/larch)
# Pages stand as in the source tree, so that their links hold.
file(GLOB_RECURSE larch_pages RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/apps/*.md ${PROJECT_SOURCE_DIR}/apps/images/*
     ${PROJECT_SOURCE_DIR}/lib/README.md ${PROJECT_SOURCE_DIR}/tests/README.md)
list(FILTER larch_pages EXCLUDE REGEX "[.]intro[.]md$")
foreach(page README.md CHANGELOG.md CITATION.cff ${larch_pages})
  cmake_path(GET page PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/${page} DESTINATION ${larch_doc_dir}/${folder})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scripts/examples DESTINATION ${larch_doc_dir} USE_SOURCE_PERMISSIONS)
file(CREATE_LINK ../../larch/configs ${PROJECT_BINARY_DIR}/configs SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/configs DESTINATION ${larch_doc_dir})
# Programs have parts of libraries in them that are headers; their packages of Debian know the licences.
set(larch_copyright "Larch is copyright of the Larch authors, and has the Apache License, version 2.0, which on Debian is
/usr/share/common-licenses/Apache-2.0, and elsewhere https://www.apache.org/licenses/LICENSE-2.0.

Where it is built with CUDA, the programs have NVIDIA's CUDA runtime in them, which the CUDA Toolkit End User License
Agreement (https://docs.nvidia.com/cuda/eula) lets others pass on. Shared libraries have files of their own, in a
bundle in share/doc/larch/licences. What follows is said of the libraries whose headers are used.\n")
foreach(library nlohmann-json3 libcli11 libspdlog libfmt libgdcm libinsighttoolkit5 pybind11)
  if(EXISTS /usr/share/doc/${library}-dev/copyright)
    file(READ /usr/share/doc/${library}-dev/copyright text)
    string(APPEND larch_copyright "\n---- ${library}\n\n${text}")
  endif()
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/copyright "${larch_copyright}")
install(FILES ${PROJECT_BINARY_DIR}/copyright DESTINATION ${larch_doc_dir} COMPONENT Licence)

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME larch)
set(CPACK_PACKAGE_VENDOR "The Larch authors")
set(CPACK_PACKAGE_FILE_NAME larch-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)

# Shared libraries would need packages of their own, and those of a bundle stand in the packages of others.
if(LARCH_WITH_ITK AND NOT BUILD_SHARED_LIBS AND NOT LARCH_BUNDLE)
  set(LARCH_MAINTAINER "The Larch authors <larch@larch.invalid>" CACHE STRING "Maintainer of the packages that are made, with an address")
  string(TIMESTAMP larch_now "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${PROJECT_BINARY_DIR}/changelog.Debian
    "larch (${PROJECT_VERSION}-1) UNRELEASED; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- ${LARCH_MAINTAINER}  ${larch_now}\n")
  execute_process(COMMAND gzip -9nf ${PROJECT_BINARY_DIR}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
  set(CPACK_PACKAGE_CONTACT ${LARCH_MAINTAINER})
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  # larch_debian(COMPONENT NAME SECTION DEPENDS DESCRIPTION): a package; DEPENDS: beside the linked libraries.
  macro(larch_debian component name section depends description)
    string(TOUPPER ${component} upper)
    list(APPEND CPACK_COMPONENTS_ALL ${component})
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${description}")
    install(FILES ${PROJECT_BINARY_DIR}/changelog.Debian.gz ${PROJECT_BINARY_DIR}/copyright EXCLUDE_FROM_ALL
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
  endmacro()
  larch_debian(Programs larch science python3 "find structures in medical images
Programs that segment images, find poses of structures, draw meshes to
boundaries, subtract angiograms, and measure the results. They learn from
labelled images and read NIfTI, NRRD, MetaImage and DICOM.

They are for research, and no medical device.")
  if(TARGET larch_python)
    get_directory_property(python DIRECTORY ${PROJECT_SOURCE_DIR}/lib/larch/python DEFINITION Python_VERSION_MINOR)
    math(EXPR next "${python} + 1")
    larch_debian(Python python3-larch python "python3 (>= 3.${python}), python3 (<< 3.${next}), python3-numpy"
      "find structures in medical images (Python module)
The module larch does whole jobs on arrays of numpy, with the results of the
programs of the package larch: detection, poses, boundaries, level sets,
subtraction of angiograms, training and scores.

It is for research, and no medical device.")
  endif()
endif()
include(CPack)
