#include "bench/cpu_model/record.h"

#include <zlib.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>

#include "bench/cpu_model/pipelining.h"
#include "bench/source_of.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "compiler/search/analytic_seeds.h"
#include "nlohmann/json.hpp"
#include "runtime/runtime.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kDraw = 20260101;  // seed of the random draw of schedules
// Target duration of a sample in ns: a kernel that takes less than half of it is called several times for a sample.
constexpr int64_t kSampleNs = 300'000;
// If a kernel's last sample took less than this many ns, it is called once, untimed, before the next sample.
constexpr int64_t kWarmBelowNs = 4'000'000;

// Returns the CPU time of this thread in ns. Other load on the machine affects it only through shared caches and
// memory.
int64_t thread_ns() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

absl::StatusOr<Json> read_json(const std::string& path) {
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, false);
  if (json.is_discarded()) return invalid(path, " is missing or not JSON: make it with `cpu_model compile`");
  return json;
}

int64_t timed(Pool& pool, const Launch& launch, void* const* args, int64_t calls) {
  const int64_t begin = thread_ns();
  for (int64_t i = 0; i < calls; ++i) pool.launch(launch, args);
  return thread_ns() - begin;
}

}  // namespace

absl::StatusOr<OpenShape> open_shape(const CpuShape& shape, Machine machine) {
  OpenShape open;
  open.shape = shape;
  open.machine = machine;
  // Kernels run in one thread: if they ran in several, other load on the machine that delays one thread would delay
  // the whole kernel.
  open.machine.threads = 1;
  WL_ASSIGN_OR_RETURN(open.graph, parse(shape.graph));
  WL_ASSIGN_OR_RETURN(open.domain, analyze(open.graph, open.machine));
  WL_ASSIGN_OR_RETURN(open.space, space_of(open.graph, open.domain, open.machine));
  if (open.domain.cls != LoopClass::kContract) return invalid(shape.name, " is not a contraction:\n", shape.graph);
  return open;
}

std::vector<Point> recorded_points(const OpenShape& open) {
  const CpuShape& shape = open.shape;
  if (shape.pipelined > 0) return pipelined_points(open);
  std::vector<Point> points;
  open.space.enumerate([&](const Point& point) {
    const Schedule s = open.space.schedule(point);
    if (shape.height > 0) {
      // For a micro-kernel, only one schedule per compiler is kept: the first one that cuts the shape's 2 * height
      // rows into two tiles of `height` rows.
      const bool fits = s[kNv] == shape.vectors && s[kMr] >= shape.height && s[kKc] == 0 && s[kNc] == 0 &&
                        s[kPackA] == 0 && s[kPackB] == 0 && s[kRowTilesOutermost] == 1;
      const bool taken = std::any_of(points.begin(), points.end(), [&](const Point& other) {
        return open.space.schedule(other)[kCompiler] == s[kCompiler];
      });
      if (!fits || taken) return true;
    }
    points.push_back(point);
    return true;
  });
  if (shape.height > 0) return points;
  std::mt19937_64 random(kDraw);
  for (size_t i = points.size(); i > 1; --i) std::swap(points[i - 1], points[random() % i]);
  if (shape.seeds) {
    Space space = open.space;
    std::vector<Point> first = space.seeds;
    order_seeds(open.graph, open.domain, open.machine, space);
    first.insert(first.end(), space.seeds.begin(), space.seeds.end());
    std::sort(first.begin(), first.end());
    first.erase(std::unique(first.begin(), first.end()), first.end());
    const auto seeded = [&](const Point& point) { return std::binary_search(first.begin(), first.end(), point); };
    points.erase(std::remove_if(points.begin(), points.end(), seeded), points.end());
    points.insert(points.begin(), first.begin(), first.end());
  }
  points.resize(std::min<size_t>(points.size(), static_cast<size_t>(shape.points)));
  return points;
}

absl::Status compile_shapes(const std::vector<CpuShape>& shapes, const std::string& folder) {
  WL_ASSIGN_OR_RETURN(const Machine machine, machine_of(describe_cpu()));
  std::vector<Candidate> candidates;
  std::vector<size_t> ends;
  for (const CpuShape& shape : shapes) {
    WL_ASSIGN_OR_RETURN(const OpenShape open, open_shape(shape, machine));
    for (const Point& point : recorded_points(open)) {
      const std::string plan = open.space.text(point);
      WL_ASSIGN_OR_RETURN(Source source, source_of(open.graph, plan, open.machine));
      candidates.push_back({static_cast<int64_t>(candidates.size()), plan, std::move(source)});
    }
    ends.push_back(candidates.size());
  }
  CompileOptions options;
  options.folder = cat(folder, "/", shapes.empty() ? "" : shapes[0].name);
  options.unit = 40;
  options.deadline_ns = 600'000'000'000;
  std::filesystem::create_directories(options.folder);
  WL_ASSIGN_OR_RETURN(const std::vector<Compiled> compiled, compile_cpu(candidates, options));
  size_t next = 0;
  for (size_t s = 0; s < shapes.size(); ++s) {
    Json list = Json::array();
    for (; next < ends[s]; ++next) {
      const Candidate& candidate = candidates[next];
      if (compiled[next].outcome != Outcome::kCorrect)
        return invalid(shapes[s].name, ": ", candidate.plan, " does not compile: ", compiled[next].message);
      list.push_back({{"plan", candidate.plan},
                      {"object", compiled[next].object},
                      {"entry", candidate.source.entry},
                      {"grid", candidate.source.grid},
                      {"threads", candidate.source.threads},
                      {"scratch", candidate.source.scratch_bytes}});
    }
    std::ofstream(cat(folder, "/", shapes[s].name, ".json")) << list;
  }
  return absl::OkStatus();
}

absl::Status time_shape(const CpuShape& shape, const std::string& folder, int rounds) {
  WL_ASSIGN_OR_RETURN(const Json list, read_json(cat(folder, "/", shape.name, ".json")));
  WL_ASSIGN_OR_RETURN(const Graph graph, parse(shape.graph));
  std::vector<Buffer> buffers;
  std::vector<void*> args;
  for (const BufferSpec& spec : buffers_of(graph)) {
    WL_ASSIGN_OR_RETURN(Buffer buffer, Buffer::create(spec.bytes(), static_cast<int64_t>(buffers.size()) * 320 % 4096));
    fill_range(spec.fill, spec.dtype, 1, spec.stream, 0, spec.elements(), buffer.data());
    args.push_back(buffer.data());
    buffers.push_back(std::move(buffer));
  }
  Pool pool(1);
  std::vector<SharedObject> objects;
  std::vector<Launch> launches;
  for (const Json& point : list) {
    WL_ASSIGN_OR_RETURN(SharedObject object, SharedObject::open(point["object"].get<std::string>()));
    WL_ASSIGN_OR_RETURN(void* const entry, object.symbol(point["entry"].get<std::string>()));
    launches.push_back({reinterpret_cast<BlockFunction>(entry), point["grid"].get<int64_t>(),
                        point["threads"].get<int>(), point["scratch"].get<int64_t>()});
    WL_RETURN_IF_ERROR(pool.reserve_scratch(launches.back().scratch_bytes));
    objects.push_back(std::move(object));
  }
  std::vector<std::vector<int64_t>> samples(launches.size());
  std::vector<int64_t> calls(launches.size(), 1);
  for (int round = -1; round < rounds; ++round)  // round -1 warms up and determines how many calls make a sample
    for (size_t k = 0; k < launches.size(); ++k) {
      const size_t i = round % 2 == 0 ? k : launches.size() - 1 - k;
      if (round < 0) {
        const int64_t ns = std::min(timed(pool, launches[i], args.data(), 1), timed(pool, launches[i], args.data(), 1));
        calls[i] = std::max<int64_t>(1, kSampleNs / std::max<int64_t>(1, ns));
        continue;
      }
      if (calls[i] > 1 || samples[i].empty() || samples[i].back() < kWarmBelowNs) pool.launch(launches[i], args.data());
      samples[i].push_back(timed(pool, launches[i], args.data(), calls[i]) / calls[i]);
    }
  Json out = Json::array();
  for (size_t i = 0; i < launches.size(); ++i) out.push_back({{"plan", list[i]["plan"]}, {"ns", samples[i]}});
  std::ofstream(cat(folder, "/", shape.name, ".samples")) << out;
  return absl::OkStatus();
}

absl::Status pack(const std::vector<CpuShape>& shapes, const std::string& folder, const std::string& file) {
  const Device device = describe_cpu();
  Json out = {{"format", "warploom cpu-model 1"}, {"device", device.fingerprint()},
              {"target", device.target},          {"l1_bytes", device.l1_bytes},
              {"l2_bytes", device.l2_bytes},      {"l3_bytes", device.l3_bytes},
              {"compilers", device.compilers},    {"compiler_versions", device.compiler_versions},
              {"shapes", Json::array()}};
  for (const CpuShape& shape : shapes) {
    const std::string path = cat(folder, "/", shape.name, ".samples");
    if (!std::filesystem::exists(path)) continue;
    WL_ASSIGN_OR_RETURN(Json points, read_json(path));
    if (shape.points > 0 && points.size() > static_cast<size_t>(shape.points))
      points.erase(points.begin() + shape.points, points.end());
    out["shapes"].push_back({{"name", shape.name}, {"graph", shape.graph}, {"points", std::move(points)}});
  }
  const std::string text = out.dump(0);
  const gzFile gz = gzopen(file.c_str(), "wb9");
  if (gz == nullptr) return invalid("cannot write ", file);
  const bool written = gzwrite(gz, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size());
  if (gzclose(gz) != Z_OK || !written) return invalid("cannot write ", file);
  return absl::OkStatus();
}

absl::StatusOr<CpuRecording> unpack(const std::string& file) {
  const gzFile gz = gzopen(file.c_str(), "rb");
  if (gz == nullptr) return invalid("cannot read ", file);
  std::string text;
  char buffer[1 << 16];
  for (int n = 0; (n = gzread(gz, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  gzclose(gz);
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || json.value("format", "") != "warploom cpu-model 1")
    return invalid(file, " is not a recording made by `cpu_model pack`");
  CpuRecording out;
  out.device = json["device"];
  Device device;
  device.target = json["target"];
  device.l1_bytes = json["l1_bytes"];
  device.l2_bytes = json["l2_bytes"];
  device.l3_bytes = json["l3_bytes"];
  device.compilers = json["compilers"].get<std::vector<std::string>>();
  WL_ASSIGN_OR_RETURN(out.machine, machine_of(device));
  for (const Json& shape : json["shapes"]) {
    RecordedShape recorded{shape["name"], shape["graph"], {}};
    for (const Json& point : shape["points"])
      recorded.points.push_back({point["plan"], point["ns"].get<std::vector<int64_t>>()});
    out.shapes.push_back(std::move(recorded));
  }
  return out;
}

}  // namespace wl
