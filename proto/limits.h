// The limit of every field of the protocol: how long a text may be and what it may consist of, how many items a list
// may have, in which range a number must be. One table (limits.cpp) holds for requests, for answers and for what a
// store keeps. A field without a row has the limits kMostName and kMostItems; numbers without a row have none.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace wl {

inline constexpr size_t kMostName = 1024;         // bytes of a name: a label, a buffer, an environment
inline constexpr size_t kMostMessage = 16 << 10;  // bytes of what a compiler, a kernel or an error says
inline constexpr size_t kMostPlan = 256 << 10;    // bytes of a plan
inline constexpr size_t kMostGraph = 16 << 20;    // bytes of a graph's text
inline constexpr size_t kMostItems = 4096;        // items of a list
inline constexpr size_t kMostPageBytes =
    24 << 20;  // a page of answers ends when it is this long; any one item still fits then
inline constexpr int64_t kMostInspection = 128 << 20;  // bytes of all parts of an answer of Inspect

// Checks every field of a message and of the messages in it. InvalidArgument names the field, what was expected and
// what was found: "message field Source.entry: expected a C identifier of at most 128 bytes, found \"../../x\"". Any
// thread.
absl::Status check_fields(const google::protobuf::Message& message);

}  // namespace wl
