#include "server/store/store.h"

#include <chrono>
#include <filesystem>

#include "server/store/impl.h"
#include "server/store/migrate.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

constexpr int kReaders = 4;

absl::Status look_for_damage(Sql& sql, const std::string& file) {
  std::string found;
  WL_RETURN_IF_ERROR(sql.each("PRAGMA quick_check(1)", [&](const Sql::Row& row) {
    found = row.text(0);
    return false;
  }));
  if (found == "ok") return absl::OkStatus();
  return absl::DataLossError(cat("store ", file, ": is damaged: ", found, "; restore a backup"));
}

void checkpoint_on_close(Sql& sql, bool enabled) {
  sqlite3_db_config(sql.connection(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, enabled ? 0 : 1, nullptr);
}

}  // namespace

std::string objects_of(const std::string& file) {
  return file + ".objects";
}

int64_t unix_ms_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

absl::StatusOr<std::unique_ptr<Sql>> Store::Impl::connect_writer() {
  WL_ASSIGN_OR_RETURN(
      std::unique_ptr<Sql> sql,
      Sql::open(file, {.flags = SQLITE_OPEN_READWRITE, .vfs = options.vfs, .statement_hook = options.at_point}));
  if (sqlite3_db_readonly(sql->connection(), "main") == 1) {
    return absl::PermissionDeniedError(
        cat("store ", file, ": is not writable; change its permissions or name another store"));
  }
  checkpoint_on_close(*sql, false);  // migrate() may refuse the file, which must then not be changed by a checkpoint
  WL_RETURN_IF_ERROR(
      sql->script("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON; "
                  "PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = 0"));
  WL_RETURN_IF_ERROR(migrate(*sql, file));
  checkpoint_on_close(*sql, true);
  WL_RETURN_IF_ERROR(sql->script("PRAGMA journal_mode = WAL"));
  if (options.max_pages > 0) WL_RETURN_IF_ERROR(sql->script(cat("PRAGMA max_page_count = ", options.max_pages)));
  return sql;
}

absl::Status Store::Impl::open() {
  WL_ASSIGN_OR_RETURN(file, real_file(options.file));
  lock.emplace(file, options.in_turn);
  WL_RETURN_IF_ERROR(lock->take_name());
  if (is_empty_file(file)) WL_RETURN_IF_ERROR(make_store_file(file, {.vfs = options.vfs}));
  WL_RETURN_IF_ERROR(lock->take_file());
  WL_RETURN_IF_ERROR(lock->check_header(schema_version()));
  unclean = std::filesystem::exists(file + "-wal");  // a log exists only if the store was not closed cleanly
  checked = options.quick_check && unclean;
  WL_ASSIGN_OR_RETURN(std::unique_ptr<Sql> writing, connect_writer());
  if (checked) WL_RETURN_IF_ERROR(look_for_damage(*writing, file));
  objects = std::make_unique<ObjectFolder>(objects_of(file), options.at_point, file_calls());
  WL_RETURN_IF_ERROR(objects->open());
  WL_RETURN_IF_ERROR(move_blobs(*writing));
  if (options.max_object_bytes > 0) {
    WL_ASSIGN_OR_RETURN(object_bytes, writing->number("SELECT coalesce(sum(size), 0) FROM objects"));
  }
  std::vector<std::unique_ptr<Sql>> reading(kReaders);
  for (std::unique_ptr<Sql>& each : reading) {
    WL_ASSIGN_OR_RETURN(each, Sql::open(file, {.flags = SQLITE_OPEN_READONLY, .vfs = options.vfs}));
  }
  readers = std::make_unique<StoreReaders>(std::move(reading));
  writer =
      std::make_unique<StoreWriter>(std::move(writing), file, StoreWriter::Hooks{options.at_point, options.on_broken});
  return absl::OkStatus();
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Store::~Store() {
  close();
}

absl::StatusOr<std::unique_ptr<Store>> Store::open(const StoreOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  WL_RETURN_IF_ERROR(impl->open());
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

void Store::Impl::note_damage(const std::string& what) {
  // The first kLogged cases of damage are all logged; after them, only those at which the number of cases has doubled.
  constexpr int64_t kLogged = 10;
  const int64_t count = ++damaged;
  if (count <= kLogged || (count & (count - 1)) == 0) {
    spdlog::error("store {}: {}; it counts as missing (damage {} since the start)", file, what, count);
  }
}

absl::Status Store::Impl::store_used() {
  const std::set<int64_t> ids = used_records.take();
  if (ids.empty()) return absl::OkStatus();
  const int64_t now = unix_ms_now();
  return writer->write([&](Sql& sql) -> absl::Status {
    for (const int64_t id : ids) WL_RETURN_IF_ERROR(sql.run("UPDATE records SET used_ms = ? WHERE id = ?", now, id));
    return absl::OkStatus();
  });
}

void Store::close() {
  impl_->readers->close();
  (void)impl_->store_used();  // if storing the times of last use fails, only the order of later evictions changes
  impl_->writer->close();
}

absl::Status Store::write(const std::function<absl::Status(Sql&)>& work) {
  return impl_->writer->write(work);
}

absl::Status Store::read(const std::function<absl::Status(Sql&)>& work) {
  WL_RETURN_IF_ERROR(impl_->writer->broken());
  return impl_->readers->read(work);
}

const std::string& Store::file() const {
  return impl_->options.file;
}
StoreStats Store::stats() const {
  const StoreWriter::Stats of = impl_->writer->stats();
  return {of.queued,    of.writes,      of.transactions, of.checkpoints, of.unfinished_checkpoints,
          of.wal_bytes, impl_->damaged, impl_->unclean,  impl_->checked, !impl_->writer->broken().ok()};
}
int64_t Store::schema_version() {
  return static_cast<int64_t>(schema_migrations().size());
}
std::string Store::sqlite_version() {
  return sqlite3_libversion();
}

}  // namespace wl
