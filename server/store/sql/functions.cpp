#include "server/store/sql/functions.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "compiler/base/sha256.h"
#include "proto/wire.h"

namespace wl {
namespace {

constexpr char kRow[] = "warploom.row";
constexpr int kRowVersion = 1;

std::string_view bytes_of(sqlite3_value* value) {
  const void* bytes = sqlite3_value_blob(value);
  const auto size = static_cast<size_t>(sqlite3_value_bytes(value));
  return bytes == nullptr ? std::string_view() : std::string_view(static_cast<const char*>(bytes), size);
}

void answer(sqlite3_context* context, std::string_view bytes) {
  sqlite3_result_blob64(context, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_TRANSIENT);
}

void sql_sha256(sqlite3_context* context, int, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) != SQLITE_NULL) answer(context, sha256_bytes(bytes_of(values[0])));
}

void sql_key_bytes(sqlite3_context* context, int, sqlite3_value** values) {
  answer(context, key_bytes(bytes_of(values[0])));
}

void sql_row_digest(sqlite3_context* context, int count, sqlite3_value** values) {
  Encoder all(kRow, kRowVersion);
  for (int i = 0; i < count; ++i) {
    switch (sqlite3_value_type(values[i])) {
      case SQLITE_INTEGER:
        all.integer(sqlite3_value_int64(values[i]));
        break;
      case SQLITE_FLOAT:
        all.real(sqlite3_value_double(values[i]));
        break;
      default:
        all.text(bytes_of(values[i]));
    }
  }
  answer(context, sha256_bytes(all.bytes()));
}

void sql_record_part(sqlite3_context* context, int, sqlite3_value** values) {
  v1::KernelRecord record;
  const std::string_view payload = bytes_of(values[0]), part = bytes_of(values[1]);
  if (!record.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) return;
  if (part == "prelude") return answer(context, record.source().prelude());
  if (part == "source") return answer(context, record.source().text());
  if (part == "object") {
    if (is_sha256(record.object_sha256())) answer(context, key_bytes(record.object_sha256()));
    return;
  }
  if (part == "machine") {
    const std::string name = machine_name(record.device().target(), record.device().name());
    return sqlite3_result_text64(context, name.data(), name.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  record.mutable_source()->clear_prelude();
  record.mutable_source()->clear_text();
  answer(context, record.SerializeAsString());
}

}  // namespace

std::string key_bytes(std::string_view text) {
  return is_sha256(text) ? bytes_of_hex(text) : sha256_bytes(text);
}

std::string row_digest(std::initializer_list<std::string_view> values) {
  Encoder all(kRow, kRowVersion);
  for (const std::string_view value : values) all.text(value);
  return sha256_bytes(all.bytes());
}

std::string hex_of(std::string_view bytes) {
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

std::string machine_name(std::string_view target, std::string_view name) {
  return cat(target, " ", name);
}

bool is_sha256(std::string_view text) {
  constexpr size_t kDigits = 64;
  return text.size() == kDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

void define_functions(sqlite3* connection) {
  struct Function {
    const char* name;
    int arguments;  // number of arguments of the function; -1: any number
    void (*call)(sqlite3_context*, int, sqlite3_value**);
  };
  static constexpr Function kFunctions[] = {{"sha256", 1, &sql_sha256},
                                            {"key_bytes", 1, &sql_key_bytes},
                                            {"row_digest", -1, &sql_row_digest},
                                            {"record_part", 2, &sql_record_part}};
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
  for (const Function& each : kFunctions) {
    sqlite3_create_function_v2(connection, each.name, each.arguments, kFlags, nullptr, each.call, nullptr, nullptr,
                               nullptr);
  }
}

}  // namespace wl
