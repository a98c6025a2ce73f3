// The registered workers, by name, with their devices and the time when they were last heard from. All functions may be
// called from any thread. No function calls another part of the engine, or holds the mutex while it uses the store.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/event_loop.h"

namespace wl {

// Returns the name of a worker process (NAME#EPOCH), as the store keeps it with a lease.
inline std::string process_of(const std::string& name, uint64_t epoch) {
  return cat(name, "#", epoch);
}

// Returns the entry that stands for a machine in a set of workers and principals that must not get a batch.
inline std::string on_machine(const std::string& machine) {
  return "@" + machine;
}

class Workers {
 public:
  // A worker counts as alive until it has been silent for two lease terms. `row`: as in EngineOptions::machine_row.
  Workers(Store* store, Clock::duration term, MachineRow row = EngineOptions().machine_row)
      : store_(store), term_(term), row_(std::move(row)) {}

  // Registers a process and returns its epoch. `epoch`: the one that the process had before, or 0. A worker of a team
  // serves only that team; a worker without a team serves all. Errors are those of Store::put_worker.
  absl::StatusOr<uint64_t> add(const std::string& name, uint64_t epoch, const std::vector<Device>& devices,
                               const std::string& team = "", const std::string& machine = "",
                               const std::vector<MeasuredRates>& rates = {});
  // Notes that the worker asked for work. Returns the worker's devices with its team, machine and rates; nullopt if
  // the worker is not registered under this epoch.
  struct Served {
    std::vector<Device> devices;
    std::string team, machine = {};
    std::vector<MeasuredRates> rates = {};  // measured rates of the devices, in their order, possibly fewer
  };
  std::optional<Served> heard(const std::string& name, uint64_t epoch);
  void renewed(const std::string& name);  // Notes that the worker renewed a lease.

  // Returns the machine of a worker, even if it is gone; empty: unknown. May read the store.
  std::string machine_of(const std::string& name) const;
  // Whether two workers may not be independent: they have one principal or one machine, or the principal or machine of
  // one is unknown. Such workers do not confirm each other.
  bool may_be_one(const std::string& a, const std::string& b) const;

  // attend() and left() note that a worker process begins and ends a call of Attend. may_attend() only checks the
  // process's epoch. FailedPrecondition: the process is not registered under this epoch. ResourceExhausted, from
  // attend() alone: the process has too many open calls of Attend.
  absl::Status attend(const std::string& name, uint64_t epoch);
  void left(const std::string& name, uint64_t epoch);
  absl::Status may_attend(const std::string& name, uint64_t epoch);
  // Returns, by name and epoch, the worker processes that were lost since the last call of this function: their last
  // call of Attend ended, and they were not heard from within a second afterwards.
  std::vector<std::pair<std::string, uint64_t>> take_lost();

  // While such an object lives, its worker counts as waiting for work, and so as alive.
  class Waiting {
   public:
    Waiting(Workers* workers, std::string name, uint64_t epoch);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Workers* workers_;
    const std::string name_;
    const uint64_t epoch_;
  };

  // Return the number, or names, of the live workers that serve this team with a device that can do the work of
  // `device`.
  int serving(const Device& device, const std::string& team) const;
  std::vector<std::string> names_serving(const Device& device, const std::string& team) const;
  // As names_serving(), but only workers that wait for work or were heard from within away(). The others may be gone,
  // although they still count as live.
  std::vector<std::string> names_here(const Device& device, const std::string& team) const;
  // As names_serving(), but only workers that wait for work.
  std::vector<std::string> names_waiting(const Device& device, const std::string& team) const;
  Clock::duration away() const;  // returns the time of silence after which a worker may be gone
  void forget_dead();            // Forgets workers that have been silent for an hour.
  // Returns the device for a job with the options `asked`: the one that they name; else a suitable one of the team's
  // live workers, the last heard from first; else one of the store, the last seen first. NotFound: no suitable device
  // was ever registered. FailedPrecondition: no device has the library that was asked for. InvalidArgument: the options
  // contradict each other.
  absl::StatusOr<Device> device_for(const TuneOptions& asked, const std::string& team) const;
  // Returns the rates that live workers measured on this device (of several, the last heard from); empty if none did.
  MeasuredRates rates_of(const Device& device, const std::string& team) const;
  std::vector<WorkerView> views() const;  // returns all workers, without their leases

 private:
  struct State {
    uint64_t epoch = 0;
    Served serves;
    Clock::time_point heard;
    int64_t heard_ms = 0;
    int waiting = 0;
    int attending = 0;
    // When the worker's last call of Attend ended; empty: the worker was heard from since then.
    std::optional<Clock::time_point> left;
    bool lost = false;  // whether take_lost() has returned this worker
  };
  // Whether the worker waits for work, or was heard from within `silence`.
  static bool is_here(const State& worker, Clock::duration silence);
  static bool has_left(const State& worker);
  static void note(State* worker);  // notes that the worker was heard from now
  bool alive(const State& worker) const;
  std::vector<std::string> names(const Device& device, const std::string& team,
                                 const std::function<bool(const State&)>& which) const;
  State* registered(const std::string& name, uint64_t epoch);
  std::string placed(const std::string& name, std::string said) const;

  Store* const store_;
  const Clock::duration term_;
  const MachineRow row_;
  mutable std::mutex mutex_;
  std::map<std::string, State> workers_;
};

}  // namespace wl
