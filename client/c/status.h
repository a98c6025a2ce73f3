// The statuses of the C library, and guarded(), which turns every C++ exception into one of them.
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

// Converts a status to a C status that the caller frees; NULL for OK. If there is no memory for the C status, returns a
// static RESOURCE_EXHAUSTED status, which warploom_status_free() leaves alone.
warploom_status* to_c(const absl::Status& status) noexcept;

// Calls `body` and returns its absl::Status, or what it throws, as a C status: RESOURCE_EXHAUSTED for std::bad_alloc,
// otherwise INTERNAL.
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
