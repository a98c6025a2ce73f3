// Exports for GPUs: each kernel is a CUDA or HIP file, which the export's build compiles with the options that it was
// timed with and puts into the library as bytes. The library opens the driver at run time.
#include <algorithm>
#include <span>

#include "absl/strings/str_join.h"
#include "client/cli/export/builder.h"
#include "client/program/manifest.h"
#include "runtime/gpu_tables.h"

namespace wl {
namespace {

struct Family {
  const char* name;  // first part of the family's targets: "cuda" of "cuda:sm_90a"
  const char* driver;
  std::span<const char* const> libraries;  // file names of the driver's library
  const char* stream;      // names of the driver's and the run-time library's types of streams, for comments
  const char* needs;       // names of what the build and a run need, for the README
  const char* cmake;       // CMake text that precedes the commands that compile a kernel
  const char* commands;    // CMake text of the commands that compile a kernel
  const char* error_name;  // C++ text of those members of class Driver that return an error's name
  const char* shared;      // C++ text of the member of class Driver that sets a kernel's shared memory
};

constexpr Family kFamilies[] = {
    {"cuda", "NVIDIA's driver", kCudaDrivers, "CUstream, cudaStream_t",
     "a compiler of C++17 and NVRTC (`libnvrtc`, in the CUDA Toolkit), to run NVIDIA's driver",
     "add_executable(compile_kernel compile_kernel.cpp)\ntarget_link_libraries(compile_kernel PRIVATE "
     "${CMAKE_DL_LIBS})",
     "COMMAND compile_kernel ${header} ${source} ${out} ${flags}",
     R"(  const char* name_of(int error) const {
    const char* name = nullptr;
    return error_name(error, &name) == 0 && name != nullptr ? name : "unknown";
  }
  int (*const error_name)(int, const char**) = find("cuGetErrorName");)",
     R"(  // 8 is CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
  int allow_shared(void* function, std::size_t bytes) const { return function_set(function, 8, static_cast<int>(bytes)); }
  int (*const function_set)(void*, int, int) = find("cuFuncSetAttribute");)"},
    {"hip", "ROCm", kHipDrivers, "hipStream_t",
     "a compiler of C++17 and a clang++ with lld that knows the GPU (LLVM's, or ROCm's: `-D "
     "HIP_COMPILER=/opt/rocm/llvm/bin/clang++`), to run ROCm",
     "set(HIP_COMPILER clang++ CACHE STRING \"a clang++ that knows ${architecture}\")",
     "COMMAND ${HIP_COMPILER} ${flags} -include ${header} ${source} -S -o ${out}.s\n    COMMAND ${HIP_COMPILER} "
     "-target "
     "amdgcn-amd-amdhsa -mcpu=${architecture} -fuse-ld=lld -x assembler ${out}.s -o ${out}",
     R"(  const char* name_of(int error) const { return error_name(error); }
  const char* (*const error_name)(int) = find("hipGetErrorName");)",
     "  int allow_shared(void*, std::size_t) const { return 0; }  // AMD's GPUs give all that a block can have"},
};

// Returns the names of the driver's functions (runtime/gpu_tables.h) by the placeholders for these names, such as
// "@to_host@".
std::map<std::string, std::string> functions(bool cuda) {
  std::map<std::string, std::string> names;
#define WL_NAME(member, of_cuda, of_hip, needed) names["@" #member "@"] = cuda ? #of_cuda : #of_hip;
  WL_GPU_FUNCTIONS(WL_NAME)
#undef WL_NAME
  return names;
}

// Texts with one part per kernel: the declaration of its code and its row in kCode (C++), the assembly that includes
// its code, and the list of its files (CMake).
struct Code {
  std::string declared, rows, assembly, listed;
};

Code code_of(const ExportBuilder& builder) {
  Code out;
  for (size_t i = 0; i < builder.program().kernels.size(); ++i) {
    const ProgramKernel& kernel = builder.program().kernels[i];
    const std::string &entry = kernel.source.entry, source = source_path(kernel), object = object_path(kernel);
    const std::string file = object.substr(object.rfind('/') + 1);
    append(&out.declared, "extern const unsigned char ", entry, "_code[];\n");
    append(&out.rows, "    {", entry, "_code, \"", entry, "\", ", kernel.source.scratch_bytes, "},\n");
    append(&out.assembly, "  .balign 64\n  .globl ", entry, "_code\n  .hidden ", entry, "_code\n", entry,
           "_code:\n  .incbin \"", file, "\"\n");
    append(&out.listed, "\n    ", source, "|", builder.header_of(i), "|", file);
  }
  return out;
}

}  // namespace

absl::StatusOr<ExportedFiles> exported_for_gpu(ExportBuilder builder) {
  const std::string& target = builder.program().target;
  const size_t colon = target.find(':');
  const auto* family = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                    [&](const Family& row) { return target.substr(0, colon) == row.name; });
  WL_CHECK(family != std::end(kFamilies), "no GPU family of ", target);
  const bool cuda = family == std::begin(kFamilies);
  WL_RETURN_IF_ERROR(builder.add_kernels(false));
  const Code code = code_of(builder);
  const std::string& name = builder.options().name;
  std::map<std::string, std::string> more = functions(cuda);
  more.insert({{"@DRIVER@", family->driver},
               {"@LIBRARIES@", cat("\"", absl::StrJoin(family->libraries, "\", \""), "\"")},
               {"@STREAM@", family->stream},
               {"@NEEDS@", family->needs},
               {"@ARCHITECTURE@", target.substr(colon + 1)},
               {"@ERROR_NAME@", family->error_name},
               {"@ALLOW_SHARED@", family->shared},
               {"@DECLARED@", code.declared},
               {"@CODE@", code.rows},
               {"@ASSEMBLY@", code.assembly},
               {"@STEPS@", builder.steps([](int kernel) { return cat(kernel); })},
               {"@KERNELS@", code.listed},
               {"@COMPILER@", family->cmake},
               {"@COMMANDS@", family->commands}});
  builder.add_filled(cat(name, ".h"), "gpu_model.h", more);
  builder.add_filled(cat(name, ".cpp"), "gpu_model.cpp", more);
  builder.add_filled("driver.h", "driver.h", more);
  builder.add_filled("library.h", "library.h", more);
  builder.add_filled("code.S", "code.S", more);
  builder.add_filled("CMakeLists.txt", "gpu_CMakeLists.txt", more);
  if (cuda) builder.add_filled("compile_kernel.cpp", "compile_kernel.cpp", more);
  builder.add_filled("README.md", "gpu_README.md", more);
  builder.add_filled("test/session.h", "gpu_session.h", more);
  return builder.finish();
}

}  // namespace wl
