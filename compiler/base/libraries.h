// Libraries of kernels (oneDNN, cuBLASLt, hipBLASLt) that candidate kernels may call if a job allows it
// (docs/design/search.md#libraries-that-compete). They are opened at run time; Warploom is not linked to any of
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wl {

struct Library {
  std::string_view name;     // the library's name in --libraries, in plans (class=onednn) and in Device::libraries
  std::string_view family;   // family of the targets whose kernels may call the library: "cpu", "cuda" or "hip"
  const char* files[3];      // names of the shared object, of which the first that exists is opened; null ends the list
  std::string_view package;  // the package that contains the library, as a message "install ..." names it
};

inline constexpr Library kLibraries[] = {
    {"onednn", "cpu", {"libdnnl.so.2"}, "the Debian package libdnnl2"},
    {"cublaslt", "cuda", {"libcublasLt.so.13", "libcublasLt.so.12"}, "cuBLAS of NVIDIA's CUDA toolkit, 12 or 13"},
    {"hipblaslt",
     "hip",
     {"libhipblaslt.so.1", "libhipblaslt.so.0", "/opt/rocm/lib/libhipblaslt.so"},
     "hipBLASLt of AMD's ROCm, 6 or 7"},
};
inline constexpr std::string_view kNoLibraries = "none";  // the value of --libraries that allows no library

// Returns the values that --libraries may have: kNoLibraries and the name of every library.
inline std::vector<std::string> library_choices() {
  std::vector<std::string> names = {std::string(kNoLibraries)};
  for (const Library& row : kLibraries) names.emplace_back(row.name);
  return names;
}

// Returns the library called `name`; null if there is none.
inline const Library* library_named(std::string_view name) {
  for (const Library& row : kLibraries)
    if (row.name == name) return &row;
  return nullptr;
}
// Returns the library that kernels for a family of targets may call; null if there is none.
inline const Library* library_for(std::string_view family) {
  for (const Library& row : kLibraries)
    if (row.family == family) return &row;
  return nullptr;
}
// Returns the name of the library in a text with its version: "onednn" for "onednn=2.6.3".
inline std::string library_in(std::string_view versioned) {
  return std::string(versioned.substr(0, versioned.find('=')));
}

// Returns the library that the kernel of a plan calls; null if the plan is for a generated kernel.
inline const Library* library_of_plan(std::string_view plan) {
  for (const Library& row : kLibraries)
    if (plan.find(" class=" + std::string(row.name) + " ") != std::string_view::npos) return &row;
  return nullptr;
}

}  // namespace wl
