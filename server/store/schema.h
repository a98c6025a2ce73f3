// The migrations of schema/, embedded at build in the order of their numbers: schema/0001_*.sql makes version 1.
// Forward only: to change the schema, add a file with the next number.
#pragma once

#include <span>
#include <string_view>

namespace wl {

std::span<const std::string_view> schema_migrations();

}  // namespace wl
