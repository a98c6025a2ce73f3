#include "server/store/upkeep.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "absl/strings/str_format.h"
#include "proto/utc.h"
#include "server/store/disk.h"
#include "server/store/sql/functions.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

constexpr auto kLook = std::chrono::minutes(1);
constexpr auto kRetry = std::chrono::hours(1);  // pause after a backup that failed
constexpr std::string_view kEnding = ".db";
constexpr const char* kStamp = "%Y%m%dT%H%M%S";
constexpr size_t kSecondsBytes = sizeof "20261124T093012" - 1, kStampBytes = sizeof "20261124T093012.123Z" - 1;

std::string stamp_of(int64_t unix_ms) {
  return absl::StrFormat("%s.%03dZ", utc_text(unix_ms / 1000, kStamp), unix_ms % 1000);
}

}  // namespace

Upkeep::Upkeep(Store* store, const UpkeepOptions& options)
    : store_(store), options_(options), prefix_(cat(fs::path(store->file()).stem().string(), "-")) {
  if (has_duties() || store_->stats().unclean) thread_ = std::thread([this] { serve(); });
}

bool Upkeep::has_duties() const {
  return options_.backup_hours > 0 || options_.bounds.database_bytes > 0 || options_.bounds.object_bytes > 0;
}

Upkeep::~Upkeep() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::Status Upkeep::check(const UpkeepOptions& options) {
  if (options.backups.empty()) {
    if (options.backup_hours > 0)
      return invalid("backups every ", options.backup_hours, " hours need --backups FOLDER");
    return absl::OkStatus();
  }
  std::error_code failed;
  fs::create_directories(options.backups, failed);
  if (failed || !fs::is_directory(options.backups)) {
    return absl::PermissionDeniedError(cat("folder of backups ", options.backups, ": cannot be made (",
                                           failed ? failed.message() : "it is a file", "); name another folder"));
  }
  return absl::OkStatus();
}

absl::StatusOr<BackupMade> Upkeep::backup() {
  if (options_.backups.empty()) {
    return absl::FailedPreconditionError("this coordinator has no folder for backups; start it with --backups FOLDER");
  }
  const std::lock_guard alone(making_);
  BackupMade made;
  made.file = cat(options_.backups, "/", prefix_, stamp_of(unix_ms_now()), kEnding);
  WL_RETURN_IF_ERROR(store_->backup(made.file));
  std::error_code ignored;
  made.bytes = static_cast<int64_t>(fs::file_size(made.file, ignored));
  spdlog::info("backup {}, {:.1f} MB", made.file, static_cast<double>(made.bytes) / 1e6);
  prune();
  return made;
}

std::optional<Upkeep::Entry> Upkeep::entry_of(const std::string& name) const {
  const size_t stem = prefix_.size() + kStampBytes + kEnding.size();
  if (name.size() < stem || !name.starts_with(prefix_) || !name.substr(0, stem).ends_with(kEnding)) return std::nullopt;
  const auto made = utc_seconds(name.substr(prefix_.size(), kSecondsBytes), kStamp);
  if (!made) return std::nullopt;
  return Entry{.backup = name.substr(0, stem), .rest = name.substr(stem), .unix_s = *made};
}

std::vector<Upkeep::Entry> Upkeep::entries() const {
  std::vector<Entry> found;
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(options_.backups, failed))
    if (auto entry = entry_of(file.path().filename().string())) found.push_back(*std::move(entry));
  std::sort(found.begin(), found.end(), [](const Entry& a, const Entry& b) { return a.backup < b.backup; });
  return found;
}

// Removes the oldest backups beyond the number to keep, and files of backups that a killed process left unfinished.
void Upkeep::prune() {
  const std::vector<Entry> all = entries();
  std::vector<std::string> kept;
  for (const Entry& entry : all)
    if (entry.whole()) kept.push_back(entry.backup);
  const auto most = static_cast<size_t>(options_.keep_backups);
  if (most > 0 && kept.size() > most) kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(most));
  for (const Entry& entry : all) {
    const bool finished = std::binary_search(kept.begin(), kept.end(), entry.backup);
    if (finished && !entry.rest.starts_with(".unfinished")) continue;
    const std::string path = cat(options_.backups, "/", entry.backup, entry.rest);
    std::error_code failed;
    fs::remove_all(path, failed);
    if (failed) spdlog::warn("old backup {} cannot be removed: {}", path, failed.message());
  }
}

void Upkeep::back_up_when_due() {
  const auto now = std::chrono::steady_clock::now();
  if (options_.backup_hours <= 0 || now < next_try_) return;
  for (const Entry& entry : entries()) {
    const auto age_ms = static_cast<double>(unix_ms_now() - entry.unix_s * 1000);
    // A backup with a time in the future was made under a wrong clock, so it does not count as a recent one.
    if (entry.whole() && age_ms >= 0 && age_ms < options_.backup_hours * 3.6e6) return;
  }
  if (const auto done = backup(); !done.ok()) {
    spdlog::error("no backup was made: {}", std::string(done.status().message()));
    next_try_ = now + kRetry;
  }
}

void Upkeep::keep_bounds() {
  const StoreBounds& bounds = options_.bounds;
  if (bounds.database_bytes <= 0 && bounds.object_bytes <= 0) return;
  const auto evicted = store_->evict(bounds);
  if (!evicted.ok()) {
    spdlog::error("the bounds of the store could not be kept: {}", std::string(evicted.status().message()));
    return;
  }
  if (evicted->records + evicted->objects + evicted->jobs + evicted->answers > 0) {
    spdlog::info(
        "made room: {} records, {} objects, {} jobs and {} answers went; {:.1f} MB of database, {:.1f} MB of "
        "objects are left",
        evicted->records, evicted->objects, evicted->jobs, evicted->answers,
        static_cast<double>(evicted->database_bytes) / 1e6, static_cast<double>(evicted->object_bytes) / 1e6);
  }
  const bool full = (bounds.database_bytes > 0 && evicted->database_bytes > bounds.database_bytes) ||
                    (bounds.object_bytes > 0 && evicted->object_bytes > bounds.object_bytes);
  if (full && !full_) {
    spdlog::warn(
        "the store is larger than its bounds, and only winning and pinned records, unfinished jobs and their "
        "trials are left; raise the bounds, or invalidate kernels that nobody needs");
  }
  full_ = full;
}

void Upkeep::sweep() {
  const auto removed = store_->sweep_blobs();
  if (!removed.ok()) {
    spdlog::error("objects that were left by a crash stay: {}", std::string(removed.status().message()));
  } else if (*removed > 0) {
    spdlog::info("removed {} objects that were left by a crash", *removed);
  }
}

void Upkeep::serve() {
  sweep();
  if (!has_duties()) return;
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    keep_bounds();
    back_up_when_due();
    lock.lock();
    changed_.wait_for(lock, kLook, [this] { return ending_; });
  } while (!ending_);
}

}  // namespace wl
