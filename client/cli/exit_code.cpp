#include "client/cli/exit_code.h"

#include "compiler/base/status.h"

namespace wl {

int exit_code_of(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kDataLoss:
      return kExitBadInput;
    case absl::StatusCode::kNotFound:
      return kExitNotStored;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitUnreachable;
    case absl::StatusCode::kFailedPrecondition:
      return kExitNoCandidate;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
      return kExitInterrupted;
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kResourceExhausted:
    default:
      return kExitInternal;
  }
}

std::string error_line(const absl::Status& status) {
  return cat("warploom: error: ", status.message());
}

}  // namespace wl
