# The Python package: an extension module (_core) that calls the C library, and sources in Python. The build tree has the package as
# python/warploom; a wheel (pyproject.toml) also contains the programs and the C library.
find_package(Python 3.9 COMPONENTS Interpreter Development.Module QUIET)
set(python ${Python_EXECUTABLE})
if(NOT SKBUILD AND EXISTS ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
  set(python ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
endif()
if(Python_Development.Module_FOUND)
  execute_process(COMMAND ${python} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_package(nanobind CONFIG QUIET)
endif()
if(NOT nanobind_FOUND)
  message(STATUS "warploom: no Python package: it needs python3-dev and the Python package nanobind")
  return()
endif()

nanobind_add_module(warploom_python NB_STATIC ${PROJECT_SOURCE_DIR}/client/python/core.cpp)
target_link_libraries(warploom_python PRIVATE warploom_library)
set(package ${PROJECT_BINARY_DIR}/python/warploom)
set_target_properties(warploom_python PROPERTIES OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY ${package})
set(written ${PROJECT_SOURCE_DIR}/client/python/warploom)
file(GLOB_RECURSE modules RELATIVE ${written} CONFIGURE_DEPENDS ${written}/*.py ${written}/py.typed)
foreach(module ${modules})
  get_filename_component(folder ${package}/${module} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${written}/${module} ${package}/${module} SYMBOLIC)
endforeach()

set(onnxruntime $<TARGET_FILE_NAME:warploom_onnxruntime>)
add_custom_command(TARGET warploom_onnxruntime POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E make_directory ${package}/lib
  COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:warploom_onnxruntime> ${package}/lib/${onnxruntime} VERBATIM)

# Package metadata for the build tree, like that of an installed package: by its entry point, torch.compile finds the backend "warploom".
set(about ${PROJECT_BINARY_DIR}/python/warploom-${PROJECT_VERSION}.dist-info)
file(WRITE ${about}/METADATA "Metadata-Version: 2.1\nName: warploom\nVersion: ${PROJECT_VERSION}\n")
file(WRITE ${about}/entry_points.txt "[torch_dynamo_backends]\nwarploom = warploom.torch:backend\n")

set(python_parts warploom warploom-runner warploom_library warploom_onnx_reader warploom_remote warploom_onnxruntime)
add_custom_target(python_package DEPENDS warploom_python ${python_parts})
wl_tested(python_package)
if(NOT WARPLOOM_SANITIZE)
  # A stub file (_core.pyi) with the types of the functions of the extension module, for editors and type checkers.
  nanobind_add_stub(warploom_python_stub MODULE _core PYTHON_PATH ${package} OUTPUT ${package}/_core.pyi DEPENDS warploom_python)
  add_dependencies(python_package warploom_python_stub)
  install(FILES ${package}/_core.pyi DESTINATION warploom COMPONENT python EXCLUDE_FROM_ALL)
endif()
set_target_properties(warploom_python PROPERTIES INSTALL_RPATH $ORIGIN/lib)
install(TARGETS warploom_python LIBRARY DESTINATION warploom COMPONENT python EXCLUDE_FROM_ALL)
# A wheel cannot contain symbolic links, so each library is installed under the name by which it is loaded.
install(PROGRAMS $<TARGET_FILE:warploom> $<TARGET_FILE:warploom-runner> DESTINATION warploom/bin COMPONENT python EXCLUDE_FROM_ALL)
install(PROGRAMS $<TARGET_FILE:warploom_library> DESTINATION warploom/lib RENAME libwarploom.so.${abi} COMPONENT python EXCLUDE_FROM_ALL)
install(PROGRAMS $<TARGET_FILE:warploom_onnx_reader> $<TARGET_FILE:warploom_remote> $<TARGET_FILE:warploom_onnxruntime> DESTINATION warploom/lib COMPONENT python EXCLUDE_FROM_ALL)
