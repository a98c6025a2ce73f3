#include "client/fetch/client.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "client/program/bundle.h"
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

// Returns the key of the predicted kernels of a request, given the key of its search.
std::string key_of_first(const std::string& key) {
  return Encoder("warploom.bundle.predicted", 1).text(key).hash();
}

// Returns how the kernels of a request, or only the predicted ones, are chosen.
BundleChoice chosen_by(const BundleRequest& request, bool predicted) {
  if (!request.key.empty() || request.trials == 0) return BundleChoice::kUnknown;
  return predicted ? BundleChoice::kPredicted : BundleChoice::kTuned;
}

// Returns the pause after a search that has failed this many times in a row.
std::chrono::milliseconds longer_pause(std::chrono::milliseconds pause, int failures) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(1);
  for (int i = 1; i < failures && pause < kLongest; ++i) pause *= 2;
  return failures > 1 ? std::min(pause, kLongest) : pause;
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

Client::Present Client::present_of(const Half& half) {
  if (const Slot& slot = slots_[half.key]; slot.bundle != nullptr) return {slot.bundle, slot.standing};
  const auto first = slots_.find(key_of_first(half.key));
  return first == slots_.end() ? Present{} : Present{first->second.bundle, first->second.standing};
}

absl::StatusOr<Client::Found> Client::take(const Half& half, const DiskCache::Entry& entry) {
  auto hold = std::make_shared<const Hold>(Hold{entry.hold, options_.cache.hold});
  // Bundles may live longer than the client.
  LoadedBundle::Metered metered;
  if (reporter_)
    metered = [reporter = std::weak_ptr(reporter_)](std::shared_ptr<UseMeter> meter) {
      if (const auto alive = reporter.lock()) alive->add(std::move(meter));
    };
  WL_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedBundle> bundle,
                      LoadedBundle::load(entry.folder, std::move(hold), std::move(metered)));
  Present before;
  {
    const std::lock_guard lock(mutex_);
    before = present_of(half);
  }
  // A bundle with the same kernels replaces nothing, so that callers need not make their executors again.
  const bool same = before.bundle != nullptr && same_kernels(before.bundle->buckets()[0].folder, entry.folder);
  std::shared_ptr<const LoadedBundle> dropped;  // freed after the lock, since freeing a large bundle takes a while
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[half.key];
  // Another thread may have kept the same or a newer entry meanwhile.
  if (slot.bundle != nullptr && entry.made <= slot.made) return Found{slot.bundle, BundleFrom::kDisk, slot.standing};
  const Present now = present_of(half);
  if (same && now.bundle == before.bundle) {
    slot.bundle = now.bundle;
    slot.standing = now.standing;
  } else {
    if (now.standing != nullptr) now.standing->replaced = true;
    slot.bundle.swap(bundle);
    slot.standing = std::make_shared<BundleStanding>();
  }
  slot.standing->chosen = chosen_by(half.request, half.key != half.whole);
  slot.made = entry.made;
  if (half.key == half.whole) dropped = drop_first(half.key);
  return Found{slot.bundle, BundleFrom::kDisk, slot.standing};
}

// Forgets the predicted kernels of a request whose search is there. Returns them, so that the caller frees them after
// mutex_, which it holds.
std::shared_ptr<const LoadedBundle> Client::drop_first(const std::string& whole) {
  const auto first = slots_.find(key_of_first(whole));
  if (first == slots_.end() || first->second.bundle == nullptr) return nullptr;
  if (first->second.standing != slots_[whole].standing) first->second.standing->replaced = true;
  return std::exchange(first->second.bundle, nullptr);
}

bool Client::is_old(const Slot& slot) const {
  return options_.fresh && std::chrono::system_clock::now() - slot.made > *options_.fresh;
}

std::optional<Client::Found> Client::loaded(const std::string& key) {
  const Slot& slot = slots_[key];
  if (slot.bundle == nullptr) return {};
  return Found{slot.bundle, BundleFrom::kProcess, slot.standing};
}

std::optional<Client::Found> Client::from_disk(const Half& half) {
  // An entry that cannot be loaded is damaged, so it is removed and the next older entry of the key is tried.
  while (const auto entry = disk_.find(half.key)) {
    absl::StatusOr<Found> found = take(half, *entry);
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

absl::Status Client::asked(const Half& half) try {
  if (half.request.tune == Tune::kLater) {
    bool has = false;
    {
      const std::lock_guard lock(mutex_);
      has = slots_[half.key].bundle != nullptr;
    }
    // Another process may have finished the same search.
    if (!has && from_disk(half)) return absl::OkStatus();
  }
  const auto write = [&](const std::string& folder) { return options_.ask(half.request, folder, stop_.get_token()); };
  WL_ASSIGN_OR_RETURN(const DiskCache::Entry entry, add(half.key, write));
  return take(half, entry).status();
} catch (const std::bad_alloc&) {
  return absl::ResourceExhaustedError("memory is short");
} catch (const std::exception& error) {
  return absl::InternalError(error.what());
}

// Starts a thread that asks the coordinator for a half and, when that is there, begins `search`. The caller holds
// mutex_. Does nothing while a request for the key is under way, or in the pause after a failed one.
void Client::begin_asking(const Half& half, const std::optional<Half>& search) {
  Slot& slot = slots_[half.key];
  if (search) slot.search = search->request;
  if (options_.ask == nullptr || slot.asking || Clock::now() < slot.again || stop_.stop_requested()) return;
  // This assignment joins the thread of an earlier request for the key. The caller holds mutex_, but that thread has
  // already released mutex_ for the last time (slot.asking is false), so joining it cannot deadlock.
  slot.thread = std::jthread([this, half] { end_asking(half, asked(half)); });
  slot.asking = true;
  if (half.request.tune == Tune::kLater) ++searching_;
}

// Begins a search in the background, or queues it. The caller holds mutex_. Does nothing if the search has been made
// and is not old, or is under way.
void Client::begin_search(const Half& half) {
  Slot& slot = slots_[half.key];
  if (slot.asking || slot.queued || Clock::now() < slot.search_again) return;
  if (slot.bundle != nullptr && !is_old(slot)) return;
  if (searching_ < options_.most_searches) return begin_asking(half, {});
  slot.queued = true;
  queue_.push_back(half);
}

// Notes the result of a request, on the thread that made it.
void Client::end_asking(const Half& half, const absl::Status& status) {
  const bool searched = half.request.tune == Tune::kLater;
  std::shared_ptr<const LoadedBundle> dropped;  // freed after the lock
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[half.key];
  slot.asking = false;
  slot.error = status;
  slot.failures = status.ok() ? 0 : slot.failures + 1;
  slot.again = Clock::now() + options_.pause;
  slot.search_again = Clock::now() + longer_pause(options_.pause, slot.failures);
  changed_.notify_all();
  // The search may have ended before predicted kernels that were asked for once more.
  if (slot.search && slots_[half.whole].bundle != nullptr) dropped = drop_first(half.whole);
  if (searched) --searching_;
  try {
    if (slot.search && status.ok()) begin_search({half.whole, *slot.search, half.whole});
    while (!queue_.empty() && searching_ < options_.most_searches) {
      const Half next = std::move(queue_.front());
      queue_.pop_front();
      slots_[next.key].queued = false;
      begin_search(next);
    }
  } catch (const std::exception&) {
    // The process has no memory or no further thread; a later call begins the search.
  }
}

absl::StatusOr<Client::Found> Client::await(const Half& half, std::optional<Clock::time_point> deadline) {
  std::unique_lock lock(mutex_);
  const Slot& slot = slots_[half.key];
  const auto done = [&slot] { return !slot.asking; };
  if (!deadline) changed_.wait(lock, done);
  if (deadline && !changed_.wait_until(lock, *deadline, done))
    return absl::DeadlineExceededError(cat(named(half.request),
                                           ": no kernels in time; the coordinator is still being asked, "
                                           "and a later call has them"));
  std::optional<Found> found = loaded(half.key);
  if (!found) found = loaded(half.whole);  // what was found by a search may have replaced the answer already
  if (!found) return slot.error;
  found->from = BundleFrom::kCoordinator;
  return *std::move(found);
}

// Loads one half. `search`: the half that begins when this one is there.
absl::StatusOr<Client::Found> Client::load_half(const Half& half, const std::optional<Half>& search,
                                                std::optional<Clock::time_point> deadline,
                                                const std::string& fallback) {
  std::optional<Found> found;
  std::shared_ptr<const LoadedBundle> dropped;
  {
    const std::lock_guard lock(mutex_);
    found = loaded(half.key);
  }
  if (!found) found = from_disk(half);
  {
    const std::lock_guard lock(mutex_);
    // Another thread's request may have stored the bundle since this call searched slots_, so slots_ is searched again.
    if (!found) found = loaded(half.key);
    if (std::optional<Found> better = search ? loaded(search->key) : std::nullopt) {
      dropped = drop_first(search->key);
      return *std::move(better);
    }
    if (!found || is_old(slots_[half.key])) begin_asking(half, search);
    if (found && search) begin_search(*search);
  }
  if (found) return *std::move(found);
  std::shared_ptr<const LoadedBundle> other;
  if (!fallback.empty()) {
    WL_ASSIGN_OR_RETURN(other, LoadedBundle::load(fallback));
  }
  absl::StatusOr<Found> answer =
      options_.ask != nullptr ? await(half, deadline)
                              : absl::NotFoundError(cat(named(half.request), ": no kernels in the cache ",
                                                        options_.cache.folder, ", and no coordinator is named to ask"));
  if (!answer.ok() && other != nullptr) return Found{std::move(other), BundleFrom::kFallback, nullptr};
  return answer;
}

// Returns what the search of a request has found, if it is there. What is old is asked for again in the background or,
// if the request may not search, not returned.
std::optional<Client::Found> Client::searched(const Half& search, const std::string& first_key) {
  std::optional<Found> found;
  bool looks = false;  // whether to look on disk, which a call does not do again while it has predicted kernels
  {
    const std::lock_guard lock(mutex_);
    found = loaded(search.key);
    looks = !found && !loaded(first_key);
  }
  if (looks) found = from_disk(search);
  const std::lock_guard lock(mutex_);
  if (!found || !is_old(slots_[search.key])) return found;
  if (search.request.tune == Tune::kNow) return {};
  begin_search(search);
  return found;
}

absl::StatusOr<Client::Found> Client::load(const BundleRequest& request, std::optional<Clock::time_point> deadline,
                                           const std::string& fallback) {
  WL_ASSIGN_OR_RETURN(const std::string key, key_of(request));
  const bool may_search = request.key.empty() && request.trials > 0;
  Half whole{key, request, key};
  if (!may_search || request.tune == Tune::kWait) {
    whole.request.tune = Tune::kWait;
    return load_half(whole, {}, deadline, fallback);
  }
  Half first{key_of_first(key), request, key};
  first.request.tune = Tune::kNow;
  if (std::optional<Found> found = searched(whole, first.key)) return *std::move(found);
  // One trial is the predicted kernel itself.
  const bool goes_on = request.tune == Tune::kLater && request.trials > 1;
  return load_half(first, goes_on ? std::optional(whole) : std::nullopt, deadline, fallback);
}

}  // namespace wl
