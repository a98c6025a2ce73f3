// The command line as data. Parsing touches nothing but the arguments.
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
  std::string input;                                 // FILE, DIR, KEY or job name: the positional argument
  std::string server;                                // address; empty = embedded
  std::string store;                                 // embedded store; empty = the user's cache folder
  std::string json;                                  // report file, "-" = stdout
  std::string out;                                   // bundle
  std::map<std::string, std::vector<int64_t>> bind;  // extents to tune for, by symbolic dimension
  TuneOptions tune;
  RunOptions run;
  std::string stage = "graph";  // inspect
  bool simplify_only = false;
  bool why = false;  // inspect: why the groups are what they are
  std::string svg;   // inspect: a picture of the groups
  int most = 100;    // rows of a listing
};

// Parsed options, or the exit code to end with: --help and --version have been printed to stdout, a mistake to stderr.
std::variant<Options, int> parse_options(int argc, const char* const* argv);

// "90", "90s", "5m", "1h" in seconds; "batch=8". Errors name the text.
absl::StatusOr<double> parse_seconds(const std::string& text);
absl::StatusOr<std::pair<std::string, std::string>> parse_assignment(const std::string& text);

}  // namespace wl
