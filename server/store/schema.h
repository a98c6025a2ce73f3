// The migrations of schema/, embedded at build. Forward only: to change the schema, add a file, its line in
// CMakeLists.txt and its row in kMigrations (store.cpp).
#pragma once

#include <string_view>

namespace wl {

std::string_view schema_0001();
std::string_view schema_0002();
std::string_view schema_0003();

}  // namespace wl
