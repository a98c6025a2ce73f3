// What programs ran in the last days, as the RPC KernelStore.GetUsage returns it: plain data and its conversion. The
// fields are explained in kernel_store.proto.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/status.h"
#include "nlohmann/json_fwd.hpp"
#include "warploom/v1/kernel_store.pb.h"

namespace wl {

namespace v1 = ::warploom::v1;

// How a kernel came about. kTuned: a search of several candidates chose it. kPredicted: its plan is not the default
// one, but was taken over from elsewhere without such a search. kDefault: it has the default schedule.
enum class UseKind : uint8_t { kTuned, kPredicted, kDefault };
inline constexpr int kUseKinds = 3;
inline constexpr const char* kUseKindNames[] = {"tuned", "predicted", "default"};

// Time in ns and calls, each indexed by UseKind.
struct UseSum {
  std::array<double, kUseKinds> ns{};
  std::array<int64_t, kUseKinds> calls{};
  double all_ns() const { return ns[0] + ns[1] + ns[2]; }
  int64_t all_calls() const { return calls[0] + calls[1] + calls[2]; }
  bool operator==(const UseSum&) const = default;
};

struct UsageShare {
  std::string name;  // the team (empty: none), the device or the model (empty: not known)
  UseSum sum;
  bool operator==(const UsageShare&) const = default;
};

struct TeamUsage {
  std::string team;
  UseSum sum;
  double saved_ns = 0, cost_s = 0;
  int64_t trials = 0, missed = 0;
  bool operator==(const TeamUsage&) const = default;
};

struct KernelUsage {
  std::string key, digest, name, team, target, device, model;
  UseKind kind = UseKind::kDefault;
  double calls_per_day = 0, ns_per_day = 0;
  double best_ns = 0, default_ns = 0, bound_ns = 0;  // of one launch; 0: not known
  double saving_per_day = 0;                         // ns that the next search is expected to save each day
  int64_t trials = 0;
  std::string stopped;  // why the coordinator does not search the kernel by itself; empty: it may
  bool operator==(const KernelUsage&) const = default;
};

struct MissedUsage {
  std::string team, model, target, device;
  int64_t count = 0, last_unix_ms = 0;
  std::string job, why;
  bool operator==(const MissedUsage&) const = default;
};

struct Usage {
  int64_t days = 0;  // number of days that the sums are of, today included; 0: nothing was counted
  UseSum total;
  std::vector<TeamUsage> teams;
  std::vector<UsageShare> devices, models;
  double saved_ns = 0, cost_s = 0;
  int64_t trials = 0;
  std::vector<KernelUsage> kernels;
  std::vector<MissedUsage> missed;
  int64_t kernels_in_all = 0, missed_in_all = 0;
  int64_t left_out = 0;    // number of kernels that the sums leave out: their records are gone, or they are too many
  std::string background;  // why no search of the coordinator's own begins now; empty: one may
  int64_t more_teams = 0, more_devices = 0, more_models = 0;  // numbers of those that the lists leave out
  bool operator==(const Usage&) const = default;
};

// Numbers of items of the lists of kernels and of graphs: if a request names none, and at most. The lists of shares
// have at most kMostShares items.
inline constexpr int kUsageItems = 50, kMostUsageItems = 500, kMostShares = 32;

v1::Usage to_proto(const Usage& usage);
// Converts a message whose fields were checked (limits.h). InvalidArgument: there is no such kind of kernel.
absl::StatusOr<Usage> from_proto(const v1::Usage& message);

// Parts of a summary as JSON, as the page of usage and `warploom top --json` have them (docs/report.md). The first is
// an object with the seconds and calls of each kind of kernel. Times of a launch that are not known are 0.
nlohmann::ordered_json json_of(const UseSum& sum);
nlohmann::ordered_json json_of(const KernelUsage& kernel);
nlohmann::ordered_json json_of(const MissedUsage& missed);

}  // namespace wl
