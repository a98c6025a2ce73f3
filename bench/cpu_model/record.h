// Compiles and times schedules of one shape, and the file that holds what came of it.
#pragma once

#include <string>
#include <vector>

#include "bench/cpu_model/shapes.h"
#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// A shape with one thread of the machine that it was measured on, as every stage needs it.
struct OpenShape {
  CpuShape shape;
  Machine machine;
  Graph graph;
  Domain domain;
  Space space;
};
absl::StatusOr<OpenShape> open_shape(const CpuShape& shape, Machine machine);
// The schedules recorded of a shape: of a micro-kernel its own for every compiler, otherwise a uniform draw from all
// legal schedules.
std::vector<Point> recorded_points(const OpenShape& open);

struct RecordedPoint {
  std::string plan;
  std::vector<int64_t> samples_ns;  // one per round
};
struct RecordedShape {
  std::string name, graph;
  std::vector<RecordedPoint> points;
};
struct CpuRecording {
  std::string device;  // fingerprint
  Machine machine;     // target and caches; target null when it is not known here
  std::vector<RecordedShape> shapes;
};

// Writes FOLDER/NAME.json for each shape, which lists the objects; several shapes share compiler runs.
absl::Status compile_shapes(const std::vector<CpuShape>& shapes, const std::string& folder);
// Times what compile_shapes left, in rounds over all schedules, every other round backwards; writes
// FOLDER/NAME.samples.
absl::Status time_shape(const CpuShape& shape, const std::string& folder, int rounds);
// All samples of a folder as one compressed file, and back.
absl::Status pack(const std::vector<CpuShape>& shapes, const std::string& folder, const std::string& file);
absl::StatusOr<CpuRecording> unpack(const std::string& file);

}  // namespace wl
