// The report of a tuning job: JSON for programs (docs/report.md documents every key) and tables for people.
#pragma once

#include <string>
#include <vector>

#include "client/program/bucket.h"
#include "compiler/base/job.h"

namespace wl {

inline constexpr int kReportFormat = 1;

// Of a job with a result. `bind`: the extents that symbolic dimensions were given. `file` is what the user named.
// `stable` leaves out what is not stored (file, wall clock, whether the answer was cached): the same records give the
// same bytes.
std::string report_json(const Job& job, const Bind& bind, const std::string& file, bool stable);

// The reports of one graph at several sizes; a single one is itself.
struct SizedReport {
  Bind bind;
  std::string report;
};
std::string reports_json(const std::vector<SizedReport>& reports);

// One record as JSON, with its source text.
std::string record_json(const KernelRecord& record);

// What a group does, in a few words: "contract+add+erf f32[512,3072]".
std::string describe_group(const std::string& graph_text);

std::string time_text(double ns);   // "1.23 ms"
std::string number_text(double x);  // "1.2e-06", three digits

// By how much the usual sample of the chosen kernels is above the fastest, by time: 0.02 to 0.1 on an idle CPU. What is
// much more was measured beside other work.
double spread_of(const JobResult& result);

// The table that ends `tune`.
std::string report_table(const Job& job, bool colour);

}  // namespace wl
