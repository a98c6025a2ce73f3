// Makes backups of a store that is in use, and restores a store from a backup.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "files/read.h"
#include "server/store/impl.h"
#include "server/store/migrate.h"
#include "server/store/sql/functions.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

absl::Status file_error(const std::string& file, const std::string& what, int error) {
  const std::string text = cat(file, ": ", what, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(cat(text, "; free space on that disk"));
  if (error == EIO) return absl::InternalError(cat(text, "; check that disk"));
  return absl::PermissionDeniedError(cat(text, "; check the name and the permissions of its folder"));
}

absl::Status rename_file(const std::string& from, const std::string& to, const FileCalls& calls = system_calls()) {
  if (calls.rename(from, to) != 0) return file_error(to, "cannot be named", errno);
  return sync_folder(fs::absolute(to).parent_path().string(), calls);
}

// Checks a whole database, including that every row to which another row refers exists. DataLoss: the database is
// damaged.
absl::Status check_all(Sql& sql, const std::string& file) {
  std::string found;
  WL_RETURN_IF_ERROR(sql.each("PRAGMA integrity_check(1)", [&](const Sql::Row& row) {
    found = row.text(0);
    return false;
  }));
  if (found == "ok") {
    WL_RETURN_IF_ERROR(sql.each("PRAGMA foreign_key_check", [&](const Sql::Row& row) {
      found = cat("a row of ", row.text(0), " refers to one that is missing");
      return false;
    }));
  }
  return found == "ok" ? absl::OkStatus()
                       : absl::DataLossError(cat("backup ", file, ": is damaged: ", found, "; take another one"));
}

absl::StatusOr<std::vector<std::string>> objects_in(Sql& sql) {
  std::vector<std::string> digests;
  WL_RETURN_IF_ERROR(sql.each("SELECT digest FROM objects ORDER BY digest", [&](const Sql::Row& row) {
    digests.push_back(hex_of(row.text(0)));
    return true;
  }));
  return digests;
}

// Copies the compiled objects that the database lists. An object that is missing or damaged in `from` is left out; a
// kernel without its object is tuned again when it is needed.
absl::Status take_objects(Sql& sql, const ObjectFolder& from, ObjectFolder* to) {
  WL_RETURN_IF_ERROR(to->open());
  WL_ASSIGN_OR_RETURN(const std::vector<std::string> digests, objects_in(sql));
  for (const std::string& digest : digests) {
    const absl::Status taken = to->take(digest, from);
    if (!taken.ok() && !absl::IsNotFound(taken)) return taken;
    if (!taken.ok()) spdlog::warn("{}; it is left out", std::string(taken.message()));
  }
  return absl::OkStatus();
}

void remove_with_logs(const std::string& file) {
  for (const char* beside : {"", "-wal", "-shm", "-journal"}) unlink((file + beside).c_str());
}

// Opens a database read-only, on the promise that no process changes it. SQLite then creates no other files beside it.
absl::StatusOr<std::unique_ptr<Sql>> open_still(const std::string& file) {
  std::string name = "file:";
  for (const char c : file) {
    if (c == '?' || c == '#' || c == '%') {
      name += cat("%", hex_of(std::string(1, c)));
    } else {
      name += c;
    }
  }
  return Sql::open(name + "?immutable=1", {.flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI});
}

// Copies a backup to `made`, checks the copy, and copies the backup's objects to `folder`, where some of them may
// exist already.
absl::Status copy_checked(const std::string& backup, const std::string& made, const std::string& folder) {
  constexpr int64_t kFirstWithObjects = 5;
  std::error_code failed;
  fs::copy_file(backup, made, failed);
  if (failed) return file_error(made, "cannot be written", failed.value());
  {
    WL_ASSIGN_OR_RETURN(std::unique_ptr<Sql> sql, open_still(made));
    WL_ASSIGN_OR_RETURN(const int64_t format, check_format(*sql, backup));
    WL_RETURN_IF_ERROR(check_all(*sql, backup));
    ObjectFolder objects(folder);
    if (format >= kFirstWithObjects) WL_RETURN_IF_ERROR(take_objects(*sql, ObjectFolder(objects_of(backup)), &objects));
  }
  return sync_file(made);
}

// Checks the header of a backup, which may have any size, before it is copied. DataLoss: the file is no database.
absl::Status check_is_database(const std::string& name) {
  constexpr std::string_view kMagic("SQLite format 3", 16);
  WL_ASSIGN_OR_RETURN(const RegularFile file, RegularFile::open(name, std::numeric_limits<int64_t>::max()));
  char begin[kMagic.size()];
  if (file.next(begin, sizeof begin) == static_cast<int64_t>(sizeof begin) &&
      std::string_view(begin, sizeof begin) == kMagic)
    return absl::OkStatus();
  return absl::DataLossError(cat("backup ", name, ": is no database; name another one"));
}

}  // namespace

absl::Status Store::backup(const std::string& to) {
  WL_ASSIGN_OR_RETURN(const std::string file, real_file(to, /*of_backup=*/true));
  if (fs::exists(file) || fs::exists(objects_of(file))) {
    return absl::AlreadyExistsError(cat("backup ", to, ": is there already; name another file"));
  }
  // The head of this coordinator (StoreHead) says which of its signed records are valid. The backup contains the head
  // for the case that a coordinator with another signing key starts from the backup.
  WL_ASSIGN_OR_RETURN(const std::optional<StoreHead> own, head());
  if (own) WL_RETURN_IF_ERROR(put_heads({*own}));
  const std::string made = file + ".unfinished";
  remove_with_logs(made);
  // VACUUM INTO writes one snapshot, while the store is being read and written.
  WL_RETURN_IF_ERROR(read([&](Sql& sql) { return sql.run("VACUUM INTO ?", made); }));
  const auto finish = [&]() -> absl::Status {
    {
      WL_ASSIGN_OR_RETURN(std::unique_ptr<Sql> sql, open_still(made));
      WL_RETURN_IF_ERROR(check_all(*sql, to));
      ObjectFolder objects(objects_of(file), {}, impl_->file_calls());
      const std::shared_lock together(impl_->objects_mutex);
      WL_RETURN_IF_ERROR(take_objects(*sql, *impl_->objects, &objects));
    }
    WL_RETURN_IF_ERROR(sync_file(made, impl_->file_calls()));
    return rename_file(made, file, impl_->file_calls());
  };
  absl::Status done = finish();
  if (!done.ok()) {
    std::error_code ignored;
    remove_with_logs(made);
    remove_with_logs(file);  // the file may have got this name although syncing its folder failed
    fs::remove_all(objects_of(file), ignored);
  }
  return done;
}

absl::Status Store::restore(const std::string& from, const std::string& to) {
  WL_ASSIGN_OR_RETURN(const std::string backup, real_file(from, /*of_backup=*/true));
  WL_ASSIGN_OR_RETURN(const std::string file, real_file(to));
  if (backup == file) return invalid("restore: ", from, " is the store itself; name its backup");
  if (is_empty_file(backup)) return absl::NotFoundError(cat("backup ", from, ": is missing; name one"));
  WL_RETURN_IF_ERROR(check_is_database(from));
  if (fs::exists(backup + "-wal")) {
    return absl::FailedPreconditionError(
        cat("backup ", from, ": is a store that was in use, not a backup; open it instead"));
  }
  StoreLock lock(file, /*in_turn=*/false);
  WL_RETURN_IF_ERROR(lock.take_name());
  if (!is_empty_file(file)) WL_RETURN_IF_ERROR(lock.take_file());
  const std::string made = file + ".restored";
  remove_with_logs(made);
  const absl::Status copied = copy_checked(backup, made, objects_of(file));
  if (!copied.ok()) {
    remove_with_logs(made);
    return copied;
  }
  // The log of the replaced store is removed, since SQLite would apply it to the restored file.
  for (const char* beside : {"-wal", "-shm", "-journal"}) unlink((file + beside).c_str());
  WL_RETURN_IF_ERROR(sync_folder(fs::path(file).parent_path().string()));
  return rename_file(made, file);
}

}  // namespace wl
