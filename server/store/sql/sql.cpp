#include "server/store/sql/sql.h"

#include <cerrno>

#include "server/store/sql/functions.h"

namespace wl {

Sql::Sql(sqlite3* connection, std::string file, std::function<void(const char*)> statement_hook)
    : connection_(connection), file_(std::move(file)), hook_(std::move(statement_hook)) {}

absl::StatusOr<std::unique_ptr<Sql>> Sql::open(const std::string& file, const OpenOptions& options) {
  sqlite3* connection = nullptr;
  const int code =
      sqlite3_open_v2(file.c_str(), &connection, options.flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                      options.vfs.empty() ? nullptr : options.vfs.c_str());
  std::unique_ptr<Sql> sql(new Sql(connection, file, options.statement_hook));
  if (code != SQLITE_OK) return sql->error("opening");
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_busy_timeout(connection, 5000);
  define_functions(connection);
  return sql;
}

Sql::~Sql() {
  for (const auto& [text, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(connection_);
}

std::string Sql::Row::text(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), static_cast<size_t>(size));
}

absl::Status Sql::error(std::string_view doing) {
  const int extended = failure_ = sqlite3_extended_errcode(connection_);
  const std::string detail = cat("store ", file_, ": ", doing, ": ", sqlite3_errmsg(connection_));
  // If a full disk keeps the write-ahead log's shared memory from growing, SQLite reports an I/O error, and only errno
  // tells the cause.
  const bool full = extended == SQLITE_IOERR_SHMSIZE ||
                    ((extended & 0xff) == SQLITE_IOERR && sqlite3_system_errno(connection_) == ENOSPC);
  switch (full ? SQLITE_FULL : extended & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          cat(detail, full ? ": the disk is full" : "",
              "; nothing of this step was stored: free space on that disk, then repeat"));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return absl::PermissionDeniedError(
          cat(detail, "; the file and its folder must be writable: change their permissions or name another store"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(cat(detail, "; restore a backup or name another store"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(cat(detail, "; another program has the file open: close it"));
    case SQLITE_TOOBIG:
      return absl::InvalidArgumentError(
          cat(detail, "; a value may have at most ", sqlite3_limit(connection_, SQLITE_LIMIT_LENGTH, -1), " bytes"));
    case SQLITE_CONSTRAINT:
      return absl::AlreadyExistsError(detail);
    default:
      return absl::InternalError(cat(detail, " (SQLite code ", extended, ")"));
  }
}

absl::StatusOr<sqlite3_stmt*> Sql::prepare(const char* text) {
  if (hook_) hook_(text);
  if (auto known = statements_.find(text); known != statements_.end()) return known->second;
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(connection_, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK) {
    return error(cat("preparing \"", text, "\""));
  }
  statements_.emplace(text, statement);
  return statement;
}

absl::Status Sql::step_all(sqlite3_stmt* statement, int bound, const std::function<bool(const Row&)>& visit) {
  absl::Status status = bound == SQLITE_OK ? absl::OkStatus() : error("binding a value");
  while (status.ok()) {
    const int code = sqlite3_step(statement);
    if (code == SQLITE_DONE) break;
    if (code != SQLITE_ROW) {
      status = error("writing or reading");
      break;
    }
    if (!visit(Row(statement))) break;
  }
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return status;
}

absl::Status Sql::run_with(const char* text, const std::vector<SqlValue>& values) {
  WL_ASSIGN_OR_RETURN(sqlite3_stmt * statement, prepare(text));
  int code = SQLITE_OK;
  for (size_t i = 0; code == SQLITE_OK && i < values.size(); ++i)
    code = std::visit([&](const auto& value) { return bind(statement, static_cast<int>(i) + 1, value); }, values[i]);
  return step_all(statement, code, [](const Row&) { return false; });
}

absl::Status Sql::script(std::string_view text) {
  const std::string statements(text);
  if (hook_) hook_(statements.c_str());
  if (sqlite3_exec(connection_, statements.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return error("running a script");
  }
  return absl::OkStatus();
}

}  // namespace wl
