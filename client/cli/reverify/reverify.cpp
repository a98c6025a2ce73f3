#include "client/cli/reverify/reverify.h"

#include <unistd.h>

#include <cstdio>
#include <map>
#include <set>

#include "client/cli/exit_code.h"
#include "client/cli/progress.h"
#include "client/cli/table.h"
#include "client/program/json.h"
#include "client/remote/report.h"

namespace wl {
namespace {

using Outcomes = std::vector<Service::Reverification>;

constexpr size_t kShownKey = 12;  // number of characters that the table shows of a key

// Returns the oldest job that has a waiting kernel and was not followed yet; "" if there is none. `rows` have the
// newest jobs first.
std::string oldest_waiting(const Outcomes& rows, const std::set<std::string>& followed) {
  std::string oldest;
  for (const Service::Reverification& row : rows)
    if (row.outcome == kReverifiedNames[0] && !followed.contains(row.job)) oldest = row.job;
  return oldest;
}

// Shows the progress of jobs that are not done, one job after the other, including jobs that the coordinator creates
// meanwhile.
absl::Status follow(Context& context, const ReverifyOptions& options) {
  std::set<std::string> followed;
  for (bool asked = options.status;;) {
    WL_ASSIGN_OR_RETURN(const Outcomes rows, context.service.list_reverified("", options.most));
    const std::string next = oldest_waiting(rows, followed);
    if (next.empty() && asked) return absl::OkStatus();
    if (next.empty()) {
      // A job verifies a few hundred kernels at most, so more kernels may be left. This call asks for the next job.
      WL_RETURN_IF_ERROR(context.service.reverify(options.target, /*again=*/false).status());
      asked = true;
      continue;
    }
    followed.insert(next);
    asked = options.status;
    ProgressDisplay display(options.progress);
    const auto done = context.service.watch_job(
        next, [&](const Job& job) { display.show(job); },
        [&](bool lost) {
          display.say(lost ? "the coordinator is unreachable; waiting for it" : "the coordinator is back");
        });
    display.clear();
    WL_RETURN_IF_ERROR(done.status());
  }
}

std::string time_or_none(double ns) {
  return ns > 0 ? time_text(ns) : "-";
}

std::string table_of(const Outcomes& rows) {
  Table table({{"outcome"}, {"key"}, {"before", true}, {"now", true}, {"job"}, {"made by"}, {"verified with"}, {"why"}},
              wants_colour(STDOUT_FILENO));
  for (const Service::Reverification& row : rows)
    table.add({row.outcome, row.key.substr(0, kShownKey), time_or_none(row.before_ns), time_or_none(row.ns), row.job,
               row.environment_before, row.environment, row.message.substr(0, row.message.find('\n'))});
  return table.text();
}

std::string summary_of(const std::map<std::string, int64_t>& counts, const Outcomes& rows) {
  if (rows.empty()) return "no kernel of other compilers or drivers waits to be verified, and none was\n";
  std::string out;
  for (const char* name : kReverifiedNames) append(&out, out.empty() ? "" : ", ", counts.at(name), " ", name);
  if (counts.at("lost") > 0) append(&out, "; lost ones are not served here: tune their models again");
  return out + "\n";
}

Json json_of(const std::vector<std::string>& jobs, const std::map<std::string, int64_t>& counts, const Outcomes& rows) {
  Json json = {{"format", kReportFormat}, {"jobs", jobs}, {"counts", counts}, {"records", Json::array()}};
  for (const Service::Reverification& row : rows)
    json["records"].push_back({{"job", row.job},
                               {"digest", row.digest},
                               {"key", row.key},
                               {"environment_before", row.environment_before},
                               {"environment", row.environment},
                               {"outcome", row.outcome},
                               {"plan_before", row.plan_before},
                               {"plan", row.plan},
                               {"before_ns", row.before_ns},
                               {"ns", row.ns},
                               {"message", row.message}});
  return json;
}

}  // namespace

absl::StatusOr<int> reverify_command(Context& context, const ReverifyOptions& options) {
  std::vector<std::string> jobs;
  if (!options.status) {
    WL_ASSIGN_OR_RETURN(jobs, context.service.reverify(options.target, options.again));
  }
  if (options.watch) WL_RETURN_IF_ERROR(follow(context, options));
  WL_ASSIGN_OR_RETURN(const Outcomes rows, context.service.list_reverified("", options.most));
  std::map<std::string, int64_t> counts;
  for (const char* name : kReverifiedNames) counts[name] = 0;
  for (const Service::Reverification& row : rows) ++counts[row.outcome];
  WL_RETURN_IF_ERROR(write_report(options.json, text_of(json_of(jobs, counts, rows))));
  if (options.json == "-") return kExitDone;
  if (!rows.empty()) std::fputs(table_of(rows).c_str(), stdout);
  std::fputs(summary_of(counts, rows).c_str(), stdout);
  return kExitDone;
}

}  // namespace wl
