// Statuses of the C library, and the wall that no exception passes.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "client/c/warploom.h"

struct warploom_status {  // NOLINT(readability-identifier-naming): a name of C
  warploom_code code;
  std::string message;
};

namespace wl {

// NULL for OK. When there is no memory for a status, one that is never freed.
warploom_status* to_c(const absl::Status& status) noexcept;

// What `body`, which returns an absl::Status, returns or throws.
template <typename Body>
warploom_status* guarded(const Body& body) noexcept {
  try {
    return to_c(body());
  } catch (const std::bad_alloc&) {
    return to_c(absl::ResourceExhaustedError("memory is short"));
  } catch (const std::exception& error) {
    return to_c(absl::InternalError(error.what()));
  } catch (...) {
    return to_c(absl::InternalError("an unknown error"));
  }
}

}  // namespace wl
