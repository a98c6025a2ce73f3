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
  DialOptions dial;                                  // how it is called
  std::string signers;                               // file of the keys that may sign records; empty: any
  std::string store;                                 // path of the embedded store; empty = in the user's cache folder
  std::string log_format = "text";                   // or "json"
  int64_t end_with = 0;                              // id of a process; this one ends when it has ended; 0: none
  std::string json;                                  // path of the JSON report; "-" is stdout, empty writes none
  std::string html;                                  // path of the report as a page; empty: none
  std::string progress = "auto";                     // a ProgressForm, or "auto"
  bool build_locally = false;                        // compile kernels here, from their sources
  bool trust_workers = false;                        // use objects for which nobody but their workers gives a word
  std::string out;                                   // folder in which to write the bundle or export
  std::string export_name;                           // of an export; empty: as `out` is named
  bool export_run = false;                           // whether an export may run the bundle's kernels
  std::map<std::string, std::vector<int64_t>> bind;  // extents to tune for, by symbolic dimension
  std::vector<std::string> weights;                  // inputs of canonical text whose values stay the same
  bool allow_tf32 = false;                           // products of f32 may have factors of tf32
  TuneOptions tune;
  double wait_for_worker_s = 0;  // of a job without a worker; 0: for ever
  std::string trace;             // of the jobs; empty: as trace_of_job() says
  RunOptions run;
  std::string stage = "graph";  // stage of the compiler that `inspect` shows
  bool simplify_only = false;
  bool why = false;                  // whether `inspect` explains the groups
  std::string svg;                   // file for the picture of the groups that `inspect` draws
  int most = 100;                    // largest number of rows in a listing
  int jobs_at_once = 8;              // of a batch, at a coordinator
  bool once = false;                 // `top` looks once
  bool cancel_on_interrupt = false;  // Ctrl-C on `watch` ends the job
  double interval_s = 1;             // between two looks of `top`
  struct {
    std::string target;  // whose kernels are verified again; empty: of any
    bool again = false, status = false, watch = false;
  } reverify = {};
};

}  // namespace wl
