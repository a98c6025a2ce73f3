#include "server/store/migrate.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "server/store/disk.h"

namespace wl {
namespace {

absl::Status fill(const std::string& file, const Sql::OpenOptions& options) {
  WL_ASSIGN_OR_RETURN(std::unique_ptr<Sql> sql, Sql::open(file, options));
  // Weak journalling and no syncing are safe here, because the file is discarded after an error and is synced as a
  // whole afterwards.
  WL_RETURN_IF_ERROR(sql->script("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF"));
  WL_RETURN_IF_ERROR(migrate(*sql, file));
  return sql->script("PRAGMA journal_mode = WAL");
}

}  // namespace

absl::StatusOr<int64_t> check_format(Sql& sql, const std::string& file) {
  WL_ASSIGN_OR_RETURN(const int64_t application, sql.number("PRAGMA application_id"));
  WL_ASSIGN_OR_RETURN(const int64_t version, sql.number("PRAGMA user_version"));
  WL_ASSIGN_OR_RETURN(const int64_t tables, sql.number("SELECT count(*) FROM sqlite_schema"));
  if (application != kApplicationId && (tables != 0 || application != 0)) return foreign_file(file);
  const auto newest = static_cast<int64_t>(schema_migrations().size());
  return version > newest ? absl::StatusOr<int64_t>(newer_file(file, version, newest)) : version;
}

absl::Status migrate(Sql& sql, const std::string& file) {
  const auto newest = static_cast<int64_t>(schema_migrations().size());
  WL_ASSIGN_OR_RETURN(int64_t version, check_format(sql, file));
  while (version < newest) {
    absl::Status done = sql.script("BEGIN IMMEDIATE");
    if (done.ok()) done = sql.script(schema_migrations()[static_cast<size_t>(version)]);
    ++version;
    if (done.ok()) {
      done = sql.script(cat("PRAGMA application_id = ", kApplicationId, "; PRAGMA user_version = ", version));
    }
    if (done.ok()) done = sql.script("COMMIT");
    if (!done.ok()) {
      (void)sql.script("ROLLBACK");
      return done;
    }
  }
  return absl::OkStatus();
}

absl::Status make_store_file(const std::string& file, const Sql::OpenOptions& options) {
  const std::string made = file + ".new";
  for (const char* beside : {"", "-journal", "-wal", "-shm"}) unlink((made + beside).c_str());
  // Only the owner may read the file, which contains the graphs of all teams. SQLite gives files beside it the same
  // permissions.
  if (const int own = open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); own >= 0) close(own);
  Sql::OpenOptions making = options;
  making.flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  WL_RETURN_IF_ERROR(fill(made, making));
  WL_RETURN_IF_ERROR(sync_file(made));
  if (rename(made.c_str(), file.c_str()) != 0) {
    return absl::PermissionDeniedError(cat("store ", file, ": cannot be made: ", std::strerror(errno),
                                           "; make its folder writable or name another store"));
  }
  return sync_folder(std::filesystem::path(file).parent_path().string());
}

}  // namespace wl
