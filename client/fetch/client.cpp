#include "client/fetch/client.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "client/program/files.h"
#include "compiler/base/sha256.h"
#include "runtime/cpu_identity.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

// While a Hold lives, the files of a cache entry are not removed: `entry` holds the entry's lock, and `folder` keeps
// the folder of a temporary cache.
struct Hold {
  std::shared_ptr<const void> entry, folder;
};

std::string named(const BundleRequest& request) {
  return request.key.empty() ? request.graph : cat("key ", request.key);
}

}  // namespace

Client::Client(ClientOptions options)
    : options_(std::move(options)),
      reporter_(options_.tell ? std::make_shared<UseReporter>(options_.tell) : nullptr),
      disk_(options_.cache.folder, options_.cache_bytes) {}

Client::~Client() {
  if (reporter_) reporter_->stop();
  stop_.request_stop();
  std::vector<std::jthread> threads;
  const std::lock_guard lock(mutex_);
  for (auto& [key, slot] : slots_) threads.push_back(std::move(slot.thread));
}

// Returns the cache key of a request: a hash of all that decides which kernels are right for it, such as the bytes of
// the graph's file, not its path.
absl::StatusOr<std::string> Client::key_of(const BundleRequest& request) {
  if (request.graph.empty() == request.key.empty())
    return invalid("a request has either a graph file or the key of a kernel; found ",
                   request.graph.empty() ? "neither" : "both");
  if (request.trials < 0) return invalid("trials are ", request.trials, "; expected 0 or more");
  std::string graph;
  if (!request.graph.empty()) {
    struct stat now = {};
    if (::stat(request.graph.c_str(), &now) != 0)
      return invalid("cannot read ", request.graph, ": ", std::strerror(errno));
    const int64_t changed = now.st_mtim.tv_sec * int64_t{1'000'000'000} + now.st_mtim.tv_nsec;
    {
      const std::lock_guard lock(mutex_);
      const Digest& known = digests_[request.graph];
      if (known.bytes == now.st_size && known.changed_ns == changed) graph = known.sha256;
    }
    if (graph.empty()) {
      WL_ASSIGN_OR_RETURN(const std::string bytes, read_file(request.graph));
      graph = sha256_hex(bytes);
      const std::lock_guard lock(mutex_);
      digests_[request.graph] = {now.st_size, changed, graph};
    }
  }
  Encoder encoder("warploom.bundle", 3);
  // The CPU is part of the key since machines with different CPUs may share the disk.
  encoder.text(WARPLOOM_VERSION)
      .text(cpu_identity())
      .text(options_.identity)
      .text(graph)
      .text(request.key)
      .text(request.target);
  encoder.text(bind_text(request.bind)).integer(request.trials);
  encoder.integer(static_cast<int64_t>(request.weights.size()));
  for (const std::string& weight : request.weights) encoder.text(weight);
  encoder.integer(request.allow_tf32 ? 1 : 0);
  return encoder.hash();
}

absl::StatusOr<Client::Found> Client::take(const std::string& key, const DiskCache::Entry& entry) {
  auto hold = std::make_shared<const Hold>(Hold{entry.hold, options_.cache.hold});
  // Bundles may live longer than the client.
  LoadedBundle::Metered metered;
  if (reporter_)
    metered = [reporter = std::weak_ptr(reporter_)](std::shared_ptr<UseMeter> meter) {
      if (const auto alive = reporter.lock()) alive->add(std::move(meter));
    };
  WL_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedBundle> bundle,
                      LoadedBundle::load(entry.folder, std::move(hold), std::move(metered)));
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[key];
  slot.bundle = bundle;
  slot.made = entry.made;
  return Found{std::move(bundle), BundleFrom::kDisk};
}

std::optional<Client::Found> Client::from_disk(const std::string& key) {
  // An entry that cannot be loaded is damaged, so it is removed and the next older entry of the key is tried.
  while (const auto entry = disk_.find(key)) {
    absl::StatusOr<Found> found = take(key, *entry);
    if (found.ok()) return *std::move(found);
    // An entry that cannot be loaded for lack of memory may be intact, so it is not removed.
    if (absl::IsResourceExhausted(found.status()) || !DiskCache::remove(*entry)) break;
  }
  return {};
}

// Adds an entry to the cache on disk. If that cache cannot be written, calls `write` a second time and adds the entry
// to a temporary folder of this client, whose path is printed to stderr once.
absl::StatusOr<DiskCache::Entry> Client::add(const std::string& key, const DiskCache::Write& write) {
  absl::StatusOr<DiskCache::Entry> entry = disk_.add(key, write);
  const std::string why = entry.ok() ? "" : disk_.why_not_writable();
  if (why.empty()) return entry;
  const std::lock_guard lock(spare_mutex_);
  if (!spare_) {
    WL_ASSIGN_OR_RETURN(spare_, temporary_cache());
    std::fprintf(stderr,
                 "warploom: the cache %s cannot be written (%s); bundles are kept in %s while this process lives\n",
                 options_.cache.folder.c_str(), why.c_str(), spare_->folder.c_str());
  }
  return DiskCache(spare_->folder, options_.cache_bytes).add(key, write);
}

absl::Status Client::asked(const std::string& key, const BundleRequest& request) try {
  const auto write = [&](const std::string& folder) { return options_.ask(request, folder, stop_.get_token()); };
  WL_ASSIGN_OR_RETURN(const DiskCache::Entry entry, add(key, write));
  return take(key, entry).status();
} catch (const std::bad_alloc&) {
  return absl::ResourceExhaustedError("memory is short");
} catch (const std::exception& error) {
  return absl::InternalError(error.what());
}

// Starts a thread that asks the coordinator for the bundle of a key. The caller holds mutex_. Does nothing while a
// request for the key is under way, or in the pause after a failed one.
void Client::begin_asking(const std::string& key, const BundleRequest& request) {
  Slot& slot = slots_[key];
  if (options_.ask == nullptr || slot.asking || Clock::now() < slot.again) return;
  // This assignment joins the thread of an earlier request for the key. The caller holds mutex_, but that thread has
  // already released mutex_ for the last time (slot.asking is false), so joining it cannot deadlock.
  slot.thread = std::jthread([this, key, request, &slot] {
    const absl::Status status = asked(key, request);
    const std::lock_guard lock(mutex_);
    slot.asking = false;
    slot.error = status;
    slot.again = Clock::now() + options_.pause;
    changed_.notify_all();
  });
  slot.asking = true;
}

absl::StatusOr<Client::Found> Client::await(const std::string& key, const BundleRequest& request,
                                            std::optional<Clock::time_point> deadline) {
  std::unique_lock lock(mutex_);
  const Slot& slot = slots_[key];
  const auto done = [&slot] { return !slot.asking; };
  if (!deadline) changed_.wait(lock, done);
  if (deadline && !changed_.wait_until(lock, *deadline, done))
    return absl::DeadlineExceededError(cat(named(request),
                                           ": no kernels in time; the coordinator is still being asked, "
                                           "and a later call has them"));
  if (slot.bundle != nullptr) return Found{slot.bundle, BundleFrom::kCoordinator};
  return slot.error;
}

absl::StatusOr<Client::Found> Client::load(const BundleRequest& request, std::optional<Clock::time_point> deadline,
                                           const std::string& fallback) {
  WL_ASSIGN_OR_RETURN(const std::string key, key_of(request));
  std::optional<Found> found;
  {
    const std::lock_guard lock(mutex_);
    if (const Slot& slot = slots_[key]; slot.bundle != nullptr) found = {slot.bundle, BundleFrom::kProcess};
  }
  if (!found) found = from_disk(key);
  {
    const std::lock_guard lock(mutex_);
    const Slot& slot = slots_[key];
    // Another thread's request may have stored the bundle since this call searched slots_, so slots_ is searched again.
    if (!found && slot.bundle != nullptr) found = {slot.bundle, BundleFrom::kProcess};
    const bool old = options_.fresh && std::chrono::system_clock::now() - slot.made > *options_.fresh;
    if (!found || old) begin_asking(key, request);
  }
  if (found) return *std::move(found);
  std::shared_ptr<const LoadedBundle> other;
  if (!fallback.empty()) {
    WL_ASSIGN_OR_RETURN(other, LoadedBundle::load(fallback));
  }
  absl::StatusOr<Found> answer =
      options_.ask != nullptr ? await(key, request, deadline)
                              : absl::NotFoundError(cat(named(request), ": no kernels in the cache ",
                                                        options_.cache.folder, ", and no coordinator is named to ask"));
  if (!answer.ok() && other != nullptr) return Found{std::move(other), BundleFrom::kFallback};
  return answer;
}

}  // namespace wl
