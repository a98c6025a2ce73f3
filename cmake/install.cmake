# `make install` installs the programs and the C library, which other projects find by find_package(warploom) and the target
# warploom::warploom, or by pkg-config warploom. Each file belongs to a component, which is a Debian package (packages.cmake): the client
# with the library, the coordinator, the worker.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# libwarploom.so: one shared object made of the libraries that are needed to run a bundle (a folder with compiled kernels). It exports only
# the functions of warploom.h, and its soname has the version number of their ABI.
set(abi 1)
set(objects)
foreach(library base files ir runtime program fetch c)
  list(APPEND objects $<TARGET_OBJECTS:wl_${library}>)
endforeach()
add_library(warploom_library SHARED ${objects})
target_link_libraries(warploom_library PRIVATE wl_c)
set(map ${PROJECT_SOURCE_DIR}/client/c/warploom.map)
target_link_options(warploom_library PRIVATE -Wl,--version-script=${map})
set_target_properties(warploom_library PROPERTIES EXPORT_NAME warploom OUTPUT_NAME warploom VERSION ${abi}.${PROJECT_VERSION} SOVERSION ${abi}
  LINK_DEPENDS ${map})
# The module that libwarploom.so loads from its own folder when it has to read ONNX files.
add_library(warploom_onnx_reader MODULE $<TARGET_OBJECTS:wl_onnx_weights>)
target_link_libraries(warploom_onnx_reader PRIVATE wl_onnx_weights)
set(onnx_map ${PROJECT_SOURCE_DIR}/client/onnx_weights/plugin.map)
target_link_options(warploom_onnx_reader PRIVATE -Wl,--version-script=${onnx_map})
set_target_properties(warploom_onnx_reader PROPERTIES OUTPUT_NAME warploom-onnx-${PROJECT_VERSION} LINK_DEPENDS ${onnx_map})
# The module that libwarploom.so loads from its own folder when it has to call a coordinator.
add_library(warploom_remote MODULE client/remote/plugin.cpp)
target_link_libraries(warploom_remote PRIVATE wl_remote)
target_compile_options(warploom_remote PRIVATE ${WARPLOOM_WARNINGS})
set(remote_map ${PROJECT_SOURCE_DIR}/client/remote/plugin.map)
target_link_options(warploom_remote PRIVATE -Wl,--version-script=${remote_map})
set_target_properties(warploom_remote PROPERTIES OUTPUT_NAME warploom-client-${PROJECT_VERSION} LINK_DEPENDS ${remote_map})
add_dependencies(warploom_library warploom_onnx_reader warploom_remote)
# The module that onnxruntime loads to run bundles as nodes of its graphs. It is installed beside libwarploom.so.
add_library(warploom_onnxruntime MODULE client/onnxruntime/bundle_op.cpp)
target_link_libraries(warploom_onnxruntime PRIVATE warploom_library)
target_include_directories(warploom_onnxruntime PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(warploom_onnxruntime PRIVATE ${WARPLOOM_WARNINGS})
set(ops_map ${PROJECT_SOURCE_DIR}/client/onnxruntime/custom_ops.map)
target_link_options(warploom_onnxruntime PRIVATE -Wl,--version-script=${ops_map})
set_target_properties(warploom_onnxruntime PROPERTIES OUTPUT_NAME warploom-onnxruntime LINK_DEPENDS ${ops_map} INSTALL_RPATH $ORIGIN)
target_sources(warploom_library INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/client/c
  FILES client/c/warploom.h client/c/warploom.hpp)
file(RELATIVE_PATH to_include /${CMAKE_INSTALL_LIBDIR}/pkgconfig /${CMAKE_INSTALL_INCLUDEDIR})  # relative: the installed tree may be moved
configure_file(cmake/warploom.pc.in generated/warploom.pc @ONLY)

set(client_programs warploom warploom-runner)
set(coordinator_programs warploomd warploom-train)
set(worker_programs warploom-worker)
set(programs ${client_programs} ${coordinator_programs} ${worker_programs})
foreach(component client coordinator worker)
  install(TARGETS ${${component}_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
endforeach()
install(TARGETS warploom_library EXPORT warploom LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT client)
install(TARGETS warploom_onnx_reader warploom_remote warploom_onnxruntime LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client)
install(FILES ${PROJECT_BINARY_DIR}/generated/warploom.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT client)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/warploom)
install(EXPORT warploom NAMESPACE warploom:: FILE warploomTargets.cmake DESTINATION ${package} COMPONENT client)
file(WRITE ${PROJECT_BINARY_DIR}/generated/warploomConfig.cmake
  "include(\${CMAKE_CURRENT_LIST_DIR}/warploomTargets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/warploomConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/warploomConfig.cmake ${PROJECT_BINARY_DIR}/generated/warploomConfigVersion.cmake
  DESTINATION ${package} COMPONENT client)
install(DIRECTORY deploy DESTINATION ${CMAKE_INSTALL_DATADIR}/warploom USE_SOURCE_PERMISSIONS COMPONENT client)

# The manual pages and shell completions, whose text the program `warploom` itself prints.
set(described ${PROJECT_BINARY_DIR}/generated/described)
add_custom_command(OUTPUT ${described}/man1/warploom.1 COMMAND ${PROJECT_SOURCE_DIR}/tools/describe.sh $<TARGET_FILE:warploom> ${described}
  DEPENDS warploom ${PROJECT_SOURCE_DIR}/tools/describe.sh VERBATIM)
install(DIRECTORY ${described}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT client)
install(FILES ${described}/bash/warploom DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT client)
install(FILES ${described}/zsh/_warploom DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT client)
install(FILES ${described}/fish/warploom.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT client)

# The target `installed` builds everything that `make install` installs. The tests build it too.
add_custom_target(installed DEPENDS ${programs} warploom_library warploom_onnx_reader warploom_remote warploom_onnxruntime ${described}/man1/warploom.1)
