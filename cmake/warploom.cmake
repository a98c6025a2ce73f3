# One function per kind of target. A library is every *.cpp of some folders except programs' mains; a program is one
# main.

set(WARPLOOM_MAINS "warploomd.cpp;warploom_train.cpp;runner_main.cpp;worker_main.cpp;warploom.cpp")

# wl_library(NAME FOLDERS... [DEPS warploom libraries] [LIBS others]). Subfolders must be listed too.
function(wl_library name)
  cmake_parse_arguments(arg "" "" "DEPS;LIBS" ${ARGN})
  set(globs)
  foreach(folder ${arg_UNPARSED_ARGUMENTS})
    list(APPEND globs ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${globs})
  foreach(main ${WARPLOOM_MAINS})
    list(FILTER sources EXCLUDE REGEX "/${main}$")
  endforeach()
  list(TRANSFORM arg_DEPS PREPEND wl_)
  if(sources)
    add_library(wl_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(wl_${name} PRIVATE ${WARPLOOM_WARNINGS})
  else()
    add_library(wl_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(wl_${name} ${scope} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(wl_${name} ${scope} ${arg_DEPS} ${arg_LIBS})
endfunction()

# wl_program(NAME MAIN LIBRARIES...). Skipped with a message while its main does not exist.
function(wl_program name main)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${main})
    message(STATUS "warploom: no ${main} yet, not building ${name}")
    return()
  endif()
  add_executable(${name} ${PROJECT_SOURCE_DIR}/${main})
  set(libraries ${ARGN})
  list(TRANSFORM libraries PREPEND wl_)
  target_compile_options(${name} PRIVATE ${WARPLOOM_WARNINGS})
  target_link_libraries(${name} PRIVATE ${libraries})
endfunction()

# A test that takes longer than this many seconds hangs.
set(WARPLOOM_TEST_SECONDS 900)
if(WARPLOOM_SANITIZE)
  set(WARPLOOM_TEST_SECONDS 3600)
endif()

# wl_test(NAME FOLDER [LABEL null] LIBRARIES...): one gtest program from every *.cpp of a folder under tests/. Labels:
# null tests need only the machine, cpu tests compile and run kernels, e2e tests start the real programs, lint tests
# read the tree; tests labelled long are left out of `make test`.
function(wl_test name folder)
  cmake_parse_arguments(arg "" "LABEL" "" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL null)
  endif()
  add_executable(${name} ${sources})
  set(libraries ${arg_UNPARSED_ARGUMENTS})
  list(TRANSFORM libraries PREPEND wl_)
  target_compile_options(${name} PRIVATE ${WARPLOOM_WARNINGS})
  target_compile_definitions(${name} PRIVATE WARPLOOM_SOURCE_DIR="${PROJECT_SOURCE_DIR}" WARPLOOM_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  target_link_libraries(${name} PRIVATE ${libraries} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 120 PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${WARPLOOM_TEST_SECONDS})
endfunction()

# wl_script_test(NAME LABEL SCRIPT ARGUMENTS...): a Python test. It runs in the tests' environment if that exists.
function(wl_script_test name label script)
  set(python ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
  if(NOT EXISTS ${python})
    find_program(WARPLOOM_PYTHON python3 REQUIRED)
    set(python ${WARPLOOM_PYTHON})
  endif()
  add_test(NAME ${name} COMMAND ${python} ${PROJECT_SOURCE_DIR}/tests/${script} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${WARPLOOM_TEST_SECONDS} SKIP_RETURN_CODE 77
    ENVIRONMENT "WARPLOOM_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};WARPLOOM_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
endfunction()

# wl_fuzzer(NAME FILE LIBRARIES...): a libFuzzer target for tests/fuzz/FILE, in the fuzz preset only, which builds
# nothing but the target `fuzzers` of them all. tools/fuzz.sh runs them.
function(wl_fuzzer name file)
  if(NOT WARPLOOM_FUZZ)
    return()
  endif()
  add_executable(fuzz_${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/${file})
  set(libraries ${ARGN})
  list(TRANSFORM libraries PREPEND wl_)
  target_compile_options(fuzz_${name} PRIVATE ${WARPLOOM_WARNINGS})
  target_link_libraries(fuzz_${name} PRIVATE ${libraries})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers fuzz_${name})
endfunction()
