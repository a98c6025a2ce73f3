// The command line as data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/cli/run.h"
#include "compiler/base/job.h"
#include "proto/dial.h"

namespace wl {

struct Options {
  std::string command;  // name of the command: "tune", "run", ...
  std::string input;    // the positional argument: FILE, DIR, KEY or job name
  // address of the coordinator; empty: one is started in this process
  std::string server;
  DialOptions dial;                                  // TLS files and token for calls of the coordinator
  std::string signers;                               // file of keys, one of which must sign a record; empty: unchecked
  std::string store;                                 // path of the embedded store; empty = in the user's cache folder
  std::string log_format = "text";                   // or "json"
  int64_t end_with = 0;                              // id of a process at whose end this process ends; 0: none
  std::string json;                                  // path of the JSON report; "-" is stdout, empty writes none
  std::string html;                                  // path of the report as an HTML page; empty: none
  std::string progress = "auto";                     // form of the progress display: "auto", "plain" or "json"
  bool build_locally = false;                        // whether to compile kernels here, from their sources
  bool trust_workers = false;                        // whether to use objects for which only their workers vouch
  std::string out;                                   // folder in which to write the bundle or export
  std::string export_name;                           // name of an export's library; empty: derived from `out`
  bool export_run = false;                           // whether an export may run the bundle's kernels
  std::map<std::string, std::vector<int64_t>> bind;  // extents to tune for, by symbolic dimension
  std::vector<std::string> weights;                  // names of the inputs of canonical text that are weights
  bool allow_tf32 = false;                           // whether products of f32 may round factors to tf32
  TuneOptions tune;
  double wait_for_worker_s = 0;  // how long a job may wait without a worker; 0: for ever
  std::string trace;             // trace id of the jobs; empty: trace_of_job() chooses it
  RunOptions run;
  std::string stage = "graph";  // stage of the compiler that `inspect` shows
  bool simplify_only = false;
  bool why = false;                  // whether `inspect` explains the groups
  std::string svg;                   // file for the picture of the groups that `inspect` draws
  int most = 100;                    // largest number of rows in a listing
  int jobs_at_once = 8;              // largest number of a batch's jobs that are at the coordinator at a time
  bool once = false;                 // whether `top` shows the state once and ends
  bool cancel_on_interrupt = false;  // whether Ctrl-C on `watch` also ends the job
  double interval_s = 1;             // time between two snapshots of `top`
  struct {
    std::string target;  // target or family whose kernels are verified again; empty: any
    bool again = false, status = false, watch = false;
  } reverify = {};
};

}  // namespace wl
