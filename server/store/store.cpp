#include "server/store/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>

#include "server/store/schema.h"
#include "server/store/sql.h"

namespace wl {
namespace {

constexpr int64_t kApplicationId = 0x574c4f4d;  // "WLOM"
constexpr int64_t kWalLimitBytes = 16 << 20;    // the log is checkpointed beyond this size; it may take 64 MiB

// The locks and the shared memory of the write-ahead log do not work on network disks.
bool is_network_disk(const std::string& folder) {
  struct statfs disk = {};
  if (statfs(folder.c_str(), &disk) != 0) return false;
  switch (static_cast<uint32_t>(disk.f_type)) {
    case 0x6969:      // NFS
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x0BD00BD0:  // Lustre
      return true;
  }
  return false;
}

absl::StatusOr<int64_t> number(Sql& sql, const char* text) {
  int64_t value = 0;
  WL_RETURN_IF_ERROR(sql.each(text, [&](const Sql::Row& row) {
    value = row.integer(0);
    return false;
  }));
  return value;
}

absl::StatusOr<std::unique_ptr<Sql>> connect(const std::string& file, int flags,
                                             std::function<void(const char*)> hook = {}) {
  sqlite3* connection = nullptr;
  const int code =
      sqlite3_open_v2(file.c_str(), &connection, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  auto sql = std::make_unique<Sql>(connection, file, std::move(hook));
  if (code != SQLITE_OK) return sql->error("opening");
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_busy_timeout(connection, 5000);
  return sql;
}

absl::Status migrate(Sql& sql, const std::string& file) {
  WL_ASSIGN_OR_RETURN(int64_t application, number(sql, "PRAGMA application_id"));
  WL_ASSIGN_OR_RETURN(int64_t version, number(sql, "PRAGMA user_version"));
  WL_ASSIGN_OR_RETURN(int64_t tables, number(sql, "SELECT count(*) FROM sqlite_schema"));
  if (application != kApplicationId && (tables != 0 || application != 0)) {
    return absl::FailedPreconditionError(cat("store ", file, ": is a database of another program; name another file"));
  }
  const int64_t newest = Store::schema_version();
  if (version > newest) {
    return absl::FailedPreconditionError(cat("store ", file, ": has format ", version, ", this Warploom knows up to ",
                                             newest, "; the file was not changed; use a newer Warploom"));
  }
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

}  // namespace

int64_t unix_ms_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct Store::Impl {
  struct Work {
    const std::function<absl::Status(Sql&)>* run;
    absl::Status status;
    bool done = false;
  };

  StoreOptions options;
  int lock_file = -1;
  std::unique_ptr<Sql> writer, reader;
  std::mutex read_mutex;

  std::mutex mutex;
  std::condition_variable queued, finished;
  std::deque<Work*> queue;
  bool closing = false;
  absl::Status broken;  // set by a failed fsync: whether later writes reach the disk cannot be known
  std::thread thread;

  ~Impl() {
    if (lock_file >= 0) ::close(lock_file);
  }

  void point(const char* name) {
    if (options.at_point) options.at_point(name);
  }

  absl::Status lock();
  absl::Status open();
  void serve();
  void commit(std::vector<Work*>& batch);
};

absl::Status Store::Impl::lock() {
  const std::string path = options.file + ".lock";
  lock_file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_file < 0) {
    return absl::PermissionDeniedError(cat("store ", options.file, ": cannot write ", path, ": ", std::strerror(errno),
                                           "; make its folder writable or name another store"));
  }
  if (flock(lock_file, LOCK_EX | LOCK_NB) != 0) {
    char owner[32] = {};
    const ssize_t read = pread(lock_file, owner, sizeof owner - 1, 0);
    return absl::UnavailableError(cat("store ", options.file, ": is in use by another coordinator",
                                      read > 0 ? cat(" (process ", owner, ")") : std::string(),
                                      "; stop it, connect to it with --server, or name another store"));
  }
  // The number is only for the message above, so a full disk is no error here.
  const std::string pid = cat(getpid());
  if (ftruncate(lock_file, 0) != 0 || pwrite(lock_file, pid.data(), pid.size(), 0) < 0) return absl::OkStatus();
  return absl::OkStatus();
}

absl::Status Store::Impl::open() {
  const std::filesystem::path folder = std::filesystem::absolute(options.file).parent_path();
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    return absl::PermissionDeniedError(cat("store ", options.file, ": cannot make its folder ", folder.string(), ": ",
                                           failed.message(), "; name another store"));
  }
  if (is_network_disk(folder.string())) {
    return absl::FailedPreconditionError(cat("store ", options.file,
                                             ": lies on a network disk, whose locks cannot be relied on; "
                                             "name a file on a local disk"));
  }
  WL_RETURN_IF_ERROR(lock());
  WL_ASSIGN_OR_RETURN(writer, connect(options.file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, options.at_point));
  if (sqlite3_db_readonly(writer->connection(), "main") == 1) {
    return absl::PermissionDeniedError(
        cat("store ", options.file, ": is not writable; change its permissions or name another store"));
  }
  WL_RETURN_IF_ERROR(
      writer->script("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; "
                     "PRAGMA cell_size_check = ON; PRAGMA journal_size_limit = 67108864; "
                     "PRAGMA wal_autocheckpoint = 0"));
  if (options.max_pages > 0) WL_RETURN_IF_ERROR(writer->script(cat("PRAGMA max_page_count = ", options.max_pages)));
  WL_RETURN_IF_ERROR(migrate(*writer, options.file));
  if (options.quick_check) {
    std::string found;
    WL_RETURN_IF_ERROR(writer->each("PRAGMA quick_check(1)", [&](const Sql::Row& row) {
      found = row.text(0);
      return false;
    }));
    if (found != "ok")
      return absl::DataLossError(cat("store ", options.file, ": is damaged: ", found, "; restore a backup"));
  }
  WL_ASSIGN_OR_RETURN(reader, connect(options.file, SQLITE_OPEN_READONLY));
  thread = std::thread([this] { serve(); });
  return absl::OkStatus();
}

// Group commit: all queued work goes into one transaction, each piece in a savepoint of its own.
void Store::Impl::commit(std::vector<Work*>& batch) {
  point("begin");
  absl::Status status = writer->script("BEGIN IMMEDIATE");
  for (Work* work : batch) {
    if (!status.ok()) break;
    status = writer->run("SAVEPOINT work");
    if (!status.ok()) break;
    work->status = (*work->run)(*writer);
    if (!work->status.ok()) {
      // A full disk may have ended the whole transaction already. There is no savepoint to return to then.
      if (sqlite3_get_autocommit(writer->connection()) != 0) {
        status = work->status;
        break;
      }
      status = writer->run("ROLLBACK TO work");
    }
    if (status.ok()) status = writer->run("RELEASE work");
  }
  if (status.ok()) {
    point("commit");
    status = writer->script("COMMIT");
    const int code = sqlite3_extended_errcode(writer->connection());
    if (!status.ok() && (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC)) broken = status;
  }
  if (!status.ok()) {
    if (sqlite3_get_autocommit(writer->connection()) == 0) (void)writer->script("ROLLBACK");
    for (Work* work : batch) work->status = status;
    return;
  }
  point("committed");
}

void Store::Impl::serve() {
  const std::string wal = options.file + "-wal";
  for (;;) {
    std::vector<Work*> batch;
    {
      std::unique_lock lock(mutex);
      queued.wait(lock, [&] { return closing || !queue.empty(); });
      if (queue.empty()) return;
      batch.assign(queue.begin(), queue.end());
      queue.clear();
    }
    if (broken.ok()) {
      commit(batch);
    } else {
      for (Work* work : batch) work->status = broken;
    }
    {
      const std::lock_guard lock(mutex);
      for (Work* work : batch) work->done = true;
    }
    finished.notify_all();
    struct stat size = {};
    if (stat(wal.c_str(), &size) == 0 && size.st_size > kWalLimitBytes) {
      sqlite3_wal_checkpoint_v2(writer->connection(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
    }
  }
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

void Store::close() {
  if (!impl_->thread.joinable()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->closing = true;
  }
  impl_->queued.notify_all();
  impl_->thread.join();
  impl_->reader.reset();
  sqlite3_wal_checkpoint_v2(impl_->writer->connection(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  impl_->writer.reset();
}

absl::Status Store::write(const std::function<absl::Status(Sql&)>& work) {
  Impl::Work item{&work, {}, false};
  std::unique_lock lock(impl_->mutex);
  if (impl_->closing) return absl::UnavailableError("the coordinator is going down");
  impl_->queue.push_back(&item);
  impl_->queued.notify_one();
  impl_->finished.wait(lock, [&] { return item.done; });
  return item.status;
}

absl::Status Store::read(const std::function<absl::Status(Sql&)>& work) {
  const std::lock_guard lock(impl_->read_mutex);
  if (!impl_->reader) return absl::UnavailableError("the coordinator is going down");
  return work(*impl_->reader);
}

const std::string& Store::file() const {
  return impl_->options.file;
}
int64_t Store::schema_version() {
  return static_cast<int64_t>(schema_migrations().size());
}
std::string Store::sqlite_version() {
  return sqlite3_libversion();
}

}  // namespace wl
