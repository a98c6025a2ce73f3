// SQLite for the files of the store: statements that are prepared once by their text, typed binding and columns, and
// errors as Status that say which file and what to do.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "compiler/base/status.h"

namespace wl {

struct Blob {
  std::string_view bytes;
};

// A value that owns its bytes: NULL, INTEGER, REAL, TEXT or BLOB.
struct SqlBytes {
  std::string bytes;
};
using SqlValue = std::variant<std::monostate, int64_t, double, std::string, SqlBytes>;

class Sql {
 public:
  // Owns `connection`. `statement_hook`, if set, runs before every statement: tests die there.
  Sql(sqlite3* connection, std::string file, std::function<void(const char*)> statement_hook = {});
  ~Sql();
  Sql(const Sql&) = delete;
  Sql& operator=(const Sql&) = delete;

  class Row {
   public:
    explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
    int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
    double real(int column) const { return sqlite3_column_double(statement_, column); }
    bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
    std::string text(int column) const;  // of a TEXT or BLOB column

   private:
    sqlite3_stmt* statement_;
  };

  // Runs a statement, calling visit for every row until it returns false.
  template <typename... Args>
  absl::Status each(const char* text, const std::function<bool(const Row&)>& visit, const Args&... args) {
    WL_ASSIGN_OR_RETURN(sqlite3_stmt * statement, prepare(text));
    int at = 0;
    (bind(statement, ++at, args), ...);
    return step_all(statement, visit);
  }
  // The same for statements without rows.
  template <typename... Args>
  absl::Status run(const char* text, const Args&... args) {
    return each(
        text, [](const Row&) { return false; }, args...);
  }
  // The same with as many values as there are marks.
  absl::Status run_with(const char* text, const std::vector<SqlValue>& values);
  // Several statements without arguments: schema, pragmas.
  absl::Status script(std::string_view text);
  int64_t changes() const { return sqlite3_changes64(connection_); }
  int64_t last_id() const { return sqlite3_last_insert_rowid(connection_); }
  sqlite3* connection() const { return connection_; }
  // What the last failure of the connection means.
  absl::Status error(std::string_view doing) const;

 private:
  absl::StatusOr<sqlite3_stmt*> prepare(const char* text);
  absl::Status step_all(sqlite3_stmt* statement, const std::function<bool(const Row&)>& visit);

  static void bind(sqlite3_stmt* s, int at, const std::string& v) {
    sqlite3_bind_text(s, at, v.data(), static_cast<int>(v.size()), SQLITE_STATIC);
  }
  static void bind(sqlite3_stmt* s, int at, const Blob& v) {
    sqlite3_bind_blob64(s, at, v.bytes.data() ? v.bytes.data() : "", v.bytes.size(), SQLITE_STATIC);
  }
  static void bind(sqlite3_stmt* s, int at, std::monostate) { sqlite3_bind_null(s, at); }
  static void bind(sqlite3_stmt* s, int at, const SqlBytes& v) { bind(s, at, Blob{v.bytes}); }
  template <typename T>
  static void bind(sqlite3_stmt* s, int at, const std::optional<T>& v) {
    if (v) {
      bind(s, at, *v);
    } else {
      sqlite3_bind_null(s, at);
    }
  }
  template <typename T>
  requires std::is_arithmetic_v<T>
  static void bind(sqlite3_stmt* s, int at, const T& v) {
    if constexpr (std::is_floating_point_v<T>) {
      sqlite3_bind_double(s, at, v);
    } else {
      sqlite3_bind_int64(s, at, static_cast<int64_t>(v));
    }
  }

  sqlite3* connection_;
  std::string file_;
  std::function<void(const char*)> hook_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

}  // namespace wl
