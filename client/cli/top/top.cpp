#include "client/cli/top/top.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "client/cli/exit_code.h"
#include "client/cli/table.h"
#include "client/cli/top/terminal.h"
#include "client/cli/top/view.h"
#include "client/program/files.h"

namespace wl {
namespace {

using Steady = std::chrono::steady_clock;

constexpr auto kLookPatience = std::chrono::seconds(10);  // time limit of one call to the coordinator
constexpr auto kRedraw = std::chrono::milliseconds(1000);

// Whether the same call may succeed later, because the error says that the coordinator is unreachable or busy. Other
// errors end the command.
bool may_pass_later(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

// Takes snapshots on a thread of its own, so that keys work while the coordinator does not answer.
class Looker {
 public:
  // `told` is called on the object's thread after every snapshot or error.
  Looker(const Service& service, std::string server, std::chrono::milliseconds interval, std::function<void()> told)
      : server_(std::move(server)),
        interval_(interval),
        told_(std::move(told)),
        service_(service.limited(kLookPatience, stop_.get_token())),
        thread_([this] { look(); }) {}
  ~Looker() {
    stop_.request_stop();
    thread_.join();
  }
  Looker(const Looker&) = delete;
  Looker& operator=(const Looker&) = delete;

  struct Seen {
    Snapshot snapshot;    // the last snapshot of the coordinator
    absl::Status error;   // error of the last attempt to take a snapshot; OK if the attempt succeeded
    int64_t answers = 0;  // number of attempts to take a snapshot that have ended
    Steady::time_point answered = Steady::now();  // time of the last snapshot; before the first: of the construction
  };
  Seen seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  void look() {
    std::mutex none;
    std::condition_variable_any over;
    const std::stop_token stop = stop_.get_token();
    while (!stop.stop_requested()) {
      absl::StatusOr<Snapshot> snapshot = take_snapshot(service_, server_, seen().snapshot);
      if (stop.stop_requested()) return;
      {
        const std::lock_guard lock(mutex_);
        ++seen_.answers;
        seen_.error = snapshot.status();
        if (snapshot.ok()) {
          seen_.snapshot = *std::move(snapshot);
          seen_.answered = Steady::now();
        }
      }
      told_();
      std::unique_lock lock(none);
      over.wait_for(lock, stop, interval_, [] { return false; });
    }
  }

  const std::string server_;
  const std::chrono::milliseconds interval_;
  const std::function<void()> told_;
  std::stop_source stop_;
  Service service_;
  std::mutex mutex_;
  Seen seen_;
  std::thread thread_;  // the last member, since the thread uses the other members
};

absl::Status append_line(const std::string& file, const std::string& line) {
  if (file.empty() || file == "-") return write_report(file, line);
  std::FILE* out = std::fopen(file.c_str(), "a");
  if (out == nullptr) return invalid("cannot write ", file);
  const bool written = std::fputs(line.c_str(), out) >= 0;
  return std::fclose(out) == 0 && written ? absl::OkStatus() : absl::ResourceExhaustedError("cannot write " + file);
}

absl::StatusOr<int> draw_until_quit(Context& context, const TopOptions& options) {
  const std::chrono::milliseconds interval(static_cast<int64_t>(1000 * options.interval_s));
  const bool colour = wants_colour(1);
  absl::Status wrong;
  {
    Terminal terminal;
    Looker looker(context.service, context.connection.server, interval, [&] { terminal.wake(); });
    RateMeter meter;
    Rates rates;
    int64_t answers = 0;
    bool usage = false;  // which screen is shown
    Terminal::Event event = Terminal::Event::kDraw;
    while (event != Terminal::Event::kQuit && wrong.ok()) {
      const Looker::Seen seen = looker.seen();
      if (seen.answers != std::exchange(answers, seen.answers) && seen.error.ok()) {
        rates = meter.add(seen.snapshot);
        wrong = append_line(options.json, json_line(seen.snapshot, rates));
      }
      if (!seen.error.ok() && !may_pass_later(seen.error)) wrong = seen.error;
      Snapshot shown = seen.snapshot;
      shown.server = context.connection.server;  // until the coordinator answers, the snapshot has no address
      TopTrouble trouble;
      trouble.message = std::string(seen.error.message());
      trouble.since_s = std::chrono::duration_cast<std::chrono::seconds>(Steady::now() - seen.answered).count();
      if (seen.error.ok() && trouble.since_s > 3 + 2 * interval / std::chrono::seconds(1))
        trouble.message = "the coordinator does not answer";
      const TopSize size = {.rows = terminal.rows(), .columns = terminal.columns()};
      terminal.draw(usage ? usage_lines(shown, trouble, size, colour)
                          : top_lines(shown, trouble.message.empty() ? rates : Rates(), trouble, size, colour));
      event = terminal.wait(kRedraw);
      if (event == Terminal::Event::kOther) usage = !usage;
    }
  }
  WL_RETURN_IF_ERROR(wrong);
  return kExitDone;
}

// Writes a line of JSON for each snapshot until the process is ended, or one line with --once.
absl::StatusOr<int> write_lines(Context& context, const TopOptions& options) {
  Service service = context.service.limited(kLookPatience, {});
  RateMeter meter;
  Snapshot before;
  for (;;) {
    const auto snapshot = take_snapshot(service, context.connection.server, before);
    if (!snapshot.ok() && (options.once || !may_pass_later(snapshot.status()))) return snapshot.status();
    WL_RETURN_IF_ERROR(append_line(options.json, snapshot.ok()
                                                     ? json_line(*snapshot, meter.add(*snapshot))
                                                     : json_line(context.connection.server, snapshot.status())));
    if (options.once) return kExitDone;
    if (snapshot.ok()) before = *snapshot;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
  }
}

}  // namespace

absl::StatusOr<int> top_command(Context& context, const TopOptions& options) {
  if (options.json == "-") return write_lines(context, options);
  if (!options.once && Terminal::here()) return draw_until_quit(context, options);
  WL_ASSIGN_OR_RETURN(const Snapshot snapshot, take_snapshot(context.service, context.connection.server));
  const Rates rates = RateMeter().add(snapshot);
  WL_RETURN_IF_ERROR(append_line(options.json, json_line(snapshot, rates)));
  const bool colour = wants_colour(1);
  for (const std::string& line : top_lines(snapshot, rates, {}, {}, colour)) std::printf("%s\n", line.c_str());
  if (snapshot.usage && snapshot.usage->kernels_in_all + snapshot.usage->missed_in_all > 0) {
    std::printf("\n");
    for (const std::string& line : usage_lines(snapshot, {}, {}, colour)) std::printf("%s\n", line.c_str());
  }
  return kExitDone;
}

}  // namespace wl
