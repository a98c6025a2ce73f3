// Libraries of kernels that candidates may call where a job allows it (docs/decisions/0041-libraries-compete.md and
// 0072). They are opened at run time; nothing of Warploom is linked to one.
#pragma once

#include <string>
#include <string_view>

namespace wl {

struct Library {
  std::string_view name;     // as in --libraries, in plans ("class=onednn") and in Device::libraries ("onednn=2.6.3")
  std::string_view family;   // of the targets whose kernels call it: "cpu", "cuda" or "hip"
  const char* files[3];      // what is opened: the first that is there; null: no more
  std::string_view package;  // what has it, as in "install ..."
};

inline constexpr Library kLibraries[] = {
    {"onednn", "cpu", {"libdnnl.so.2"}, "the Debian package libdnnl2"},
    {"cublaslt", "cuda", {"libcublasLt.so.13", "libcublasLt.so.12"}, "cuBLAS of NVIDIA's CUDA toolkit, 12 or 13"},
    {"hipblaslt",
     "hip",
     {"libhipblaslt.so.1", "libhipblaslt.so.0", "/opt/rocm/lib/libhipblaslt.so"},
     "hipBLASLt of AMD's ROCm, 6 or 7"},
};
inline constexpr std::string_view kNoLibraries = "none";  // of --libraries

// Null: there is no such library.
inline const Library* library_named(std::string_view name) {
  for (const Library& row : kLibraries)
    if (row.name == name) return &row;
  return nullptr;
}
// Null: there is none for the targets of a family.
inline const Library* library_for(std::string_view family) {
  for (const Library& row : kLibraries)
    if (row.family == family) return &row;
  return nullptr;
}
// The library's name in "onednn=2.6.3".
inline std::string library_in(std::string_view versioned) {
  return std::string(versioned.substr(0, versioned.find('=')));
}

// The library that the kernel of a plan calls; null: it is a generated kernel.
inline const Library* library_of_plan(std::string_view plan) {
  for (const Library& row : kLibraries)
    if (plan.find(" class=" + std::string(row.name) + " ") != std::string_view::npos) return &row;
  return nullptr;
}

}  // namespace wl
