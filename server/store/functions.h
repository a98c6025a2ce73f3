// What the store computes of values: digests as bytes, and the SQL functions by which statements and migrations use
// them. The functions never change, since migrations of old stores call them:
//
//   sha256(X)            the 32 bytes of the SHA-256 of the bytes of X; NULL of NULL
//   key_bytes(X)         of 64 hexadecimal digits their 32 bytes, of another text its SHA-256
//   row_digest(X, ...)   the SHA-256 over the values with their types and lengths
//   record_part(X, part) of the message of a record: its 'prelude', its 'source', the 32 bytes of its 'object' (NULL:
//                        none), the name of its 'machine', or the 'rest', which is the message without the first two.
//                        NULL: not readable.
#pragma once

#include <sqlite3.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "compiler/base/sha256.h"
#include "compiler/base/status.h"

namespace wl {

std::string key_bytes(std::string_view text);
// As row_digest of values that are text or bytes.
std::string row_digest(std::initializer_list<std::string_view> values);
std::string hex_of(std::string_view bytes);
// Whether the text is a SHA-256 as this project writes it: 64 hexadecimal digits in lower case.
bool is_sha256(std::string_view text);

// What a machine is called where records are listed by machines: its target and its name.
std::string machine_name(std::string_view target, std::string_view name);

void define_functions(sqlite3* connection);

}  // namespace wl
