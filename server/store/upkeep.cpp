#include "server/store/upkeep.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>

#include "absl/strings/str_format.h"
#include "server/store/disk.h"
#include "server/store/functions.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

constexpr auto kLook = std::chrono::minutes(1);
constexpr auto kRetry = std::chrono::hours(1);  // after a backup that failed
constexpr std::string_view kEnding = ".db";
constexpr const char* kStamp = "%Y%m%dT%H%M%S";
constexpr size_t kStampBytes = sizeof "20261124T093012.123Z" - 1;

std::string stamp_of(int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm utc;
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, kStamp, &utc);
  return absl::StrFormat("%s.%03dZ", text, unix_ms % 1000);
}

std::optional<int64_t> unix_ms_of(const std::string& stamp) {
  std::tm utc = {};
  if (stamp.size() != kStampBytes || strptime(stamp.c_str(), kStamp, &utc) == nullptr) return std::nullopt;
  return static_cast<int64_t>(timegm(&utc)) * 1000;
}

}  // namespace

Upkeep::Upkeep(Store* store, const UpkeepOptions& options)
    : store_(store), options_(options), prefix_(cat(fs::path(store->file()).stem().string(), "-")) {
  const StoreBounds& bounds = options_.bounds;
  if (options_.backup_hours > 0 || bounds.database_bytes > 0 || bounds.object_bytes > 0)
    thread_ = std::thread([this] { serve(); });
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

std::vector<std::string> Upkeep::backups() const {
  std::vector<std::string> found;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(options_.backups, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.size() == prefix_.size() + kStampBytes + kEnding.size() && name.starts_with(prefix_) &&
        name.ends_with(kEnding) && unix_ms_of(name.substr(prefix_.size(), kStampBytes)))
      found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Removes the oldest backups, and what a process that was killed left of one.
void Upkeep::prune() {
  std::vector<std::string> kept = backups();
  const auto most = static_cast<size_t>(options_.keep_backups);
  if (most > 0 && kept.size() > most) kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(most));
  std::vector<fs::path> removed;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(options_.backups, failed)) {
    const std::string name = entry.path().filename().string();
    const size_t stem = prefix_.size() + kStampBytes + kEnding.size();
    if (name.size() < stem || !name.starts_with(prefix_)) continue;
    if (!unix_ms_of(name.substr(prefix_.size(), kStampBytes))) continue;
    const std::string rest = name.substr(stem);
    const bool finished = std::binary_search(kept.begin(), kept.end(), name.substr(0, stem));
    if (!finished || rest.starts_with(".unfinished")) removed.push_back(entry.path());
  }
  for (const fs::path& path : removed) {
    fs::remove_all(path, failed);
    if (failed) spdlog::warn("old backup {} cannot be removed: {}", path.string(), failed.message());
  }
}

void Upkeep::back_up_when_due() {
  const auto now = std::chrono::steady_clock::now();
  if (options_.backup_hours <= 0 || now < next_try_) return;
  const std::vector<std::string> made = backups();
  if (!made.empty()) {
    const int64_t newest = *unix_ms_of(made.back().substr(prefix_.size(), kStampBytes));
    const auto age_ms = static_cast<double>(unix_ms_now() - newest);
    if (age_ms >= 0 && age_ms < options_.backup_hours * 3.6e6) return;  // a newer one than now is of a wrong clock
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

void Upkeep::serve() {
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
