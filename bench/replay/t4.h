// Recorded tuning spaces in the T4 format of the auto-tuning community: JSON, possibly gzipped, with one object per
// point that has its configuration, raw run times and failure class. Tables of other projects have the same format.
// Facts that T4 has no place for (order of values, seeds, graph) are in "metadata" under "warploom".
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/search/strategy.h"

namespace wl {

// A recorded space, in which exactly the recorded points are legal.
struct Recording {
  struct Result {
    bool correct = false;
    double ns = 0;                   // the least of samples_ns, by which points are compared
    std::vector<double> samples_ns;  // the recorded samples in ns, none left out
    double cost_s = 0;               // seconds for compiling the point and taking its samples
  };
  std::string name, device;
  Space space;  // The recorded space. Its function `legal` refers to `results`, so a Recording must not be moved.
  std::map<Point, Result> results;
  double best_ns = 0;       // the least time in ns of all correct points
  std::string graph;        // canonical text of the recorded group; empty unless Warploom recorded the table
  nlohmann::json warploom;  // metadata under "warploom"; empty unless Warploom recorded the table
};

// read_t4() reads a T4 file, parse_t4() the text of one. InvalidArgument: the text is not T4, or has no correct point.
absl::StatusOr<std::unique_ptr<Recording>> read_t4(const std::string& path);
absl::StatusOr<std::unique_ptr<Recording>> parse_t4(const std::string& name, const std::string& text);

// Converts a device from the JSON that `record_space` writes. A table states its device, on which its space depends.
Device device_of(const nlohmann::json& device);
// Returns the machine on which a table was recorded. InvalidArgument: Warploom did not record the table.
absl::StatusOr<Machine> recorded_machine(const Recording& recording);

// Returns one row of "results". `plan` is a text of Space::text, and its choices become the configuration.
nlohmann::json t4_result(const std::string& plan, Outcome outcome, const std::vector<int64_t>& samples_ns,
                         double compile_s);
nlohmann::json t4_file(const nlohmann::json& warploom, const nlohmann::json& results);

}  // namespace wl
