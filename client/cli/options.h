// The command line as data. Parsing accesses only the arguments.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "client/cli/run.h"
#include "compiler/base/job.h"

namespace wl {

struct Options {
  std::string command;                               // "tune", "run", ...
  std::string input;                                 // the positional argument: FILE, DIR, KEY or job name
  std::string server;                                // address; empty = a coordinator in this process
  std::string store;                                 // path of the embedded store; empty = in the user's cache folder
  std::string json;                                  // path of the report; "-" = stdout
  std::string out;                                   // folder of the bundle
  std::map<std::string, std::vector<int64_t>> bind;  // extents to tune for, by symbolic dimension
  TuneOptions tune;
  RunOptions run;
  std::string stage = "graph";  // inspect
  bool simplify_only = false;
  bool why = false;  // inspect: whether to explain the groups
  std::string svg;   // inspect: path of a picture of the groups
  int most = 100;    // limit of rows in a listing
};

// Returns the options, or the exit code with which to end: --help and --version have been printed to stdout, errors to
// stderr.
std::variant<Options, int> parse_options(int argc, const char* const* argv);

// Parse "90", "90s", "5m" or "1h" to seconds, and "batch=8". Errors quote the text.
absl::StatusOr<double> parse_seconds(const std::string& text);
absl::StatusOr<std::pair<std::string, std::string>> parse_assignment(const std::string& text);

}  // namespace wl
