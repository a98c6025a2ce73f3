// Recorded tuning spaces in the T4 form of the auto-tuning community: JSON, perhaps gzipped, one object for every point
// with its configuration, raw run times and failure class. Others' tables and ours are read and written alike; what T4
// has no place for (order of values, seeds, graph) stands in "metadata" under "warploom".
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/search/strategy.h"

namespace wl {

// A space whose legal points are those that were measured.
struct Recording {
  struct Result {
    bool correct = false;
    double ns = 0;                   // the least sample, by which points are compared (undisturbed_ns)
    std::vector<double> samples_ns;  // raw
    double cost_s = 0;               // of compiling and running it, as recorded
  };
  std::string name, device;
  Space space;  // `legal` refers to `results`: a Recording does not move
  std::map<Point, Result> results;
  double best_ns = 0;       // of all correct points
  std::string graph;        // ours: the group's text
  nlohmann::json warploom;  // ours: that part of the metadata
};

// InvalidArgument: not T4, or no correct point in it.
absl::StatusOr<std::unique_ptr<Recording>> read_t4(const std::string& path);
absl::StatusOr<std::unique_ptr<Recording>> parse_t4(const std::string& name, const std::string& text);

// The device as `record_space` writes it: what decides which kernels a space has.
Device device_of(const nlohmann::json& device);
// The machine that a table of ours was recorded on. InvalidArgument: the table is not ours.
absl::StatusOr<Machine> recorded_machine(const Recording& recording);

// One result row. `plan` as Space::text makes it; its knobs become the configuration.
nlohmann::json t4_result(const std::string& plan, Outcome outcome, const std::vector<int64_t>& samples_ns,
                         double compile_s);
nlohmann::json t4_file(const nlohmann::json& warploom, const nlohmann::json& results);

}  // namespace wl
