#include "server/metrics/metrics.h"

#include <google/protobuf/descriptor.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>

#include "proto/protocol.h"

namespace wl {
namespace {

namespace pm = prometheus;

// Bucket limits of the histograms of calls and transactions, in seconds: the shortest are for answers from memory, the
// longest for answers that wait for disks.
const pm::Histogram::BucketBoundaries kBuckets = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                  0.1,    0.25,  0.5,    1,     2.5,  5,     10};

// Bucket limits of the histograms of searches, in seconds: the shortest are for one round of a small group, the
// longest for a search of several hours.
const pm::Histogram::BucketBoundaries kSearchBuckets = {0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 1200, 3600, 14400};

std::set<std::string> methods_of_protocol() {
  std::set<std::string> names;
  for (const google::protobuf::FileDescriptor* file : protocol_files())
    for (int s = 0; s < file->service_count(); ++s)
      for (int m = 0; m < file->service(s)->method_count(); ++m)
        names.insert("/" + file->service(s)->full_name() + "/" + file->service(s)->method(m)->name());
  return names;
}

}  // namespace

struct Metrics::Impl {
  pm::Family<pm::Counter>& counters(const char* name, const char* help) {
    return pm::BuildCounter().Name(name).Help(help).Register(registry);
  }
  pm::Family<pm::Gauge>& gauges(const char* name, const char* help) {
    return pm::BuildGauge().Name(name).Help(help).Register(registry);
  }

  pm::Histogram& histogram(const char* name, const char* help) {
    return pm::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, kSearchBuckets);
  }
  struct Lookups {
    explicit Lookups(pm::Family<pm::Counter>& family)
        : hits(family.Add({{"result", "hit"}})), misses(family.Add({{"result", "miss"}})) {}
    void add(int64_t found, int64_t missing) const {
      hits.Increment(static_cast<double>(found));
      misses.Increment(static_cast<double>(missing));
    }
    pm::Counter &hits, &misses;
  };

  pm::Registry registry;
  const std::set<std::string> methods = methods_of_protocol();
  pm::Family<pm::Counter>& calls = counters("warploom_rpc_requests_total", "Calls that have ended.");
  pm::Family<pm::Histogram>& seconds = pm::BuildHistogram()
                                           .Name("warploom_rpc_duration_seconds")
                                           .Help("Time of calls, but for those that wait for something to happen.")
                                           .Register(registry);
  pm::Histogram& commits = pm::BuildHistogram()
                               .Name("warploom_store_commit_duration_seconds")
                               .Help("Time of a commit of the store, which may have many writes; fsync included.")
                               .Register(registry)
                               .Add({}, kBuckets);
  pm::Family<pm::Counter>& trials = counters("warploom_trials_total", "Candidates that were measured or given up.");
  pm::Family<pm::Counter>& ended = counters("warploom_leases_lost_total", "Leases that ended without a report.");
  pm::Family<pm::Counter>& asked = counters("warploom_upstream_requests_total", "What was asked of the upstream.");
  pm::Family<pm::Counter>& offered = counters("warploom_upstream_offers_total", "Records offered to the upstream.");
  pm::Family<pm::Gauge>& upstream = gauges("warploom_upstream_up", "Whether the upstream can be reached.");
  pm::Family<pm::Counter>& again =
      counters("warploom_reverified_total", "Kernels of other compilers or drivers that were verified again.");
  pm::Family<pm::Counter>& done = counters("warploom_jobs_ended_total", "Jobs that are done.");
  Lookups fetches{counters("warploom_kernel_fetches_total", "Records that clients asked for by key or digest.")};
  Lookups groups{counters("warploom_job_groups_total",
                          "Groups of jobs: hits have a record that is good enough in the store, misses are searched.")};
  pm::Histogram& first = histogram("warploom_search_first_kernel_seconds",
                                   "Time from the beginning of a search to its first right kernel.");
  pm::Histogram& best = histogram("warploom_search_best_kernel_seconds",
                                  "Time from the beginning of a search to the kernel that was the fastest at its end.");
  // The following metrics are set in text(), when Prometheus asks for them.
  pm::Family<pm::Gauge>& ready = gauges("warploom_queue_candidates", "Candidates that wait for a worker.");
  pm::Family<pm::Gauge>& jobs = gauges("warploom_jobs", "Jobs that are not done.");
  pm::Family<pm::Gauge>& workers = gauges("warploom_workers", "Workers that have registered within the last hour.");
  pm::Gauge& leases = gauges("warploom_leases", "Batches that workers have.").Add({});
  pm::Gauge& drained = gauges("warploom_drained", "Whether workers get no new work.").Add({});
  pm::Gauge& database = gauges("warploom_store_database_bytes", "Size of the database.").Add({});
  pm::Gauge& log = gauges("warploom_store_log_bytes", "Size of its write-ahead log.").Add({});
  pm::Gauge& objects = gauges("warploom_store_objects_bytes", "Size of the compiled objects.").Add({});
  pm::Gauge& heap = gauges("warploom_heap_bytes", "Memory that allocations hold.").Add({});
  pm::Gauge& resident = gauges("process_resident_memory_bytes", "Resident memory size.").Add({});
  pm::Gauge& descriptors = gauges("process_open_fds", "Open file descriptors.").Add({});
  pm::Gauge& started = gauges("process_start_time_seconds", "Start time since the Unix epoch.").Add({});
  pm::Counter& processor = counters("process_cpu_seconds_total", "User and system time.").Add({});
  std::mutex text_lock;  // held during text(), so that one call of it runs at a time
  double processor_s = 0;
  std::map<std::string, pm::Gauge*> ready_of;  // the gauges of candidates that wait for a worker, by target
};

CoordinatorState process_state() {
  CoordinatorState out;
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  for (const timeval& time : {used.ru_utime, used.ru_stime})
    out.processor_s += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  std::error_code none;
  for (auto at = std::filesystem::directory_iterator("/proc/self/fd", none);
       at != std::filesystem::directory_iterator(); at.increment(none))
    ++out.descriptors;
  return out;
}

std::string usage_text(const Usage& usage) {
  pm::Registry registry;
  const auto gauges = [&](const char* name, const char* help) -> pm::Family<pm::Gauge>& {
    return pm::BuildGauge().Name(name).Help(help).Register(registry);
  };
  pm::Family<pm::Gauge>& time =
      gauges("warploom_kernel_time_seconds", "Time of programs in kernels, of the last week.");
  pm::Family<pm::Gauge>& calls = gauges("warploom_kernel_calls", "Launches of kernels by programs, of the last week.");
  pm::Family<pm::Gauge>& saved =
      gauges("warploom_kernel_saved_seconds", "Time that these launches would have taken longer by default schedules.");
  pm::Family<pm::Gauge>& cost =
      gauges("warploom_search_time_seconds", "Time of workers in searches, of the last week.");
  pm::Family<pm::Gauge>& missed =
      gauges("warploom_missed_jobs", "Jobs of the last week that did not find their kernels and were not to search.");
  for (const TeamUsage& team : usage.teams) {
    for (size_t kind = 0; kind < kUseKinds; ++kind) {
      time.Add({{"team", team.team}, {"kind", kUseKindNames[kind]}}).Set(team.sum.ns[kind] / 1e9);
      calls.Add({{"team", team.team}, {"kind", kUseKindNames[kind]}}).Set(static_cast<double>(team.sum.calls[kind]));
    }
    saved.Add({{"team", team.team}}).Set(team.saved_ns / 1e9);
    cost.Add({{"team", team.team}}).Set(team.cost_s);
    missed.Add({{"team", team.team}}).Set(static_cast<double>(team.missed));
  }
  return pm::TextSerializer().Serialize(registry.Collect());
}

Metrics::Metrics(std::span<const char* const> lease_ends) : impl_(std::make_unique<Impl>()) {
  impl_->gauges("warploom_build_info", "Always 1; its labels say what runs.")
      .Add({{"version", WARPLOOM_VERSION}})
      .Set(1);
  impl_->started.Set(static_cast<double>(time(nullptr)));
  for (const char* outcome : kOutcomeNames) impl_->trials.Add({{"outcome", outcome}});
  for (const char* outcome : {"kept", "moved", "lost"}) impl_->again.Add({{"outcome", outcome}});
  for (const char* why : lease_ends) impl_->ended.Add({{"reason", why}});
  for (int state = 0; state < kJobStateCount; ++state)
    if (is_done(static_cast<JobState>(state))) impl_->done.Add({{"state", kJobStateNames[state]}});
}

Metrics::~Metrics() = default;

void Metrics::call_ended(const std::string& method, const std::string& code, double seconds, bool waits) {
  const std::string name = impl_->methods.contains(method) ? method.substr(1) : "unknown";
  impl_->calls.Add({{"method", name}, {"code", code}}).Increment();
  if (!waits) impl_->seconds.Add({{"method", name}}, kBuckets).Observe(seconds);
}

void Metrics::trials_stored(const std::vector<Trial>& trials) {
  for (const Trial& trial : trials)
    impl_->trials.Add({{"outcome", kOutcomeNames[static_cast<size_t>(trial.outcome)]}}).Increment();
}

void Metrics::commit_ended(double seconds) {
  impl_->commits.Observe(seconds);
}

void Metrics::lease_ended(const std::string& why) {
  impl_->ended.Add({{"reason", why}}).Increment();
}

void Metrics::upstream_asked(const std::string& outcome) {
  impl_->asked.Add({{"outcome", outcome}}).Increment();
}

void Metrics::upstream_offered(const std::string& outcome) {
  impl_->offered.Add({{"outcome", outcome}}).Increment();
}

void Metrics::reverified(const std::string& outcome) {
  impl_->again.Add({{"outcome", outcome}}).Increment();
}

void Metrics::fetched(int64_t hits, int64_t misses) {
  impl_->fetches.add(hits, misses);
}

void Metrics::looked_up(int64_t hits, int64_t misses) {
  impl_->groups.add(hits, misses);
}

void Metrics::job_ended(JobState state) {
  impl_->done.Add({{"state", kJobStateNames[static_cast<int>(state)]}}).Increment();
}

void Metrics::first_kernel(double seconds) {
  impl_->first.Observe(seconds);
}

void Metrics::best_kernel(double seconds) {
  impl_->best.Observe(seconds);
}

std::string Metrics::text(const CoordinatorState& state) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.text_lock);
  for (const auto& [target, gauge] : impl.ready_of) gauge->Set(0);
  for (const auto& [target, count] : state.ready_candidates) {
    pm::Gauge*& gauge = impl.ready_of[target];
    if (gauge == nullptr) gauge = &impl.ready.Add({{"target", target}});
    gauge->Set(static_cast<double>(count));
  }
  const std::pair<pm::Gauge*, int64_t> rows[] = {
      {&impl.jobs.Add({{"state", "queued"}}), state.queued_jobs},
      {&impl.jobs.Add({{"state", "running"}}), state.running_jobs},
      {&impl.workers.Add({{"state", "alive"}}), state.workers_alive},
      {&impl.workers.Add({{"state", "gone"}}), state.workers_gone},
      {&impl.leases, state.leases},
      {&impl.drained, state.drained ? 1 : 0},
      {&impl.database, state.database_bytes},
      {&impl.log, state.log_bytes},
      {&impl.objects, state.objects_bytes},
      {&impl.heap, state.heap_bytes},
      {&impl.resident, state.resident_bytes},
      {&impl.descriptors, state.descriptors},
  };
  if (state.upstream_up) impl.upstream.Add({}).Set(*state.upstream_up ? 1 : 0);
  for (const auto& [gauge, value] : rows) gauge->Set(static_cast<double>(value));
  impl.processor.Increment(std::max(0.0, state.processor_s - impl.processor_s));
  impl.processor_s = std::max(impl.processor_s, state.processor_s);
  return pm::TextSerializer().Serialize(impl.registry.Collect());
}

std::function<void(const char*)> commit_timer(Metrics* metrics) {
  using Clock = std::chrono::steady_clock;
  return [metrics, begun = Clock::time_point()](const char* point) mutable {
    if (std::strcmp(point, "commit") == 0) begun = Clock::now();
    if (std::strcmp(point, "committed") == 0)
      metrics->commit_ended(std::chrono::duration<double>(Clock::now() - begun).count());
  };
}

}  // namespace wl
