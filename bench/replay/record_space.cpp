// Records the whole schedule space of a kernel on this machine, for bench/replay/replay.cpp. bench/record.py runs it:
//
//   record_space compile KERNELS NAME FOLDER SECONDS
//   record_space time FOLDER RUNNER SECONDS
//   record_space write FOLDER OUT
// `compile` makes an object of every point of the space of one row of KERNELS (JSON); `time` goes over all points in
// passes, each in another order; `write` makes a file in the T4 format (bench/replay/t4.h). `compile` and `time` stop
// after about SECONDS, and the next call continues, so that they can run whenever the machine is free.
// A point's samples come from passes that are minutes apart, so that a short disturbance affects one pass of many
// points and not all samples of one point. Kernels run in one thread.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "bench/replay/t4.h"
#include "bench/source_of.h"
#include "compiler/base/status.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "compiler/search/strategy.h"
#include "compiler/target/target.h"
#include "worker/drivers/cpu/cpu.h"
#include "worker/measure.h"

namespace wl {
namespace {

using Json = nlohmann::json;
constexpr size_t kTogether = 48;  // number of points that are timed together, in interleaved samples
constexpr size_t kCompiled = 32;  // number of points that are compiled before the elapsed time is checked again
constexpr int kSamples = 3;       // number of samples of each point that one pass takes

absl::StatusOr<Json> read_json(const std::string& path) {
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, false);
  if (json.is_discarded()) return invalid(path, ": expected JSON");
  return json;
}

absl::Status write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path + ".part", std::ios::binary);
  file << text;
  file.close();
  if (!file.good()) return absl::UnavailableError(cat(path, ": cannot be written"));
  std::filesystem::rename(path + ".part", path);
  return absl::OkStatus();
}

// Applies the field "only" of a kernel's row: {"only": {"tasks_per_thread": [1]}} keeps just this value of that axis.
absl::Status restrict_axes(const Json& only, Space& space) {
  for (const auto& [name, values] : only.items()) {
    const auto axis =
        std::find_if(space.axes.begin(), space.axes.end(), [&, n = name](const Axis& a) { return a.name == n; });
    if (axis == space.axes.end()) return invalid("no axis ", name, " in ", space.prefix);
    std::vector<int64_t> kept;
    for (const Json& value : values) {
      const std::string wanted = value.is_string() ? value.get<std::string>() : value.dump();
      for (const int64_t has : axis->values)
        if (spells(*axis, has, wanted)) kept.push_back(has);
    }
    if (kept.empty()) return invalid("axis ", name, " of ", space.prefix, " has none of ", values.dump());
    axis->values = kept;
  }
  return absl::OkStatus();
}

Json axes_json(const Space& space) {
  Json axes = Json::array();
  for (const Axis& axis : space.axes) axes.push_back({{"name", axis.name}, {"values", axis.values}});
  return axes;
}

// Returns the contents of FOLDER/index.json before anything is compiled: all legal points, none with an outcome yet.
absl::StatusOr<Json> new_index(const Json& row) {
  std::string text = "graph {\n";
  for (const Json& line : row["graph"]) append(&text, "  ", line.get<std::string>(), "\n");
  WL_ASSIGN_OR_RETURN(const Graph graph, parse(text + "}\n"));
  Device device = describe_device();
  device.threads = 1;
  WL_ASSIGN_OR_RETURN(const Machine machine, machine_of(device));
  WL_ASSIGN_OR_RETURN(const Domain domain, analyze(graph, machine));
  WL_ASSIGN_OR_RETURN(Space space, space_of(graph, domain, machine));
  Json seeds = Json::array();
  for (const Point& seed : space.seeds) seeds.push_back(space.text(seed));
  WL_RETURN_IF_ERROR(restrict_axes(row["only"], space));
  Json points = Json::array();
  space.enumerate([&](const Point& point) {
    points.push_back({{"plan", space.text(point)}});
    return true;
  });
  return Json{{"name", row["name"]},
              {"graph", print(graph)},
              {"only", row["only"]},
              {"device",
               {{"target", device.target},
                {"name", device.name},
                {"threads", device.threads},
                {"l1_bytes", device.l1_bytes},
                {"l2_bytes", device.l2_bytes},
                {"l3_bytes", device.l3_bytes},
                {"compilers", device.compilers},
                {"compiler_versions", device.compiler_versions}}},
              {"prefix", space.prefix},
              {"axes", axes_json(space)},
              {"seeds", seeds},
              {"points", points}};
}

// Compiles points without an outcome for about `seconds`. Returns how many are left.
absl::StatusOr<size_t> compile_some(Json& index, const std::string& folder, double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  WL_ASSIGN_OR_RETURN(const Graph graph, parse(index["graph"].get<std::string>()));
  WL_ASSIGN_OR_RETURN(const Machine machine, machine_of(device_of(index["device"])));
  std::vector<size_t> open;
  for (size_t i = 0; i < index["points"].size(); ++i)
    if (!index["points"][i].contains("outcome")) open.push_back(i);
  size_t done = 0;
  while (done < open.size() &&
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
    std::vector<Candidate> candidates;
    for (; done < open.size() && candidates.size() < kCompiled; ++done) {
      Json& point = index["points"][open[done]];
      auto source = source_of(graph, point["plan"], machine);
      if (source.ok()) {
        candidates.push_back({static_cast<int64_t>(open[done]), point["plan"], *std::move(source)});
        continue;
      }
      point["outcome"] = Outcome::kRejected;
      point["message"] = std::string(source.status().message());
    }
    CompileOptions options;
    options.folder =
        std::filesystem::absolute(absl::StrCat(folder, "/from", candidates.empty() ? 0 : candidates[0].trial));
    std::filesystem::create_directories(options.folder);
    WL_ASSIGN_OR_RETURN(const std::vector<Compiled> compiled, compile_cpu(candidates, options));
    for (size_t i = 0; i < candidates.size(); ++i) {
      Json& point = index["points"][static_cast<size_t>(candidates[i].trial)];
      const Source& source = candidates[i].source;
      point["outcome"] = compiled[i].outcome;
      point["message"] = compiled[i].message;
      point["object"] = compiled[i].object;
      point["compile_s"] = compiled[i].seconds;
      point["source"] = {{"target", source.target},   {"compiler", source.compiler},
                         {"entry", source.entry},     {"grid", source.grid},
                         {"threads", source.threads}, {"scratch_bytes", source.scratch_bytes}};
    }
  }
  return open.size() - done;
}

absl::Status compile(const std::string& kernels, const std::string& name, const std::string& folder, double seconds) {
  Json index;
  if (std::filesystem::exists(folder + "/index.json")) {
    WL_ASSIGN_OR_RETURN(index, read_json(folder + "/index.json"));
  } else {
    WL_ASSIGN_OR_RETURN(const Json rows, read_json(kernels));
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Json& r) { return r["name"] == name; });
    if (row == rows.end()) return invalid(kernels, " has no kernel ", name);
    WL_ASSIGN_OR_RETURN(index, new_index(*row));
    std::filesystem::create_directories(folder);
  }
  WL_ASSIGN_OR_RETURN(const size_t left, compile_some(index, folder, seconds));
  std::printf("%s: %zu of %zu points to compile\n", name.c_str(), left, index["points"].size());
  return write_text(folder + "/index.json", index.dump());
}

Candidate candidate_of(const Json& point, size_t number) {
  Candidate candidate;
  candidate.trial = static_cast<int64_t>(number);
  candidate.plan = point["plan"];
  const Json& source = point["source"];
  candidate.source.target = source["target"];
  candidate.source.compiler = source["compiler"];
  candidate.source.entry = source["entry"];
  candidate.source.grid = source["grid"];
  candidate.source.threads = source["threads"];
  candidate.source.scratch_bytes = source["scratch_bytes"];
  return candidate;
}

// Returns the points in the order of a pass, which is a permutation that depends only on the pass.
std::vector<size_t> shuffled(const std::vector<size_t>& points, uint64_t pass) {
  std::vector<size_t> order = points;
  uint64_t state = pass * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
  for (size_t i = order.size(); i > 1; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(order[i - 1], order[(state >> 33) % i]);
  }
  return order;
}

// Appends to FOLDER/samples one line for every group of points that were timed together: {"number of a point":
// [outcome, samples...], ...}.
absl::Status time_points(const std::string& folder, const std::string& runner, double seconds) {
  WL_ASSIGN_OR_RETURN(const Json index, read_json(folder + "/index.json"));
  WL_ASSIGN_OR_RETURN(const Graph graph, parse(index["graph"].get<std::string>()));
  std::vector<size_t> runnable;
  for (size_t i = 0; i < index["points"].size(); ++i)
    if (index["points"][i].value("outcome", Json()) == Outcome::kCorrect) runnable.push_back(i);
  if (runnable.empty()) return invalid(folder, ": no point compiled");
  size_t lines = 0;
  {
    std::ifstream known(folder + "/samples");
    for (std::string line; std::getline(known, line);) ++lines;
  }
  const auto begin = std::chrono::steady_clock::now();
  const size_t groups = (runnable.size() + kTogether - 1) / kTogether;
  WL_ASSIGN_OR_RETURN(const Check check, make_check(graph, 20261122));
  std::ofstream out(folder + "/samples", std::ios::app);
  for (; std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds; ++lines) {
    const std::vector<size_t> order = shuffled(runnable, lines / groups);
    Batch batch;
    batch.id = "record";
    batch.problem = {index["name"], buffers_of(graph)};
    if (lines < groups) batch.checks = {check};
    batch.recipe.interleave = true;
    batch.recipe.min_repeats = batch.recipe.max_repeats = kSamples;
    std::vector<Compiled> compiled;
    for (size_t k = lines % groups * kTogether; k < std::min(order.size(), (lines % groups + 1) * kTogether); ++k) {
      const Json& point = index["points"][order[k]];
      batch.candidates.push_back(candidate_of(point, order[k]));
      compiled.push_back({Outcome::kCorrect, "", point["object"], 0, {}});
    }
    MeasureOptions options;
    options.runner = runner;
    options.work_dir = std::filesystem::temp_directory_path().string();
    options.compiled = &compiled;
    WL_ASSIGN_OR_RETURN(const Measured measured, measure(batch, options));
    Json line = Json::object();
    for (const Trial& trial : measured.trials) {
      Json values = {trial.outcome};
      for (int64_t ns : trial.samples_ns) values.push_back(ns);
      line[absl::StrCat(trial.trial)] = values;
    }
    out << line.dump() << "\n" << std::flush;
  }
  std::printf("%s: %.2f passes over %zu points\n", index["name"].get<std::string>().c_str(),
              static_cast<double>(lines) / static_cast<double>(groups), runnable.size());
  return absl::OkStatus();
}

Json t4_of(const Json& index, const std::string& samples_path) {
  std::vector<Outcome> outcomes;
  std::vector<std::vector<int64_t>> samples(index["points"].size());
  for (const Json& point : index["points"]) outcomes.push_back(point["outcome"]);
  std::ifstream file(samples_path);
  for (std::string text; std::getline(file, text);) {
    const Json line = Json::parse(text);
    for (const auto& [number, values] : line.items()) {
      const size_t i = std::stoul(number);
      if (values[0] != Outcome::kCorrect) outcomes[i] = values[0];
      for (size_t k = 1; k < values.size(); ++k) samples[i].push_back(values[k]);
    }
  }
  Json results = Json::array();
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Json& point = index["points"][i];
    results.push_back(t4_result(point["plan"], outcomes[i], samples[i], point.value("compile_s", 0.0)));
  }
  Json warploom = index;
  warploom.erase("points");
  return t4_file(warploom, results);
}

absl::Status run(const std::vector<std::string>& words) {
  if (words.size() == 5 && words[0] == "compile") return compile(words[1], words[2], words[3], std::stod(words[4]));
  if (words.size() == 4 && words[0] == "time") return time_points(words[1], words[2], std::stod(words[3]));
  if (words.size() == 3 && words[0] == "write") {
    WL_ASSIGN_OR_RETURN(const Json index, read_json(words[1] + "/index.json"));
    return write_text(words[2], t4_of(index, words[1] + "/samples").dump() + "\n");
  }
  return invalid(
      "usage: record_space compile KERNELS NAME FOLDER SECONDS | time FOLDER RUNNER SECONDS | write FOLDER OUT");
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  const absl::Status status = wl::run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "record_space: %s\n", std::string(status.message()).c_str());
  return 1;
}
