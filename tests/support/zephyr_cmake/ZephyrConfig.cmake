# SPDX-License-Identifier: Apache-2.0
# A stand-in for Zephyr's CMake package: it calls the modules, and prints what they want compiled.

macro(zephyr_record kind)
  foreach(each ${ARGN})
    if(NOT IS_ABSOLUTE "${each}")
      set(each ${CMAKE_CURRENT_SOURCE_DIR}/${each})
    endif()
    file(APPEND ${CMAKE_BINARY_DIR}/record.txt "${kind} ${each}\n")
  endforeach()
endmacro()

function(zephyr_library_named name)
  file(APPEND ${CMAKE_BINARY_DIR}/record.txt "library ${name}\n")
endfunction()

function(zephyr_library_sources)
  zephyr_record(source ${ARGN})
endfunction()

function(zephyr_library_sources_ifdef feature)
  if(${${feature}})
    zephyr_record(source ${ARGN})
  endif()
endfunction()

function(zephyr_include_directories)
  zephyr_record(include ${ARGN})
endfunction()

function(zephyr_linker_sources where)
  zephyr_record(linker ${ARGN})
endfunction()

function(zephyr_compile_definitions)
endfunction()

file(WRITE ${CMAKE_BINARY_DIR}/empty.c "")
file(WRITE ${CMAKE_BINARY_DIR}/record.txt "")
add_library(app STATIC ${CMAKE_BINARY_DIR}/empty.c)
foreach(module ${EXTRA_ZEPHYR_MODULES})
  add_subdirectory(${module}/zephyr ${CMAKE_BINARY_DIR}/module)
endforeach()
