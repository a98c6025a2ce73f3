// The limits of every field of the protocol: how long a text may be and which characters it may have, how many items a
// list may have, and the range of a number. One set of tables (limits.cpp) applies to requests, to answers and to what
// a store keeps. A field without a row has the limits kMostName and kMostItems. An integer without a row may have any
// value; a floating-point number without a row must not be negative or NaN, unless its values are data (kAnyNumber).
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace wl {

// Maximum length in bytes of a name, such as a label, a buffer's name or an environment.
inline constexpr size_t kMostName = 1024;
// Maximum length in bytes of a message of a compiler, a kernel or an error.
inline constexpr size_t kMostMessage = 16 << 10;
inline constexpr size_t kMostPlan = 256 << 10;  // maximum length in bytes of a plan
inline constexpr size_t kMostGraph = 16 << 20;  // maximum length in bytes of a graph's text
inline constexpr size_t kMostItems = 4096;      // maximum number of items of a list
// A page of a list ends once its items have this size in bytes. One more item, of any permitted size, then still fits
// into the message.
inline constexpr size_t kMostPageBytes = 24 << 20;
inline constexpr int64_t kMostInspection = 128 << 20;  // maximum size in bytes of all parts of an answer to Inspect

// Checks every field of a message, and of the messages in it. InvalidArgument: a value is not within its field's
// limits. The error names the field, what was expected and what was found: "message field Source.entry: expected a C
// identifier of at most 128 bytes, found \"../../x\"". Thread-safe.
absl::Status check_fields(const google::protobuf::Message& message);

}  // namespace wl
