// Libraries of kernels that candidates may call where a job allows it (docs/decisions/0041-libraries-compete.md). They
// are opened at run time; nothing of Warploom is linked to one.
#pragma once

#include <string>
#include <string_view>

namespace wl {

struct Library {
  std::string_view name;     // as in --libraries, in plans ("class=onednn") and in Device::libraries ("onednn=2.6.3")
  std::string_view file;     // what is opened
  std::string_view package;  // the Debian package that has it
};

inline constexpr Library kLibraries[] = {{"onednn", "libdnnl.so.2", "libdnnl2"}};
inline constexpr std::string_view kNoLibraries = "none";  // of --libraries

// Null: there is no such library.
inline const Library* library_named(std::string_view name) {
  for (const Library& row : kLibraries)
    if (row.name == name) return &row;
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
