#include "proto/trace.h"

#include <random>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "compiler/base/names.h"

namespace wl {
namespace {

bool has_hex_digits(const std::string& text, size_t digits) {
  return text.size() == digits && is_hexadecimal(text);
}

// Whether `parts`, the parts of a text between its dashes, form a `traceparent`. A `traceparent` of a version after 00
// may have more than four parts.
bool is_traceparent(const std::vector<std::string>& parts) {
  if (parts.size() < 4 || !has_hex_digits(parts[0], 2) || parts[0] == "ff" || (parts[0] == "00" && parts.size() != 4))
    return false;
  return has_hex_digits(parts[2], 16) && parts[2].find_first_not_of('0') != std::string::npos &&
         has_hex_digits(parts[3], 2);
}

}  // namespace

std::string new_trace() {
  std::random_device device;
  std::string trace;
  do {
    trace = absl::StrFormat("%08x%08x%08x%08x", device(), device(), device(), device());
  } while (!check_text("", trace, TextKind::kTrace, kTraceDigits).ok());
  return trace;
}

absl::StatusOr<std::string> parse_trace(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '-');
  const std::string& trace = parts.size() > 1 ? parts[1] : parts[0];
  const absl::Status status = check_text("trace", trace, TextKind::kTrace, kTraceDigits);
  if (status.ok() && (parts.size() == 1 || is_traceparent(parts))) return trace;
  WL_RETURN_IF_ERROR(check_text("trace", text, TextKind::kTrace, kTraceDigits));
  return status;
}

}  // namespace wl
