# `make install`: the programs, and the run-time library for programs of others: find_package(warploom), then link warploom::program.
# Each file belongs to a component, which is a Debian package (packages.cmake): the client with the library, the coordinator, the worker.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# One shared object out of the libraries that running a bundle needs.
set(objects)
foreach(library base ir import runtime program)
  list(APPEND objects $<TARGET_OBJECTS:wl_${library}>)
endforeach()
add_library(warploom_program SHARED ${objects})
target_link_libraries(warploom_program PRIVATE wl_program INTERFACE absl::status absl::statusor absl::strings absl::str_format)
set_target_properties(warploom_program PROPERTIES EXPORT_NAME program OUTPUT_NAME warploom VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_compile_features(warploom_program INTERFACE cxx_std_20)
# client/program/model.h and all that it includes; tests/e2e/install_test.py compiles a program with them.
set(headers client/program/model.h client/program/bucket.h client/program/npy.h client/program/program.h compiler/base/dtype.h
  compiler/base/fill.h compiler/base/records.h compiler/base/status.h compiler/ir/eval.h
  compiler/ir/graph.h compiler/ir/ops.def compiler/ir/weights/fold_weights.h)
target_sources(warploom_program INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})

set(client_programs warploom warploom-runner)
set(coordinator_programs warploomd warploom-train)
set(worker_programs warploom-worker)
set(programs ${client_programs} ${coordinator_programs} ${worker_programs})
foreach(component client coordinator worker)
  install(TARGETS ${${component}_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
endforeach()
install(TARGETS warploom_program EXPORT warploom LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warploom COMPONENT client)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/warploom)
install(EXPORT warploom NAMESPACE warploom:: FILE warploomTargets.cmake DESTINATION ${package} COMPONENT client)
file(WRITE ${PROJECT_BINARY_DIR}/generated/warploomConfig.cmake
  "include(CMakeFindDependencyMacro)\nfind_dependency(absl)\ninclude(\${CMAKE_CURRENT_LIST_DIR}/warploomTargets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/warploomConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/warploomConfig.cmake ${PROJECT_BINARY_DIR}/generated/warploomConfigVersion.cmake
  DESTINATION ${package} COMPONENT client)
install(DIRECTORY deploy DESTINATION ${CMAKE_INSTALL_DATADIR}/warploom USE_SOURCE_PERMISSIONS COMPONENT client)

# What `make install` builds; the tests build it too.
add_custom_target(installed DEPENDS ${programs} warploom_program)
