// Errors. A mistake of a user or an illegal plan is reported by an absl::Status, which says what was expected, what was
// found, where, and what to do. A broken invariant of the program fails a WL_CHECK, which prints the node or
// instruction and aborts. Neither is used for the other purpose, and no exception leaves the folder (library) that
// threw it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace wl {

// cat() and append() do what absl::StrCat and absl::StrAppend do, but also accept std::string_view, which the functions
// of Debian's absl do not.
template <typename T>
const T& catable(const T& value) {
  return value;
}
inline absl::string_view catable(const std::string_view& value) {
  return {value.data(), value.size()};
}
template <typename... Args>
[[nodiscard]] std::string cat(const Args&... args) {
  return absl::StrCat(catable(args)...);
}
template <typename... Args>
void append(std::string* out, const Args&... args) {
  absl::StrAppend(out, catable(args)...);
}

[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view detail);

template <typename... Args>
[[nodiscard]] absl::Status invalid(const Args&... args) {
  return absl::InvalidArgumentError(cat(args...));
}
template <typename... Args>
[[nodiscard]] absl::Status unimplemented(const Args&... args) {
  return absl::UnimplementedError(cat(args...));
}

}  // namespace wl

#define WL_CHECK(condition, ...)                                                                  \
  do {                                                                                            \
    if (!(condition)) ::wl::check_failed(__FILE__, __LINE__, #condition, ::wl::cat(__VA_ARGS__)); \
  } while (0)

#define WL_RETURN_IF_ERROR(expression)                                                 \
  do {                                                                                 \
    if (::absl::Status wl_status_ = (expression); !wl_status_.ok()) return wl_status_; \
  } while (0)

#define WL_CONCAT_(a, b) a##b
#define WL_CONCAT(a, b) WL_CONCAT_(a, b)
// WL_ASSIGN_OR_RETURN(auto x, f()) sets x to the value of f(), or returns the error of f() from the enclosing function.
#define WL_ASSIGN_OR_RETURN(lhs, expression) WL_ASSIGN_OR_RETURN_(WL_CONCAT(wl_or_, __LINE__), lhs, expression)
#define WL_ASSIGN_OR_RETURN_(temporary, lhs, expression) \
  auto temporary = (expression);                         \
  if (!temporary.ok()) return temporary.status();        \
  lhs = std::move(temporary).value()
