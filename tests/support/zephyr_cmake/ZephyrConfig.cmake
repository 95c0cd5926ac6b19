# SPDX-License-Identifier: Apache-2.0
# A stand-in for Zephyr's CMake package: it includes the modules, and records the sources that they add. A module's
# library can be compiled for the host, with warnings that Zephyr's own builds can enable, too.
project(stand_in LANGUAGES C) # as in Zephyr
add_library(zephyr_interface INTERFACE)
target_compile_options(zephyr_interface INTERFACE -Wall -Wextra -Wconversion -Werror)

macro(zephyr_record kind)
  foreach(each ${ARGN})
    if(NOT IS_ABSOLUTE "${each}")
      set(each ${CMAKE_CURRENT_SOURCE_DIR}/${each})
    endif()
    file(APPEND ${CMAKE_BINARY_DIR}/record.txt "${kind} ${each}\n")
  endforeach()
endmacro()

macro(zephyr_library_named name)
  file(APPEND ${CMAKE_BINARY_DIR}/record.txt "library ${name}\n")
  set(ZEPHYR_CURRENT_LIBRARY ${name})
  add_library(${name} STATIC EXCLUDE_FROM_ALL)
  target_link_libraries(${name} PRIVATE zephyr_interface)
endmacro()

function(zephyr_library_sources)
  zephyr_record(source ${ARGN})
  target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()

function(zephyr_library_sources_ifdef feature)
  if(${${feature}})
    zephyr_library_sources(${ARGN})
  endif()
endfunction()

function(zephyr_include_directories)
  zephyr_record(include ${ARGN})
  target_include_directories(zephyr_interface INTERFACE ${ARGN})
endfunction()

function(zephyr_system_include_directories)
  zephyr_record(include ${ARGN})
  target_include_directories(zephyr_interface SYSTEM INTERFACE ${ARGN})
endfunction()

# Releases without classes include 3.5, which does not have this command.
if(STAND_IN_DEVICE_H)
  function(zephyr_syscall_include_directories)
    zephyr_record(syscalls ${ARGN})
  endfunction()
endif()

function(zephyr_linker_sources where)
  zephyr_record(linker ${ARGN})
endfunction()

function(zephyr_compile_definitions)
  target_compile_definitions(zephyr_interface INTERFACE ${ARGN})
endfunction()

# The header of a release with classes of devices, or of one without.
set(ZEPHYR_BASE ${CMAKE_BINARY_DIR}/base)
file(WRITE ${ZEPHYR_BASE}/include/zephyr/device.h "${STAND_IN_DEVICE_H}\n")

file(WRITE ${CMAKE_BINARY_DIR}/empty.c "")
file(WRITE ${CMAKE_BINARY_DIR}/record.txt "")
add_library(app STATIC ${CMAKE_BINARY_DIR}/empty.c)
foreach(module ${EXTRA_ZEPHYR_MODULES})
  string(MD5 folder ${module})
  add_subdirectory(${module}/zephyr ${CMAKE_BINARY_DIR}/modules/${folder})
endforeach()
