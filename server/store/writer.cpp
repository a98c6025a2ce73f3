#include "server/store/writer.h"

#include <algorithm>

#include "spdlog/spdlog.h"

namespace wl {
namespace {

// When the write-ahead log has more bytes than this, it is checkpointed. The log's file may keep up to 64 MiB of space.
constexpr int64_t kWalLimitBytes = 16 << 20;
constexpr int kCheckpointWaitMs = 100, kWriteWaitMs = 5000;
// Bytes by which the write-ahead log has to grow before a checkpoint that did not finish is tried again.
constexpr int64_t kRetryBytes = 4 << 20;
constexpr auto kWarnAgain = std::chrono::minutes(1);
constexpr auto kLookAgain = std::chrono::seconds(1);

// Whether an error means that an fsync failed. The kernel may then have dropped pages that were still to be written,
// and a later fsync would not report their loss.
bool is_failed_sync(int code) {
  return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC;
}

}  // namespace

StoreWriter::StoreWriter(std::unique_ptr<Sql> sql, std::string file, Hooks hooks)
    : sql_(std::move(sql)), file_(std::move(file)), hooks_(std::move(hooks)), files_(file_) {
  (void)sql_->each("PRAGMA page_size", [this](const Sql::Row& row) {
    page_bytes_ = row.integer(0);
    return false;
  });
  const auto noted = [](void* writer, sqlite3*, const char*, int pages) {
    static_cast<StoreWriter*>(writer)->note_pages(pages);
    return SQLITE_OK;
  };
  sqlite3_wal_hook(sql_->connection(), noted, this);
  thread_ = std::thread([this] { serve(); });
}

StoreWriter::~StoreWriter() {
  close();
}

absl::Status StoreWriter::write(const std::function<absl::Status(Sql&)>& work) {
  Work item{&work, {}, false};
  std::unique_lock lock(mutex_);
  if (!broken_.ok()) return broken_;
  if (closing_) return absl::UnavailableError("the coordinator is going down");
  queue_.push_back(&item);
  queued_.notify_one();
  finished_.wait(lock, [&] { return item.done; });
  return item.status;
}

void StoreWriter::close() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  queued_.notify_all();
  thread_.join();
  if (broken().ok()) {
    checkpoint();
  } else {
    // The log is left for the next process that opens the store, since it may have writes that the database file lacks.
    sqlite3_db_config(sql_->connection(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  sql_.reset();
}

absl::Status StoreWriter::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

StoreWriter::Stats StoreWriter::stats() const {
  const std::lock_guard lock(mutex_);
  return {static_cast<int64_t>(queue_.size()), writes_, transactions_, checkpoints_, unfinished_, wal_bytes_};
}

void StoreWriter::point(const char* name) {
  if (hooks_.at_point) hooks_.at_point(name);
}

// Notes the write-ahead log's size, from the sizes of its header and of the header of each page
// (https://www.sqlite.org/fileformat.html).
void StoreWriter::note_pages(int pages) {
  constexpr int64_t kHeader = 32, kPageHeader = 24;
  wal_bytes_ = kHeader + pages * (page_bytes_ + kPageHeader);
}

// Runs the queued writes of a batch in one transaction, each with a savepoint, so that a failed write is undone alone.
absl::Status StoreWriter::run(const std::vector<Work*>& batch, Attempt* out) {
  point("begin");
  WL_RETURN_IF_ERROR(sql_->script("BEGIN IMMEDIATE"));
  for (Work* work : batch) {
    out->culprit = work;
    WL_RETURN_IF_ERROR(sql_->run("SAVEPOINT work"));
    work->status = (*work->run)(*sql_);
    if (!work->status.ok()) {
      // A full disk or an I/O error may end the whole transaction. Then no savepoint is left to return to, so this
      // attempt to run the batch ends.
      if (sqlite3_get_autocommit(sql_->connection()) != 0 || is_failed_sync(sql_->failure())) return work->status;
      WL_RETURN_IF_ERROR(sql_->run("ROLLBACK TO work"));
    }
    WL_RETURN_IF_ERROR(sql_->run("RELEASE work"));
  }
  out->culprit = nullptr;
  out->committing = true;
  point("commit");
  return sql_->script("COMMIT");
}

StoreWriter::Attempt StoreWriter::attempt(const std::vector<Work*>& batch) {
  Attempt out;
  sql_->clear_failure();
  out.status = run(batch, &out);
  const int code = sql_->failure();
  if (!out.status.ok()) {
    if (sqlite3_get_autocommit(sql_->connection()) == 0) (void)sql_->script("ROLLBACK");
    // After a failed fsync or an I/O error of COMMIT it is unknown what is on the disk, so the store counts as broken.
    if (is_failed_sync(code) || (out.committing && (code & 0xff) == SQLITE_IOERR)) break_down(out.status);
  }
  return out;
}

void StoreWriter::commit(std::vector<Work*> batch) {
  while (!batch.empty()) {
    Attempt made = attempt(batch);
    if (made.status.ok()) {
      writes_ += static_cast<int64_t>(batch.size());
      ++transactions_;
      return point("committed");
    }
    if (const absl::Status known = broken(); !known.ok()) {
      for (Work* work : batch) work->status = known;
      return;
    }
    if (made.culprit != nullptr) {
      // All other work of the batch is run again, without the piece that ended the transaction.
      made.culprit->status = made.status;
      std::erase(batch, made.culprit);
    } else if (made.committing && batch.size() > 1) {
      // The batch as a whole does not fit on the disk, but each piece alone may fit.
      for (Work* work : batch) commit({work});
      return;
    } else {
      for (Work* work : batch) work->status = made.status;
      return;
    }
  }
}

void StoreWriter::break_down(const absl::Status& status) {
  const absl::Status broken = absl::DataLossError(
      cat(status.message(),
          "; what of the last writes is on the disk is not known, so this process neither reads nor "
          "writes the store any more: check the disk and start it again"));
  {
    const std::lock_guard lock(mutex_);
    if (!broken_.ok()) return;
    broken_ = broken;
  }
  spdlog::critical("{}", std::string(broken.message()));
  if (hooks_.on_broken) hooks_.on_broken(broken);
}

void StoreWriter::checkpoint_when_due() {
  if (wal_bytes_ <= std::max(kWalLimitBytes, retry_beyond_)) return;
  checkpoint();
  look_at_files(/*changed=*/true);
}

void StoreWriter::look_at_files(bool changed) {
  const OwnFiles::Lost lost = files_.look(changed);
  if (lost == OwnFiles::Lost::kNothing || !broken().ok()) return;
  // This process still has the log open even if another program removed the log's name, so a checkpoint can move the
  // contents of the log into the database.
  const bool moved = lost == OwnFiles::Lost::kLog && checkpoint();
  break_down(absl::DataLossError(cat("store ", file_, ": ", files_.why(), " by another program while this one used it",
                                     moved ? "; what the log had was moved into the file" : "")));
}

bool StoreWriter::checkpoint() {
  point("checkpoint");
  sqlite3_busy_timeout(sql_->connection(), kCheckpointWaitMs);
  const int code = sqlite3_wal_checkpoint_v2(sql_->connection(), nullptr, SQLITE_CHECKPOINT_RESTART, nullptr, nullptr);
  sqlite3_busy_timeout(sql_->connection(), kWriteWaitMs);
  point("checkpointed");
  ++checkpoints_;
  retry_beyond_ = code == SQLITE_OK ? 0 : wal_bytes_ + kRetryBytes;
  if (code == SQLITE_OK) {
    wal_bytes_ = 0;
    return true;
  }
  ++unfinished_;
  const absl::Status status = sql_->error("moving the write-ahead log into the file");
  if (is_failed_sync(code)) {
    break_down(status);
    return false;
  }
  if (Clock::now() < warned_ + kWarnAgain) return false;
  warned_ = Clock::now();
  spdlog::warn("the write-ahead log of {} bytes could not be emptied and goes on growing: {}", wal_bytes_.load(),
               std::string(status.message()));
  return false;
}

void StoreWriter::serve() {
  for (;;) {
    std::vector<Work*> batch;
    {
      std::unique_lock lock(mutex_);
      while (!closing_ && queue_.empty()) {
        if (queued_.wait_for(lock, kLookAgain) == std::cv_status::no_timeout) continue;
        lock.unlock();
        look_at_files(/*changed=*/false);
        lock.lock();
      }
      if (queue_.empty()) return;
      batch.assign(queue_.begin(), queue_.end());
      queue_.clear();
    }
    look_at_files(/*changed=*/false);
    if (broken().ok()) {
      commit(batch);
      look_at_files(/*changed=*/true);
    }
    if (const absl::Status known = broken(); !known.ok())
      for (Work* work : batch) work->status = known;
    {
      const std::lock_guard lock(mutex_);
      for (Work* work : batch) work->done = true;
    }
    finished_.notify_all();
    if (broken().ok()) checkpoint_when_due();
  }
}

}  // namespace wl
