// What programs ran, for pages and metrics: facts are made at most every ten seconds, and only when somebody asks.
#include "compiler/base/names.h"
#include "compiler/ir/text.h"
#include "proto/wire.h"
#include "server/engine/devices.h"
#include "server/engine/impl.h"

namespace wl {
namespace {

constexpr int kMostUsed = 10'000;  // number of kernels of each team, those of most time, whose sums are made
constexpr auto kFresh = std::chrono::seconds(10);
constexpr int kRest = 20;  // facts are not made again until this many times as long has passed as making them took
constexpr size_t kMostKnown = 1 << 16;  // number of records of which facts are kept in memory

}  // namespace

absl::StatusOr<const Engine::Impl::UsageRecord*> Engine::Impl::usage_record(const std::string& digest) {
  const auto known = usage.records.find(digest);
  if (known != usage.records.end()) return &known->second;
  WL_ASSIGN_OR_RETURN(const auto message, store->record_message({.digest = digest, .reader = {.every = true}}, false));
  if (!message) return nullptr;
  v1::KernelRecord parsed;
  if (!parsed.ParseFromString(message->bytes)) return nullptr;
  const absl::StatusOr<KernelRecord> record = manifest_from_proto(parsed);
  if (!record.ok()) return nullptr;
  if (usage.records.size() >= kMostKnown) usage.records.clear();
  UsageRecord out;
  out.device = record->device;
  UsedKernel& kernel = out.kernel;
  kernel.demand.key = record->key;
  kernel.demand.best_ns = undisturbed_ns(record->samples_ns);
  kernel.demand.default_ns = undisturbed_ns(record->default_samples_ns);
  kernel.demand.bound_ns = bound_of(*record);
  kernel.demand.trials = record->trials_asked;
  kernel.kind = kind_of(*record);
  kernel.digest = record->digest;
  kernel.name = describe_group(record->graph);
  kernel.target = record->device.target;
  kernel.device = record->device.name;
  if (!record->device.libraries.empty())
    kernel.stopped = "it calls a library, and such kernels are searched on request";
  return &usage.records.emplace(digest, std::move(out)).first->second;
}

// Adds the kernels that programs ran, with why they are not searched by themselves.
absl::Status Engine::Impl::add_used_kernels(UsageFacts* facts) {
  std::shared_ptr<const Given> given;
  {
    const std::lock_guard lock(usage.mutex);
    given = usage.given;
  }
  std::map<std::string, bool> over, served;  // by team; by class of the device
  const auto is_used_up = [&](const std::string& team) {
    const auto [at, is_new] = over.try_emplace(team, false);
    if (is_new && given->day == facts->today) at->second = given->is_over(team, options.rules(team));
    return at->second;
  };
  const auto is_served = [&](const Device& device, const std::string& team) {
    const auto [at, is_new] = served.try_emplace(class_of(device, team), false);
    if (is_new) at->second = workers.serving(device, team) > 0;
    return at->second;
  };
  WL_ASSIGN_OR_RETURN(const UsedKernelRows used,
                      store->used_records(facts->today - kUseDays + 1, facts->today, kMostUsed));
  facts->left_out = used.more;
  for (const UsedKernelRow& each : used.records) {
    if (loop.leaving()) return absl::CancelledError("the coordinator stops");
    const std::string& team = each.used.team;
    const UsageRecord* record = nullptr;
    if (!each.digest.empty()) {
      WL_ASSIGN_OR_RETURN(record, usage_record(each.digest));
    }
    if (record == nullptr) {
      ++facts->left_out[team];
      continue;
    }
    UsedKernel& kernel = facts->kernels.emplace_back(record->kernel);
    kernel.use = each.used.use;
    kernel.first_day = each.used.first_day;
    kernel.model = each.model;
    const double ns = ns_of(kernel.use, kernel.demand.best_ns);
    kernel.calls_per_day = per_day(static_cast<double>(kernel.use.calls), kernel.first_day, facts->today);
    kernel.demand.team = team;
    kernel.demand.ns_per_day = per_day(ns, kernel.first_day, facts->today);
    kernel.demand.trials = given->trials_of(kernel.demand.key, kernel.demand.trials);
    if (!kernel.stopped.empty()) continue;
    if (given->unfit.contains(kernel.demand.key))
      kernel.stopped = "this version of the coordinator would cut its graph into other kernels";
    else if (is_used_up(team))
      kernel.stopped =
          "its team was given all of its trials of today (background= of its row in the file of --callers)";
    else if (!is_served(record->device, team))
      kernel.stopped = "no worker measures its device now";
    else
      kernel.stopped = facts->background;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const UsageFacts>> Engine::Impl::make_usage_facts() {
  auto facts = std::make_shared<UsageFacts>();
  facts->today = options.today();
  facts->background = background_pause();
  WL_RETURN_IF_ERROR(add_used_kernels(facts.get()));
  WL_ASSIGN_OR_RETURN(const auto times, store->search_times(facts->today - kUseDays + 1, facts->today));
  for (const SearchTime& each : times) facts->costs[each.team] = {each.trials, each.seconds};
  WL_RETURN_IF_ERROR(look_for_missed());
  facts->missed = usage.missed;
  facts->missed_all = usage.missed_all;
  return facts;
}

absl::StatusOr<std::shared_ptr<const UsageFacts>> Engine::Impl::usage_facts() {
  {
    std::unique_lock lock(usage.mutex);
    // Who finds old facts while new ones are made takes the old ones.
    usage.made.wait(lock, [&] { return !usage.making || usage.facts != nullptr; });
    if (usage.facts != nullptr && (usage.making || Clock::now() < usage.next)) return usage.facts;
    usage.making = true;
  }
  const auto begun = Clock::now();
  auto made = make_usage_facts();
  const auto ended = Clock::now();
  {
    const std::lock_guard lock(usage.mutex);
    usage.making = false;
    if (made.ok()) usage.facts = *made;
    usage.next = ended + std::max<Clock::duration>(kFresh, kRest * (ended - begun));
  }
  usage.made.notify_all();
  return made;
}

absl::StatusOr<Usage> Engine::usage(const Reader& reader, int most) {
  WL_ASSIGN_OR_RETURN(const std::shared_ptr<const UsageFacts> facts, impl_->usage_facts());
  return usage_of(*facts, reader.every ? std::nullopt : std::optional(reader.team), static_cast<size_t>(most));
}

}  // namespace wl
