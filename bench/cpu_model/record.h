// Compiles and times schedules of one shape, and reads and writes the recording.
#pragma once

#include <string>
#include <vector>

#include "bench/cpu_model/shapes.h"
#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// A shape with one thread of the machine on which it was measured, as every stage needs it.
struct OpenShape {
  CpuShape shape;
  Machine machine;
  Graph graph;
  Domain domain;
  Space space;
};
absl::StatusOr<OpenShape> open_shape(const CpuShape& shape, Machine machine);
// Returns the recorded schedules of a shape: for a micro-kernel its own schedule for every compiler, otherwise a
// uniform draw from all legal schedules.
std::vector<Point> recorded_points(const OpenShape& open);

struct RecordedPoint {
  std::string plan;
  std::vector<int64_t> samples_ns;  // one sample per round
};
struct RecordedShape {
  std::string name, graph;
  std::vector<RecordedPoint> points;
};
struct CpuRecording {
  std::string device;  // fingerprint of the device
  Machine machine;     // target and caches; the target is null if it is unknown here
  std::vector<RecordedShape> shapes;
};

// Writes FOLDER/NAME.json for each shape, which lists the objects. Several shapes share runs of the compiler.
absl::Status compile_shapes(const std::vector<CpuShape>& shapes, const std::string& folder);
// Times the objects of compile_shapes in rounds over all schedules, every other round backwards. Writes
// FOLDER/NAME.samples.
absl::Status time_shape(const CpuShape& shape, const std::string& folder, int rounds);
// Pack all samples of a folder into one compressed file, and unpack it.
absl::Status pack(const std::vector<CpuShape>& shapes, const std::string& folder, const std::string& file);
absl::StatusOr<CpuRecording> unpack(const std::string& file);

}  // namespace wl
