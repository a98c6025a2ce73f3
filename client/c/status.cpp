#include "client/c/status.h"

#include "runtime/cpu_identity.h"

namespace wl {
namespace {

warploom_status& no_memory() {
  static auto* const kStatus = new warploom_status{WARPLOOM_RESOURCE_EXHAUSTED, "memory is short"};
  return *kStatus;
}

// The status for lack of memory. It is created when the library is loaded, since later there may be no memory for it.
const warploom_status& kNoMemory = no_memory();

// Converts an absl code to the C library's; a code that the header does not name becomes WARPLOOM_INTERNAL.
warploom_code code_of(absl::StatusCode code) {
  switch (static_cast<warploom_code>(code)) {
    case WARPLOOM_OK:
    case WARPLOOM_CANCELLED:
    case WARPLOOM_INVALID_ARGUMENT:
    case WARPLOOM_DEADLINE_EXCEEDED:
    case WARPLOOM_NOT_FOUND:
    case WARPLOOM_PERMISSION_DENIED:
    case WARPLOOM_RESOURCE_EXHAUSTED:
    case WARPLOOM_FAILED_PRECONDITION:
    case WARPLOOM_OUT_OF_RANGE:
    case WARPLOOM_UNIMPLEMENTED:
    case WARPLOOM_INTERNAL:
    case WARPLOOM_UNAVAILABLE:
    case WARPLOOM_DATA_LOSS:
    case WARPLOOM_UNAUTHENTICATED:
      return static_cast<warploom_code>(code);
  }
  return WARPLOOM_INTERNAL;
}

}  // namespace

warploom_status* to_c(const absl::Status& status) noexcept {
  if (status.ok()) return nullptr;
  try {
    return new warploom_status{code_of(status.code()), std::string(status.message())};
  } catch (...) {
    return &no_memory();
  }
}

}  // namespace wl

extern "C" {

const char* warploom_version(void) {
  return WARPLOOM_VERSION;
}

const char* warploom_cpu(void) {
  return wl::cpu_identity().c_str();
}

warploom_code warploom_status_code(const warploom_status* status) {
  return status == nullptr ? WARPLOOM_OK : status->code;
}

const char* warploom_status_message(const warploom_status* status) {
  return status == nullptr ? "" : status->message.c_str();
}

void warploom_status_free(warploom_status* status) {
  if (status != &wl::kNoMemory) delete status;
}

}  // extern "C"
