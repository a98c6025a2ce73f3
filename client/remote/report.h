// The report of a tuning job as JSON (docs/report.md documents every key), and the texts that tables and pages share.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "client/program/bucket.h"
#include "client/remote/service.h"
#include "compiler/base/job.h"

namespace wl {

// The name of the worker in embedded mode.
inline constexpr const char* kEmbeddedWorker = "embedded";
inline constexpr int kReportFormat = 1;

// Returns the report of a job with a result. `bind`: the extents given to symbolic dimensions. `file` is the path that
// the user named. `stable` leaves out everything that is not stored (file, wall clock, whether the answer was cached),
// so that the same records give the same bytes. `trust_workers`: whether objects were allowed for which only their
// workers vouch (trust.h).
std::string report_json(const Job& job, const Bind& bind, const std::string& file, bool stable, bool trust_workers);

// Returns the keys of the groups whose records were in the store when the job began.
std::set<std::string> cached_keys(const Job& job);
// Returns where a group's record came from: "cached" if its key is in `cached`, otherwise GroupResult::source.
std::string source_of(const Job& job, const GroupResult& group, const std::set<std::string>& cached);

// The report of one graph at one size. reports_json() returns a single report unchanged, and several as one report with
// a list.
struct SizedReport {
  Bind bind;
  std::string report;
};
std::string reports_json(const std::vector<SizedReport>& reports);

// Returns a record as JSON, with its source text.
std::string record_json(const KernelRecord& record);

std::string time_text(double ns);   // formats a time, e.g. "1.23 ms"
std::string number_text(double x);  // formats a number with two significant digits, e.g. "1.2e-06"

// Says how many kernels of jobs a coordinator had in its store, and how much search that saved: "4 of 5 kernels of jobs
// (80 %), which saved 340 s of search"; "-" if there were no jobs.
std::string found_text(const ServerSummary& server);

// Returns by which fraction the median samples of the chosen kernels exceed the fastest ones, weighted by time: 0.02 to
// 0.1 on an idle CPU. A larger spread shows that other programs used the machine.
double spread_of(const JobResult& result);

// Returns why a job that is done has no result; the status decides the exit code of `warploom`.
absl::Status why_no_result(const Job& job);

}  // namespace wl
