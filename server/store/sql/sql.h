// SQLite connections for the store: each statement is prepared once for its text, arguments and columns have types, and
// errors are a Status that says which file is concerned and what to do.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
  struct OpenOptions {
    int flags = SQLITE_OPEN_READWRITE;
    std::string vfs = {};                                  // name of the sqlite3_vfs to use; empty: the default one
    std::function<void(const char*)> statement_hook = {};  // for tests: runs before every statement and script
  };
  // Opens a connection, which one thread may use at a time. Errors are those of error().
  static absl::StatusOr<std::unique_ptr<Sql>> open(const std::string& file, const OpenOptions& options);
  ~Sql();
  Sql(const Sql&) = delete;
  Sql& operator=(const Sql&) = delete;

  class Row {
   public:
    explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
    int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
    double real(int column) const { return sqlite3_column_double(statement_, column); }
    bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
    std::string text(int column) const;  // returns the value of a column of type TEXT or BLOB

   private:
    sqlite3_stmt* statement_;
  };

  // Runs a statement and calls `visit` for every row until `visit` returns false.
  template <typename... Args>
  absl::Status each(const char* text, const std::function<bool(const Row&)>& visit, const Args&... args) {
    WL_ASSIGN_OR_RETURN(sqlite3_stmt * statement, prepare(text));
    int at = 0, code = SQLITE_OK;
    ((code == SQLITE_OK ? code = bind(statement, ++at, args) : code), ...);
    return step_all(statement, code, visit);
  }
  // Runs a statement that returns no rows.
  template <typename... Args>
  absl::Status run(const char* text, const Args&... args) {
    return each(
        text, [](const Row&) { return false; }, args...);
  }
  // Runs a statement and returns the integer in the first column of its only row. NotFound: there is no row.
  template <typename... Args>
  absl::StatusOr<int64_t> number(const char* text, const Args&... args) {
    std::optional<int64_t> value;
    WL_RETURN_IF_ERROR(each(
        text,
        [&](const Row& row) {
          value = row.integer(0);
          return false;
        },
        args...));
    if (!value) return absl::NotFoundError(cat("store ", file_, ": no row for \"", text, "\""));
    return *value;
  }
  // Runs a statement that returns no rows, with a value for each '?'.
  absl::Status run_with(const char* text, const std::vector<SqlValue>& values);
  // Runs several statements without arguments, such as a schema or pragmas.
  absl::Status script(std::string_view text);
  int64_t changes() const { return sqlite3_changes64(connection_); }
  int64_t last_id() const { return sqlite3_last_insert_rowid(connection_); }
  sqlite3* connection() const { return connection_; }
  // Returns the last failure of the connection as a Status. `doing`: what failed, for the message.
  absl::Status error(std::string_view doing);
  // Returns the extended SQLite code of the last error() since clear_failure(); SQLITE_OK if there was none.
  int failure() const { return failure_; }
  void clear_failure() { failure_ = SQLITE_OK; }

 private:
  Sql(sqlite3* connection, std::string file, std::function<void(const char*)> statement_hook);
  absl::StatusOr<sqlite3_stmt*> prepare(const char* text);
  // Runs a statement to which its arguments were bound. `bound`: the SQLite code that the bind calls returned.
  absl::Status step_all(sqlite3_stmt* statement, int bound, const std::function<bool(const Row&)>& visit);

  static int bind(sqlite3_stmt* s, int at, const std::string& v) {
    return sqlite3_bind_text64(s, at, v.data(), v.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  static int bind(sqlite3_stmt* s, int at, const Blob& v) {
    return sqlite3_bind_blob64(s, at, v.bytes.data() ? v.bytes.data() : "", v.bytes.size(), SQLITE_STATIC);
  }
  static int bind(sqlite3_stmt* s, int at, std::monostate) { return sqlite3_bind_null(s, at); }
  static int bind(sqlite3_stmt* s, int at, const SqlBytes& v) { return bind(s, at, Blob{v.bytes}); }
  template <typename T>
  static int bind(sqlite3_stmt* s, int at, const std::optional<T>& v) {
    return v ? bind(s, at, *v) : sqlite3_bind_null(s, at);
  }
  template <typename T>
  requires std::is_arithmetic_v<T>
  static int bind(sqlite3_stmt* s, int at, const T& v) {
    if constexpr (std::is_floating_point_v<T>) {
      return sqlite3_bind_double(s, at, v);
    } else {
      return sqlite3_bind_int64(s, at, static_cast<int64_t>(v));
    }
  }

  sqlite3* connection_;
  std::string file_;
  std::function<void(const char*)> hook_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  int failure_ = SQLITE_OK;
};

}  // namespace wl
