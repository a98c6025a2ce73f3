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
  std::string command;  // name of the command, such as "tune" or "run"
  std::string input;    // the positional argument: FILE, DIR, KEY or job name
  // address of the coordinator; empty: one is started in this process
  std::string server;
  DialOptions dial;  // TLS files and token for calls of the coordinator
  // The file of public keys, one of which must have signed a record; empty: signatures are not checked.
  std::string signers;
  std::string store;                // path of the embedded store; empty: it is in the user's cache folder
  std::string log_format = "text";  // form of the log: "text" or "json"
  int64_t end_with = 0;             // id of a process at whose end this process ends; 0: none
  std::string json;                 // path of the JSON report; "-": stdout; empty: no report is written
  std::string html;                 // path of the report as an HTML page; empty: no page is written
  std::string progress = "auto";    // form of the progress display: "auto", "plain" or "json"
  bool build_locally = false;       // whether to compile kernels on this machine, from their sources
  bool trust_workers = false;       // whether to use compiled kernels for which only the workers that sent them vouch
  std::string out;                  // folder in which to write the bundle or export
  std::string export_name;          // name of the exported library; empty: derived from `out`
  bool export_run = false;  // whether an export may run the bundle's kernels to compute what its self-test expects
  std::map<std::string, std::vector<int64_t>> bind;  // for each symbolic dimension, the extents to tune for
  std::vector<std::string> weights;  // names of the inputs that are weights, for a graph in canonical text
  bool allow_tf32 = false;           // whether products of f32 may round factors to tf32
  TuneOptions tune;
  double wait_for_worker_s = 0;  // seconds that a job may wait without a worker; 0: without limit
  std::string trace;             // trace id of the command's jobs; empty: trace_of_job() chooses it
  RunOptions run;
  std::string stage = "graph";  // stage of the compiler whose result `inspect` shows
  bool simplify_only = false;
  bool why = false;                  // whether `inspect` explains the groups
  std::string svg;                   // path of the file to which `inspect` draws the graph's groups; empty: none
  int most = 100;                    // largest number of rows in a listing
  int jobs_at_once = 8;              // largest number of jobs that a batch has at the coordinator at a time
  bool once = false;                 // whether `top` shows the state once and ends
  bool cancel_on_interrupt = false;  // whether Ctrl-C also ends the job that `watch` shows
  double interval_s = 1;             // seconds between two snapshots of `top`
  struct {
    std::string target;  // target or family of targets whose kernels `reverify` verifies again; empty: any
    bool again = false, status = false, watch = false;
  } reverify = {};
};

}  // namespace wl
