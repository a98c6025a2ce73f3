// Checks of names and texts that come from outside this process: from a message, a store or a manifest. Such texts are
// checked where a message or a file becomes a record (proto/limits.h, client/program/manifest.h) and nowhere else. So
// code that has a record may use the names in it in a path, or print them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/base/status.h"

namespace wl {

// The numbers of hexadecimal digits of a SHA-256 and of a trace id.
inline constexpr size_t kDigestDigits = 64, kTraceDigits = 32;

// Whether all characters are hexadecimal digits in lower case; true for an empty text.
bool is_hexadecimal(std::string_view value);

enum class TextKind : uint8_t {
  kIdentifier,  // an identifier of C: ASCII letters, digits and '_', not starting with a digit
  kDigest,      // a SHA-256: 64 hexadecimal digits in lower case
  kWord,        // ASCII letters, digits and "_.:+-/": targets, compilers, strategies, ids
  kPath,        // a relative path: parts of ASCII letters, digits and "_.-" between '/'; no part begins with '.'
  kName,        // UTF-8 without control characters: devices, workers, buffers, labels
  kTrace,       // a trace id (proto/trace.h): 32 hexadecimal digits in lower case that are not all 0
  kHex,         // hexadecimal digits in lower case: the beginning of a digest
  kText,        // UTF-8 or other bytes without NUL: plans, graphs, sources, messages
};

// Checks that `value` is a text of `kind` and has at most `most` bytes. An InvalidArgument error says: "FIELD: expected
// a C identifier of at most 128 bytes, found \"../../x\"". Identifiers, digests, paths and trace ids must not be empty;
// words, names, beginnings of digests and texts may be.
absl::Status check_text(std::string_view field, std::string_view value, TextKind kind, size_t most);

// Returns `text` made valid for kind kName or kText: every byte or character that is not allowed becomes '?', and the
// text is cut between two characters so that it has at most `most` bytes.
std::string fitted(std::string_view text, TextKind kind, size_t most);

}  // namespace wl
