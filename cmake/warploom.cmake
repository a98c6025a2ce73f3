# One function for each kind of CMake target. A library consists of every *.cpp of some folders, except those that define main(); a program
# has one source file of its own, which defines main().

set(WARPLOOM_MAINS "check_access.cpp;warploomd.cpp;warploom_train.cpp;runner_main.cpp;worker_main.cpp;warploom.cpp;remote/plugin.cpp")

# wl_library(NAME FOLDERS... [COLD] [RPC] [DEPS warploom libraries] [LIBS others]): a library from the sources of FOLDERS, without their
# subfolders. COLD: the library's speed does not matter, so it is compiled with less optimisation. RPC: its sources use gRPC.
function(wl_library name)
  cmake_parse_arguments(arg "COLD;RPC" "" "DEPS;LIBS" ${ARGN})
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
    if(arg_COLD)
      target_compile_options(wl_${name} PRIVATE ${WARPLOOM_COLD})
    endif()
    if(arg_RPC)
      wl_precompile(wl_${name} precompiled_rpc.h warploom_protos)
    elseif(arg_COLD AND WARPLOOM_PRECOMPILED_PER_LEVEL)
      wl_precompile(wl_${name} precompiled.h wl_files)
    else()
      wl_precompile(wl_${name} precompiled.h wl_base)
    endif()
  else()
    add_library(wl_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(wl_${name} ${scope} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(wl_${name} ${scope} ${arg_DEPS} ${arg_LIBS})
endfunction()

# wl_program(NAME MAIN LIBRARIES...): a program from the source file MAIN. If MAIN does not exist, the program is skipped, with a message.
function(wl_program name main)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${main})
    message(STATUS "warploom: no ${main} yet, not building ${name}")
    return()
  endif()
  add_executable(${name} ${PROJECT_SOURCE_DIR}/${main})
  set(libraries ${ARGN})
  list(TRANSFORM libraries PREPEND wl_)
  target_compile_options(${name} PRIVATE ${WARPLOOM_WARNINGS} ${WARPLOOM_COLD})
  target_link_libraries(${name} PRIVATE ${libraries})
endfunction()

# wl_tested(TARGETS...): adds TARGETS to the target `tests`, which builds everything that the tests need.
add_custom_target(tests)
function(wl_tested)
  add_dependencies(tests ${ARGN})
endfunction()

# A test that takes more than this many seconds is ended and counts as hung.
set(WARPLOOM_TEST_SECONDS 900)
option(WARPLOOM_LONG_TESTS "Tests have the time that the counts of `make test-long` take")
if(WARPLOOM_LONG_TESTS)
  set(WARPLOOM_TEST_SECONDS 16000)
elseif(WARPLOOM_SANITIZE)
  set(WARPLOOM_TEST_SECONDS 3600)
endif()

# How many of ctest's places a test takes. `make test` gives ctest two places for every processor, so tests that compute take two, and tests
# that mostly wait (for deadlines, leases, or the network) take one: two of them run beside each other on one processor. Under a sanitizer,
# they compute as well.
set(WARPLOOM_TEST_PLACES 2)

# wl_checked(TARGETS...): adds TARGETS to the target `checked`, which builds what `make check` runs.
add_custom_target(checked)
function(wl_checked)
  add_dependencies(checked ${ARGN})
endfunction()

# wl_test(NAME FOLDER [LABEL unit] [CHECK] [SLOW PATTERN] [LONG PATTERN] LIBRARIES...): one gtest program from every *.cpp of a folder under
# tests/. Labels: unit tests need only the machine, cpu tests compile and run kernels, e2e tests start the real programs, lint tests read
# the source tree; tests labelled long are left out of `make test`. CHECK: `make check` also runs the program, as one process, without
# random tests and without the tests that match SLOW (a pattern of --gtest_filter), which take more than a second. LONG: the tests that
# match this pattern are labelled long instead, because cheaper tests check the same facts; a comment at the call names the cheaper ones.
function(wl_test name folder)
  cmake_parse_arguments(arg "CHECK" "LABEL;SLOW;LONG" "" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  add_executable(${name} ${sources})
  set(libraries ${arg_UNPARSED_ARGUMENTS})
  list(TRANSFORM libraries PREPEND wl_)
  target_compile_options(${name} PRIVATE ${WARPLOOM_WARNINGS} ${WARPLOOM_COLD})
  target_compile_definitions(${name} PRIVATE WARPLOOM_SOURCE_DIR="${PROJECT_SOURCE_DIR}" WARPLOOM_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  target_link_libraries(${name} PRIVATE ${libraries} GTest::gmock GTest::gtest_main)
  wl_precompile(${name} precompiled_test.h base_test)
  wl_tested(${name})
  set(discovered DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT ${WARPLOOM_TEST_SECONDS} PROCESSORS ${WARPLOOM_TEST_PLACES} LABELS)
  if(arg_LONG)
    gtest_discover_tests(${name} TEST_FILTER "${arg_LONG}" ${discovered} long)
    gtest_discover_tests(${name} TEST_FILTER "-${arg_LONG}" ${discovered} ${arg_LABEL})
  else()
    gtest_discover_tests(${name} ${discovered} ${arg_LABEL})
  endif()
  if(arg_CHECK)
    wl_checked(${name})
    add_test(NAME check.${name} COMMAND ${name} --gtest_brief=1 "--gtest_filter=-*Random*:*Fuzz*:*Sampled*:${arg_SLOW}")
    set_tests_properties(check.${name} PROPERTIES LABELS check ENVIRONMENT WARPLOOM_TEST_SCALE=0.02 TIMEOUT 120 PROCESSORS ${WARPLOOM_TEST_PLACES})
  endif()
endfunction()

# wl_script_test(NAME LABEL SCRIPT ARGUMENTS...): a test that is a Python script. It runs in the virtual environment build/venv if that
# exists.
# Scripts that mostly wait are those in the list WARPLOOM_WAITING.
function(wl_script_test name label script)
  set(tests ${PROJECT_SOURCE_DIR}/tests)
  set(python ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
  if(NOT EXISTS ${python})
    find_program(WARPLOOM_PYTHON python3 REQUIRED)
    set(python ${WARPLOOM_PYTHON})
  endif()
  add_test(NAME ${name} COMMAND ${python} ${PROJECT_SOURCE_DIR}/tests/${script} ${ARGN})
  set(places ${WARPLOOM_TEST_PLACES})
  if(name IN_LIST WARPLOOM_WAITING AND NOT WARPLOOM_SANITIZE)
    set(places 1)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${WARPLOOM_TEST_SECONDS} SKIP_RETURN_CODE 77 PROCESSORS ${places}
    ENVIRONMENT "WARPLOOM_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};WARPLOOM_SOURCE_DIR=${PROJECT_SOURCE_DIR};PYTHONPATH=${tests}/e2e:${tests}/fleet")
endfunction()

# wl_fuzzer(NAME FILE LIBRARIES...): a libFuzzer program from tests/fuzz/FILE. It exists in the fuzz preset only, whose target `fuzzers`
# builds all fuzzers. tools/fuzz.sh runs them.
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
