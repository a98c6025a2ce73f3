// Compiles and times schedules of one shape, and reads and writes the recording.
#pragma once

#include <string>
#include <vector>

#include "bench/cpu_model/shapes.h"
#include "compiler/domain/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// A shape with its graph, domain and space for one thread of the machine on which it is or was measured.
struct OpenShape {
  CpuShape shape;
  Machine machine;
  Graph graph;
  Domain domain;
  Space space;
};
absl::StatusOr<OpenShape> open_shape(const CpuShape& shape, Machine machine);
// Returns the schedules of a shape that are recorded: for a micro-kernel its own schedule for every compiler, for a
// shape of pipelined_shapes() its pipelined_points(), otherwise a uniform draw from all legal schedules, after the
// seeds of the space where shape.seeds is set.
std::vector<Point> recorded_points(const OpenShape& open);

struct RecordedPoint {
  std::string plan;
  std::vector<int64_t> samples_ns;  // times of the schedule in ns, one sample per round
};
struct RecordedShape {
  std::string name, graph;
  std::vector<RecordedPoint> points;
};
struct CpuRecording {
  std::string device;  // fingerprint of the device on which the schedules were timed
  // Target and caches of the machine on which the schedules were timed.
  Machine machine;
  std::vector<RecordedShape> shapes;
};

// Compiles the recorded schedules of shapes, and writes FOLDER/NAME.json for each shape: its schedules with the paths
// of their shared objects. One call of the compiler can compile schedules of several shapes.
absl::Status compile_shapes(const std::vector<CpuShape>& shapes, const std::string& folder);
// Times the objects that compile_shapes() made for a shape, in rounds over all its schedules, every other round in
// reverse order. Writes FOLDER/NAME.samples, in ns.
absl::Status time_shape(const CpuShape& shape, const std::string& folder, int rounds);
// pack() writes the samples of these shapes, from a folder, to one compressed file, which unpack() reads.
absl::Status pack(const std::vector<CpuShape>& shapes, const std::string& folder, const std::string& file);
absl::StatusOr<CpuRecording> unpack(const std::string& file);

}  // namespace wl
