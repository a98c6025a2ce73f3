#include "client/fetch/client.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "client/c/handles.h"
#include "client/c/plugin.h"
#include "client/c/structs.h"
#include "client/program/files.h"
#include "compiler/base/sha256.h"

using wl::invalid;

// NOLINTBEGIN(readability-identifier-naming): names of C
struct warploom_client {
  explicit warploom_client(wl::ClientOptions options) : client(std::move(options)) {}
  wl::Client client;
};
// NOLINTEND(readability-identifier-naming)

static_assert(WARPLOOM_TUNE_LATER == static_cast<int>(wl::Tune::kLater) &&
                  WARPLOOM_CHOICE_TUNED == static_cast<int>(wl::BundleChoice::kTuned),
              "the numbers of the header are part of the ABI");
static_assert(WARPLOOM_FROM_PROCESS == static_cast<int>(wl::BundleFrom::kProcess) + 1 &&
                  WARPLOOM_FROM_FALLBACK == static_cast<int>(wl::BundleFrom::kFallback) + 1,
              "the numbers of the header are part of the ABI");

namespace wl {
namespace {

std::string text_of(const char* given) {
  return given == nullptr ? "" : given;
}

const Plugin& remote() {
  static const auto* const kRemote = new Plugin("client", "coordinators are asked by");
  return *kRemote;
}

// Whether the process is ending: libraries that TLS needs may have been cleaned up then.
std::atomic<bool> ending = false;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// Makes `ending` true before libraries that were initialised by now are cleaned up.
void note_end() {
  static const int kRegistered = std::atexit([] { ending = true; });
  (void)kRegistered;
}

absl::Status tell_lazily(const CoordinatorAddress& address, const std::vector<KernelUse>& uses,
                         std::chrono::milliseconds patience, const std::stop_token& stop) {
  if (ending) return absl::CancelledError("the process ends");
  WL_ASSIGN_OR_RETURN(void* const symbol, remote().symbol("warploom_tell"));
  absl::Status result;
  reinterpret_cast<void (*)(const CoordinatorAddress&, const std::vector<KernelUse>&, std::chrono::milliseconds,
                            const std::stop_token&, absl::Status&)>(symbol)(address, uses, patience, stop, result);
  note_end();
  return result;
}

absl::Status ask_lazily(const CoordinatorAddress& address, const BundleRequest& request, const std::string& folder,
                        const std::stop_token& stop) {
  WL_ASSIGN_OR_RETURN(void* const symbol, remote().symbol("warploom_ask"));
  absl::Status result;
  reinterpret_cast<void (*)(const CoordinatorAddress&, const BundleRequest&, const std::string&, const std::stop_token&,
                            absl::Status&)>(symbol)(address, request, folder, stop, result);
  note_end();
  return result;
}

// Opens the cache in a folder, or a temporary one if `folder` is empty or cannot be used. A folder where others may
// write is an error instead (FailedPrecondition): a temporary cache would hide that the folder is unsafe.
absl::StatusOr<CacheFolder> cache_at(const std::string& folder) {
  if (folder.empty()) return temporary_cache();
  absl::StatusOr<CacheFolder> cache = open_cache(folder);
  if (cache.ok() || absl::IsFailedPrecondition(cache.status())) return cache;
  const std::string why(cache.status().message());
  cache = temporary_cache();
  if (cache.ok())
    std::fprintf(stderr, "warploom: %s; bundles are kept in %s while this process lives\n", why.c_str(),
                 cache->folder.c_str());
  return cache;
}

absl::StatusOr<ClientOptions> options_of(const warploom_client_options& given) {
  ClientOptions options;
  const CoordinatorAddress address{.server = text_of(given.server),
                                   .ca = text_of(given.ca),
                                   .cert = text_of(given.cert),
                                   .key = text_of(given.key),
                                   .signers = text_of(given.signers),
                                   .token_file = text_of(given.token_file),
                                   .token = text_of(given.token),
                                   .trust_workers = given.trust_workers != 0};
  if (!address.token.empty() && !address.token_file.empty())
    return invalid("a token and a token_file are given; give one");
  // options.identity, a part of every cache key, also covers the contents of the signers' file, so that a cached bundle
  // is found only by clients that trust the same signers.
  std::string signers;
  if (!address.signers.empty()) {
    WL_ASSIGN_OR_RETURN(signers, read_file(address.signers, kMostSettings));
  }
  options.identity = Encoder("warploom.coordinator", 1)
                         .text(address.server)
                         .text(address.token_file)
                         .text(address.token)
                         .text(signers)
                         .text(address.trust_workers ? "trust workers" : "")
                         .hash();
  if (!address.server.empty()) {
    options.ask = [address](const BundleRequest& request, const std::string& folder, const std::stop_token& stop) {
      return ask_lazily(address, request, folder, stop);
    };
    if (given.no_counts == 0)
      options.tell = [address](const std::vector<KernelUse>& uses, std::chrono::milliseconds patience,
                               const std::stop_token& stop) { return tell_lazily(address, uses, patience, stop); };
  }
  std::string cache = text_of(given.cache);
  if (given.cache == nullptr) {
    // Without a home folder the path is empty, and the cache is a temporary folder of this client.
    cache = default_cache_folder().value_or("");
  }
  WL_ASSIGN_OR_RETURN(options.cache, cache_at(cache));
  if (given.cache_bytes > INT64_MAX) return invalid("cache_bytes are ", given.cache_bytes, "; expected fewer");
  if (given.cache_bytes > 0) options.cache_bytes = static_cast<int64_t>(given.cache_bytes);
  if (given.fresh_seconds < -1) return invalid("fresh_seconds are ", given.fresh_seconds, "; expected -1 or more");
  if (given.fresh_seconds > 0) options.fresh = std::chrono::seconds(given.fresh_seconds);
  if (given.fresh_seconds == -1) options.fresh = std::nullopt;
  return options;
}

absl::StatusOr<Bind> bind_of(const std::string& text) {
  Bind bind;
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(item, absl::MaxSplits('=', 1));
    int64_t extent = 0;
    if (parts.first.empty() || !absl::SimpleAtoi(parts.second, &extent) || extent < 0)
      return invalid("bind: expected NAME=N with a whole number, found \"", item, "\" in \"", text, "\"");
    if (!bind.emplace(parts.first, extent).second) return invalid("bind: ", parts.first, " is given twice");
  }
  return bind;
}

absl::StatusOr<BundleRequest> request_of(const warploom_request& given) {
  BundleRequest request;
  request.graph = text_of(given.graph);
  request.key = text_of(given.key);
  if (given.target != nullptr) request.target = given.target;
  WL_ASSIGN_OR_RETURN(request.bind, bind_of(text_of(given.bind)));
  request.weights = absl::StrSplit(text_of(given.weights), ',', absl::SkipEmpty());
  request.trials = given.trials;
  request.allow_tf32 = given.allow_tf32 != 0;
  if (given.tune < WARPLOOM_TUNE_WAIT || given.tune > WARPLOOM_TUNE_LATER)
    return invalid("tune is ", given.tune, "; expected ", static_cast<int>(WARPLOOM_TUNE_WAIT), " (wait), ",
                   static_cast<int>(WARPLOOM_TUNE_NOW), " (now) or ", static_cast<int>(WARPLOOM_TUNE_LATER),
                   " (later)");
  request.tune = static_cast<Tune>(given.tune);
  return request;
}

absl::StatusOr<std::optional<Client::Clock::time_point>> deadline_of(int64_t ms) {
  constexpr int64_t kLongest = int64_t{1000} * 3600 * 24 * 365;
  if (ms < -1 || ms > kLongest) return invalid("deadline_ms is ", ms, "; expected -1 to ", kLongest);
  if (ms == -1) return std::nullopt;
  return Client::Clock::now() + std::chrono::milliseconds(ms);
}

}  // namespace
}  // namespace wl

extern "C" {

warploom_status* warploom_client_open(const warploom_client_options* given, warploom_client** client) {
  return wl::guarded([&]() -> absl::Status {
    if (client == nullptr) return invalid("warploom_client_open: client may not be NULL");
    WL_ASSIGN_OR_RETURN(wl::ClientOptions options, wl::options_of(wl::taken(given)));
    *client = new warploom_client(std::move(options));
    return absl::OkStatus();
  });
}

void warploom_client_free(warploom_client* client) {
  delete client;
}

warploom_status* warploom_client_load(warploom_client* client, const warploom_request* given, warploom_model** model,
                                      warploom_source* source) {
  return wl::guarded([&]() -> absl::Status {
    if (client == nullptr || given == nullptr || model == nullptr)
      return invalid("warploom_client_load: client, request and model may not be NULL");
    const warploom_request request = wl::taken(given);
    WL_ASSIGN_OR_RETURN(const auto deadline, wl::deadline_of(request.deadline_ms));
    WL_ASSIGN_OR_RETURN(const wl::BundleRequest asked, wl::request_of(request));
    WL_ASSIGN_OR_RETURN(const wl::Client::Found found,
                        client->client.load(asked, deadline, wl::text_of(request.fallback)));
    WL_ASSIGN_OR_RETURN(wl::Model loaded, wl::Model::of(found.bundle));
    *model = new warploom_model(std::move(loaded));
    (*model)->standing = found.standing;
    if (source != nullptr) *source = static_cast<warploom_source>(static_cast<int>(found.from) + 1);
    return absl::OkStatus();
  });
}

warploom_status* warploom_model_kernels(const warploom_model* model, warploom_kernels* kernels) {
  return wl::guarded([&]() -> absl::Status {
    if (model == nullptr || kernels == nullptr)
      return invalid("warploom_model_kernels: model and kernels may not be NULL");
    warploom_kernels known = {};
    if (model->standing != nullptr) {
      known.chosen = static_cast<warploom_choice>(model->standing->chosen.load());
      known.replaced = model->standing->replaced ? 1 : 0;
    }
    wl::give(known, kernels);
    return absl::OkStatus();
  });
}

}  // extern "C"
