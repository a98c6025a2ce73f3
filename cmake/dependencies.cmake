# All dependencies are packages of Debian 12; tools/packages.txt lists them.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(Protobuf REQUIRED)
find_package(gRPC REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(GTest REQUIRED)
include(GoogleTest)

find_path(WARPLOOM_ONNX_INCLUDE onnx/onnx-ml.pb.h REQUIRED)
find_library(WARPLOOM_ONNX_PROTO onnx_proto REQUIRED)
add_library(warploom_onnx INTERFACE)
target_include_directories(warploom_onnx SYSTEM INTERFACE ${WARPLOOM_ONNX_INCLUDE})
target_compile_definitions(warploom_onnx INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx)
target_link_libraries(warploom_onnx INTERFACE ${WARPLOOM_ONNX_PROTO} protobuf::libprotobuf)

# CBC solves the integer program that chooses a cover. Its headers include each other by bare file names, so their folder is an include
# path.
find_path(WARPLOOM_CBC_INCLUDE CbcModel.hpp PATH_SUFFIXES coin REQUIRED)
add_library(warploom_cbc INTERFACE)
target_include_directories(warploom_cbc SYSTEM INTERFACE ${WARPLOOM_CBC_INCLUDE})
foreach(library Cbc Cgl OsiClp Clp Osi CoinUtils)
  find_library(WARPLOOM_CBC_${library} ${library} REQUIRED)
  target_link_libraries(warploom_cbc INTERFACE ${WARPLOOM_CBC_${library}})
endforeach()

# XGBoost trains rankers (models that predict which kernel is faster). With --as-needed, only the programs that train rankers load
# libxgboost.
find_path(WARPLOOM_XGBOOST_INCLUDE xgboost/c_api.h REQUIRED)
find_library(WARPLOOM_XGBOOST xgboost REQUIRED)
add_library(warploom_xgboost INTERFACE)
target_include_directories(warploom_xgboost SYSTEM INTERFACE ${WARPLOOM_XGBOOST_INCLUDE})
target_link_libraries(warploom_xgboost INTERFACE -Wl,--push-state,--as-needed ${WARPLOOM_XGBOOST} -Wl,--pop-state)

# The libraries that serve metrics and health checks over HTTP: prometheus-cpp and cpp-httplib.
find_package(prometheus-cpp REQUIRED CONFIG)
find_library(WARPLOOM_HTTPLIB cpp-httplib REQUIRED)
add_library(warploom_httplib INTERFACE)
# Debian built cpp-httplib with these macros. Without them, the classes that its header declares would differ from those in Debian's
# compiled library.
target_compile_definitions(warploom_httplib INTERFACE CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
target_link_libraries(warploom_httplib INTERFACE ${WARPLOOM_HTTPLIB} OpenSSL::SSL)

# libseccomp filters the system calls of a worker's child processes.
find_library(WARPLOOM_SECCOMP seccomp REQUIRED)

# All *.proto files, which define the gRPC protocol, are compiled into one library of generated code, without this project's warning flags.
file(GLOB WARPLOOM_PROTO_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/proto/warploom/v1/*.proto)
set(generated ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated})
# An rpc without the option `access`, which says who may call it, fails the build before anything is generated.
add_executable(check_access ${PROJECT_SOURCE_DIR}/proto/check_access.cpp)
target_compile_options(check_access PRIVATE ${WARPLOOM_WARNINGS} ${WARPLOOM_COLD})
target_link_libraries(check_access PRIVATE protobuf::libprotobuf)
set(checked ${generated}/protocol.checked)
add_custom_command(
  OUTPUT ${checked}
  COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/proto --include_imports --include_source_info
          --descriptor_set_out=${checked} ${WARPLOOM_PROTO_FILES}
  COMMAND check_access ${checked}
  DEPENDS check_access ${WARPLOOM_PROTO_FILES} VERBATIM)
set(proto_sources)
foreach(proto ${WARPLOOM_PROTO_FILES})
  get_filename_component(stem ${proto} NAME_WE)
  set(outputs)
  foreach(suffix .pb.cc .pb.h .grpc.pb.cc .grpc.pb.h)
    list(APPEND outputs ${generated}/warploom/v1/${stem}${suffix})
  endforeach()
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/proto --cpp_out=${generated} --grpc_out=${generated}
            --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> ${proto}
    DEPENDS ${WARPLOOM_PROTO_FILES} ${checked} VERBATIM)
  list(APPEND proto_sources ${outputs})
  # The generated message files (*.pb.cc) define the same static names, so a unity build must not merge them. It may merge *.grpc.pb.cc.
  set_source_files_properties(${generated}/warploom/v1/${stem}.pb.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()
if(proto_sources)
  add_library(warploom_protos STATIC ${proto_sources})
  target_include_directories(warploom_protos SYSTEM PUBLIC ${generated})
  target_link_libraries(warploom_protos PUBLIC gRPC::grpc++ protobuf::libprotobuf)
  target_include_directories(warploom_protos PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(warploom_protos PRIVATE ${WARPLOOM_COLD})
  wl_precompile(warploom_protos precompiled_rpc.h warploom_protos)
else()
  add_library(warploom_protos INTERFACE)
endif()
