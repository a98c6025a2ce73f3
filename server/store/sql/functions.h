// Digests as bytes, and SQL functions for statements and migrations. The meaning of these functions never changes,
// because migrations of old stores call them:
//
//   sha256(X)            the 32 bytes of the SHA-256 of the bytes of X; NULL if X is NULL
//   key_bytes(X)         the 32 bytes that 64 hexadecimal digits stand for; for any other text its SHA-256
//   row_digest(X, ...)   the SHA-256 over the values with their types and lengths
//   record_part(X, part) a part of a record's message X: its 'prelude', its 'source', the 32 bytes of its 'object'
//                        (NULL: it has none), the name of its 'machine', or the 'rest', which is the message without
//                        prelude and source. NULL: X cannot be parsed.
#pragma once

#include <sqlite3.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "compiler/base/sha256.h"
#include "compiler/base/status.h"

namespace wl {

std::string key_bytes(std::string_view text);
// Computes the SQL function row_digest for values that are texts or bytes.
std::string row_digest(std::initializer_list<std::string_view> values);
std::string hex_of(std::string_view bytes);
// Whether the text is a SHA-256 as this program writes it: 64 hexadecimal digits in lower case.
bool is_sha256(std::string_view text);

// Returns the name that a machine has in listings of records, which consists of its target and its name.
std::string machine_name(std::string_view target, std::string_view name);

void define_functions(sqlite3* connection);

}  // namespace wl
