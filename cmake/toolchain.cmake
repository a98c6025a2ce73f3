# Warnings, optimisation levels, sanitizers, ccache, the linker lld, and precompiled headers.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(WARPLOOM_WARNINGS -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 reports overflows in std::vector::insert that cannot happen.
  list(APPEND WARPLOOM_WARNINGS -Wno-stringop-overflow)
  if(WARPLOOM_SANITIZE)
    # g++ 12 reports initialised variables in std::regex as uninitialised.
    list(APPEND WARPLOOM_WARNINGS -Wno-maybe-uninitialized)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # g++ 13 and newer report faults of the standard library's sets and short strings that cannot happen.
  list(APPEND WARPLOOM_WARNINGS -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overread)
endif()
# The build type Dev compiles quickly and has assertions enabled. The CHECK macros of this project are enabled in every build type.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1")
set(CMAKE_C_FLAGS_DEV "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(WARPLOOM_COLD $<$<CONFIG:Release>:-O1>)  # for code that mostly waits (for the network, for example): -O1 compiles faster than -O2

if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # By default, g++ collects garbage whenever its heap has doubled beyond 128 MB, which takes a sixth of the compile time of a merged source
  # (of a unity build). With this parameter, garbage collection begins at a heap of 1000000 KB, which such a source does not reach.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1000000>)
endif()

# g++ 13 and newer refuse a header that was precompiled with another -O, so COLD libraries need one of their own there.
set(WARPLOOM_PRECOMPILED_PER_LEVEL OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  set(WARPLOOM_PRECOMPILED_PER_LEVEL ON)
endif()

find_program(WARPLOOM_CCACHE ccache)
if(WARPLOOM_CCACHE)
  # Without these options, ccache does not cache sources that use precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${WARPLOOM_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${WARPLOOM_CCACHE})
endif()
find_program(WARPLOOM_LLD ld.lld)
if(WARPLOOM_LLD)
  add_link_options(-fuse-ld=lld)
endif()
if(WARPLOOM_SANITIZE)
  add_compile_options(-fsanitize=${WARPLOOM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${WARPLOOM_SANITIZE})
endif()
if(WARPLOOM_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "WARPLOOM_FUZZ needs clang, found ${CMAKE_CXX_COMPILER_ID}: use `cmake --preset fuzz`")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# GPU libraries are loaded at run time, so the build needs neither the CUDA nor the HIP toolkit. A message names each toolkit that this
# machine lacks.
find_path(WARPLOOM_CUDA_HEADERS cuda.h PATHS /usr/local/cuda/include)
find_path(WARPLOOM_HIP_HEADERS hip/hip_runtime.h PATHS /opt/rocm/include)
foreach(toolkit CUDA HIP)
  if(NOT WARPLOOM_${toolkit}_HEADERS)
    message(STATUS "warploom: no ${toolkit} toolkit on this machine; its targets are not tested here")
  endif()
endforeach()

# wl_precompile(TARGET HEADER HOLDER): precompiles cmake/HEADER for TARGET in builds that merge sources (unity builds). The header is
# compiled once, for the target HOLDER, and all other targets with this header reuse the result.
function(wl_precompile target header holder)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  target_compile_options(${target} PRIVATE -pthread)  # -pthread defines a macro, which must be the same in all targets that share a header
  if(target STREQUAL holder)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/${header})
  else()
    target_precompile_headers(${target} REUSE_FROM ${holder})
  endif()
endfunction()
