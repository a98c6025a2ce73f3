// The commands tune, watch and get: they create a job, follow it, and write its report and bundle.
#pragma once

#include <string>

#include "client/cli/cli.h"
#include "client/cli/options.h"

namespace wl {

// What commands write from the results of jobs, and whose compiled kernels they use.
struct ResultOptions {
  // Folder in which to write the bundle (of a key: source, object and record); empty: none is written.
  std::string out = {};
  TrustOptions trust = {};
  ReportOptions report = {};
};

struct TuneCommandOptions {
  GraphOptions graph;
  ResultOptions result;
  JobOptions job;
  std::string progress = "auto";  // form of the progress display: "auto", "plain" or "json"
};

struct WatchOptions {
  std::string job;  // name of the job
  ReportOptions report;
  std::string progress = "auto";     // as TuneCommandOptions::progress
  bool cancel_on_interrupt = false;  // whether Ctrl-C also ends the job
};

struct GetOptions {
  GraphOptions graph;  // `file` may also be a key or its first digits
  ResultOptions result;
};

absl::StatusOr<int> tune_command(Context& context, const TuneCommandOptions& options);
absl::StatusOr<int> watch_command(Context& context, const WatchOptions& options);
absl::StatusOr<int> get_command(Context& context, const GetOptions& options);

}  // namespace wl
