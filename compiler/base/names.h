// What names and texts that come from elsewhere may look like: over the wire, out of a store, out of a manifest. They
// are checked where a message or a file becomes a record (proto/limits.h, client/program/manifest.h) and nowhere else,
// so that whoever has a record may use a name in a path or print it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/base/status.h"

namespace wl {

enum class TextKind : uint8_t {
  kIdentifier,  // an identifier of C: ASCII letters, digits and '_', no digit first
  kDigest,      // a SHA-256: 64 hexadecimal digits in lower case
  kWord,        // ASCII letters, digits and "_.:+-/": targets, compilers, strategies, ids
  kPath,        // a relative path of ASCII letters, digits and "_.-", no part of which begins with '.'
  kName,        // UTF-8 without control characters: devices, workers, buffers, labels
  kTrace,       // a trace id (proto/trace.h): 32 hexadecimal digits in lower case that are not all 0
  kText,        // anything without NUL: plans, graphs, sources, messages (messages of the wire are UTF-8 anyway)
};

// Checks a text of at most `most` bytes. InvalidArgument: "FIELD: expected a C identifier of at most 128 bytes, found
// \"../../x\"". Identifiers, digests, paths and trace ids are never empty; words, names and texts may be.
absl::Status check_text(std::string_view field, std::string_view value, TextKind kind, size_t most);

// Returns a text of kind kName or kText in UTF-8 with at most `most` bytes: '?' for every byte and character that is
// not allowed, cut where a character begins.
std::string fitted(std::string_view text, TextKind kind, size_t most);

}  // namespace wl
