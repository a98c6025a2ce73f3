// Who is registered: the workers by name, their devices and when they were last heard from. Every function may be
// called from any thread; none calls another part of the engine, and none holds the lock while it uses the store.
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

// A worker process by name and epoch, as the store writes it beside a lease.
inline std::string process_of(const std::string& name, uint64_t epoch) {
  return cat(name, "#", epoch);
}

// A machine, in a set of principals whose workers are not given a batch.
inline std::string on_machine(const std::string& machine) {
  return "@" + machine;
}

class Workers {
 public:
  // A worker is alive until it was not heard from for two terms. `row`: as EngineOptions::machine_row.
  Workers(Store* store, Clock::duration term, MachineRow row = EngineOptions().machine_row)
      : store_(store), term_(term), row_(std::move(row)) {}

  // Registers a process and returns its epoch. `epoch`: the one that it had before, or 0. Errors as Store::put_worker.
  // A worker of a team serves that team alone, one of none serves all.
  absl::StatusOr<uint64_t> add(const std::string& name, uint64_t epoch, const std::vector<Device>& devices,
                               const std::string& team = "", const std::string& machine = "",
                               const std::vector<MeasuredRates>& rates = {});
  // Notes that the worker asked for work. Returns what it serves; nullopt when it is not registered under this epoch.
  struct Served {
    std::vector<Device> devices;
    std::string team, machine = {};
    std::vector<MeasuredRates> rates = {};  // of the devices, in their order; there may be fewer
  };
  std::optional<Served> heard(const std::string& name, uint64_t epoch);
  void renewed(const std::string& name);  // Notes that it renewed a lease.

  // The machine of a worker, also of one that has gone; empty: not known. May read the store.
  std::string machine_of(const std::string& name) const;
  // Whether these two can have been one: of one principal, or of one machine as far as is known, or one of them is
  // nobody who is known. Nobody confirms itself.
  bool may_be_one(const std::string& a, const std::string& b) const;

  // A process begins or ends to attend. FailedPrecondition: it is not registered under this epoch. ResourceExhausted:
  // it attends several times already.
  absl::Status attend(const std::string& name, uint64_t epoch);
  void left(const std::string& name, uint64_t epoch);
  absl::Status may_attend(const std::string& name, uint64_t epoch);
  // The processes that have left without a word since the last call, by name and epoch.
  std::vector<std::pair<std::string, uint64_t>> take_lost();

  // While one of these lives, the worker waits for work and so is alive.
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

  // Live workers with a device that serves this one, for jobs of this team.
  int serving(const Device& device, const std::string& team) const;
  std::vector<std::string> names_serving(const Device& device, const std::string& team) const;
  // Of these, who waits for work or was heard from in the last seconds: others may be gone although they count as live.
  std::vector<std::string> names_here(const Device& device, const std::string& team) const;
  std::vector<std::string> names_waiting(const Device& device, const std::string& team) const;  // for work
  Clock::duration away() const;  // after so much silence a worker is not here
  void forget_dead();            // Workers that have been silent for long are no longer listed.
  // The device that `asked` means: the one that is given, else of the team's live worker that was heard from last, else
  // of the machine that the store saw last. NotFound: none ever registered.
  absl::StatusOr<Device> device_for(const TuneOptions& asked, const std::string& team) const;
  // What the live worker that was heard from last has measured of this device; without figures: none has.
  MeasuredRates rates_of(const Device& device, const std::string& team) const;
  std::vector<WorkerView> views() const;  // without their leases

 private:
  struct State {
    uint64_t epoch = 0;
    Served serves;
    Clock::time_point heard;
    int64_t heard_ms = 0;
    int waiting = 0;
    int attending = 0;
    std::optional<Clock::time_point> left;  // it attends no more, and was not heard from since
    bool lost = false;                      // take_lost() has said so
  };
  static bool is_here(const State& worker, Clock::duration silence);  // waits for work, or was silent for less
  static bool has_left(const State& worker);
  static void note(State* worker);  // it was heard from
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
