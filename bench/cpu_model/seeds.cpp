#include "bench/cpu_model/seeds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_format.h"
#include "bench/source_of.h"
#include "compiler/cover/cover.h"
#include "compiler/import/import.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "compiler/ir/weights/fold_weights.h"
#include "compiler/schedule/lower/lower.h"
#include "compiler/search/analytic_seeds.h"
#include "nlohmann/json.hpp"
#include "runtime/runtime.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl {
namespace {

using Json = nlohmann::json;

struct Pair {
  std::string file, name;
  Graph group;
  std::string own, model;  // plans of the first seed: as space_of() orders the seeds, and as order_seeds() does
  double order_ms = 0;     // milliseconds that the cost model took to choose its plan
};

std::string name_of_group(const Graph& group) {
  std::string out;
  for (const Node& node : group.nodes) {
    if (node.op != Op::contract) continue;
    out = "contract";
    for (NodeId operand : node.operands) {
      append(&out, " ");
      const Shape& shape = group.nodes[operand].shape;
      for (size_t i = 0; i < shape.size(); ++i) append(&out, i == 0 ? "" : "x", shape[i]);
    }
  }
  return out;
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::Status add_groups(const std::string& path, const Machine& machine, std::vector<Pair>& pairs) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  WL_ASSIGN_OR_RETURN(const auto imported, import_onnx(bytes.str()));
  WL_ASSIGN_OR_RETURN(const auto folded, fold_weights(imported.graph, imported.weights));
  WL_ASSIGN_OR_RETURN(const Graph simple, simplify(folded.graph));
  WL_ASSIGN_OR_RETURN(const Cover cover, cover_greedy(simple, machine));
  std::set<std::string> seen;
  for (const Group& each : cover.groups) {
    const Graph group = extract(simple, each);
    if (!seen.insert(graph_hash(group)).second) continue;
    WL_ASSIGN_OR_RETURN(const Domain domain, analyze(group, machine));
    if (domain.cls != LoopClass::kContract) continue;
    WL_ASSIGN_OR_RETURN(Space space, space_of(group, domain, machine));
    Pair pair{std::filesystem::path(path).stem(), name_of_group(group), group, space.text(space.seeds[0]), "", 0};
    const int64_t begin = now_ns();
    order_seeds(group, domain, machine, space);
    pair.order_ms = static_cast<double>(now_ns() - begin) / 1e6;
    pair.model = space.text(space.seeds[0]);
    pairs.push_back(std::move(pair));
  }
  return absl::OkStatus();
}

// Returns the least times in ns of the kernels of two plans. Both run in every round, and take turns at being first.
absl::StatusOr<std::pair<double, double>> time_pair(Pool& pool, const Graph& group, const Json& entries, int rounds) {
  std::vector<Buffer> buffers;
  std::vector<void*> args;
  for (const BufferSpec& spec : buffers_of(group)) {
    WL_ASSIGN_OR_RETURN(Buffer buffer, Buffer::create(spec.bytes(), static_cast<int64_t>(buffers.size()) * 320 % 4096));
    fill_range(spec.fill, spec.dtype, 1, spec.stream, 0, spec.elements(), buffer.data());
    args.push_back(buffer.data());
    buffers.push_back(std::move(buffer));
  }
  std::vector<SharedObject> objects;
  std::vector<Launch> launches;
  for (const Json& entry : entries) {
    WL_ASSIGN_OR_RETURN(SharedObject object, SharedObject::open(entry["object"].get<std::string>()));
    WL_ASSIGN_OR_RETURN(void* const symbol, object.symbol(entry["entry"].get<std::string>()));
    launches.push_back({reinterpret_cast<BlockFunction>(symbol), entry["grid"].get<int64_t>(),
                        entry["threads"].get<int>(), entry["scratch"].get<int64_t>()});
    WL_RETURN_IF_ERROR(pool.reserve_scratch(launches.back().scratch_bytes));
    objects.push_back(std::move(object));
  }
  double best[2] = {1e300, 1e300};
  for (int round = -1; round < rounds; ++round)
    for (int k = 0; k < 2; ++k) {
      const int i = round % 2 == 0 ? k : 1 - k;
      pool.launch(launches[i], args.data());
      const int64_t begin = now_ns();
      pool.launch(launches[i], args.data());
      if (round >= 0) best[i] = std::min(best[i], static_cast<double>(now_ns() - begin));
    }
  return std::pair(best[0], best[1]);
}

}  // namespace

absl::StatusOr<std::string> compare_seeds(const std::vector<std::string>& files, const std::string& folder, int rounds,
                                          bool compile) {
  WL_ASSIGN_OR_RETURN(const Machine machine, machine_of(describe_cpu()));
  std::vector<Pair> pairs;
  for (const std::string& file : files) WL_RETURN_IF_ERROR(add_groups(file, machine, pairs));
  const std::string list = folder + "/seeds.json";
  if (compile) {
    std::vector<Candidate> candidates;
    for (const Pair& pair : pairs)
      for (const std::string& plan : {pair.own, pair.model}) {
        WL_ASSIGN_OR_RETURN(Source source, source_of(pair.group, plan, machine));
        candidates.push_back({static_cast<int64_t>(candidates.size()), plan, std::move(source)});
      }
    CompileOptions options;
    options.folder = folder;
    options.unit = 20;
    options.deadline_ns = 600'000'000'000;
    std::filesystem::create_directories(folder);
    WL_ASSIGN_OR_RETURN(const std::vector<Compiled> compiled, compile_cpu(candidates, options));
    Json json = Json::array();
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (compiled[i].outcome != Outcome::kCorrect) return invalid(candidates[i].plan, ": ", compiled[i].message);
      const Source& source = candidates[i].source;
      json.push_back({{"object", compiled[i].object},
                      {"entry", source.entry},
                      {"grid", source.grid},
                      {"threads", source.threads},
                      {"scratch", source.scratch_bytes}});
    }
    std::ofstream(list) << json;
  }
  if (rounds == 0) return std::string();
  std::ifstream stream(list);
  const Json json = Json::parse(stream, nullptr, false);
  if (json.is_discarded() || json.size() != 2 * pairs.size())
    return invalid(list, " is of other groups: compile first");
  Pool pool(machine.threads);
  std::string out =
      "| model | group | own seed, us | model's seed, us | speed-up | model's plan |\n|---|---|---|---|---|---|\n";
  double logs = 0, least = 1e300, order_ms = 0, most_ms = 0;
  int same = 0;
  for (const Pair& pair : pairs) {
    order_ms += pair.order_ms / static_cast<double>(pairs.size());
    most_ms = std::max(most_ms, pair.order_ms);
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].own == pairs[i].model) {
      ++same;
      continue;
    }
    WL_ASSIGN_OR_RETURN(const auto ns, time_pair(pool, pairs[i].group, {json[2 * i], json[2 * i + 1]}, rounds));
    const double gain = ns.first / ns.second;
    logs += std::log(gain);
    least = std::min(least, gain);
    const std::string plan = pairs[i].model.substr(pairs[i].model.find("mr="));
    absl::StrAppendFormat(&out, "| %s | %s | %.1f | %.1f | %.2f | %s |\n", pairs[i].file, pairs[i].name, ns.first / 1e3,
                          ns.second / 1e3, gain, plan);
  }
  absl::StrAppendFormat(&out,
                        "\n%d groups, %d with the same seed; speed-up of all by geometric mean %.3f, least %.2f; "
                        "choosing took %.0f ms a group, at most "
                        "%.0f\n",
                        static_cast<int>(pairs.size()), same, std::exp(logs / static_cast<double>(pairs.size())), least,
                        order_ms, most_ms);
  return out;
}

}  // namespace wl
