// The options that several commands have. What only one command has is in the header beside that command.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "proto/dial.h"

namespace wl {

// Where the coordinator is, and how it is called.
struct ConnectionOptions {
  std::string server;  // address of the coordinator; empty: one is started in this process
  DialOptions dial;    // TLS files and token for calls of the coordinator
  // The file of public keys, one of which must have signed a record; empty: signatures are not checked.
  std::string signers;
  std::string store;  // path of the embedded store; empty: it is in the user's cache folder
};

// Where the report of a job is written.
struct ReportOptions {
  std::string json = {};  // path of the JSON report; "-": stdout; empty: no report is written
  std::string html = {};  // path of the report as an HTML page; empty: no page is written
};

// Whose objects (compiled kernels) are used.
struct TrustOptions {
  bool build_locally = false;  // whether to compile kernels on this machine, from their sources
  bool trust_workers = false;  // whether to use compiled kernels for which only the workers that sent them vouch
};

using BindValues = std::map<std::string, std::vector<int64_t>>;  // for each symbolic dimension, its extents

// The graph that a command is about, and how its kernels are searched for.
struct GraphOptions {
  std::string file;                  // path of the graph; some commands also take the folder of a bundle, or a key
  BindValues bind;                   // for each symbolic dimension, the extents to tune for
  std::vector<std::string> weights;  // names of the inputs that are weights, for a graph in canonical text
  bool allow_tf32 = false;           // whether products of f32 may round factors to tf32
  TuneOptions tune;
};

// How the jobs of a command are created and waited for.
struct JobOptions {
  double wait_for_worker_s = 0;  // seconds that a job may wait without a worker; 0: without limit
  std::string trace;             // trace id of the jobs; empty: trace_of_job() chooses it
};

}  // namespace wl
