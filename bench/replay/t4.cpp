#include "bench/replay/t4.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "compiler/base/status.h"

namespace wl {
namespace {

using Json = nlohmann::json;

// T4's names of failure classes, indexed by Outcome.
constexpr const char* kInvalidity[] = {"correct", "compile", "correctness", "timeout", "runtime", "constraints"};

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Orders the values of an axis: numbers first, by size, then texts.
bool before(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() < b.get<double>();
  if (a.is_number() != b.is_number()) return a.is_number();
  return text_of(a) < text_of(b);
}

double ns_per_unit(const Json& metadata) {
  const std::string unit = metadata.value("timeunit", "milliseconds");
  return unit.starts_with("nano")                                ? 1
         : unit.starts_with("micro")                             ? 1e3
         : unit.starts_with("milli") || unit.starts_with("mili") ? 1e6
                                                                 : 1e9;
}

// The names of a file's axes and, for each axis, a map from the text of a value to the value's position. They come from
// the file's declaration of axes if it has one, otherwise from its results.
struct Names {
  std::vector<std::string> axes;
  std::vector<std::map<std::string, int>> values;
};

Names name_axes(const Json& file, Space& space) {
  std::map<std::string, std::vector<Json>> found;
  for (const Json& row : file["results"])
    for (const auto& [name, value] : row["configuration"].items()) {
      std::vector<Json>& values = found[name];
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
  Names names;
  const Json& own = file["metadata"].value("warploom", Json::object());
  if (own.contains("axes")) {
    for (const Json& axis : own["axes"]) {
      const std::string name = axis["name"];
      // An axis may have a name that is not a choice: one that belongs to a part of a packed group, or to a plan of
      // version 1. Such an axis keeps its name and has numbers as values.
      const std::optional<Choice> choice = choice_named(name);
      Axis out = choice ? Axis(*choice, {}) : Axis(name, {});
      std::map<std::string, int> places;
      for (const Json& value : axis["values"]) {
        const int64_t number = value.get<int64_t>();
        const std::string text = choice ? value_text(*choice, number) : cat(number);
        places[text] = static_cast<int>(out.values.size());
        out.values.push_back(number);
      }
      names.axes.push_back(name);
      names.values.push_back(std::move(places));
      space.axes.push_back(std::move(out));
    }
    return names;
  }
  for (auto& [name, values] : found) {
    if (values.size() < 2) continue;  // an axis with a single value is left out of the names, since it offers no choice
    std::sort(values.begin(), values.end(), before);
    Axis out(name, {});
    std::map<std::string, int> places;
    for (const Json& value : values) {
      places[text_of(value)] = static_cast<int>(out.values.size());
      out.values.push_back(value.is_number_integer() ? value.get<int64_t>() : static_cast<int64_t>(out.values.size()));
    }
    names.axes.push_back(name);
    names.values.push_back(std::move(places));
    space.axes.push_back(std::move(out));
  }
  return names;
}

absl::StatusOr<Point> point_of(const Json& configuration, const Names& names) {
  Point point;
  for (size_t i = 0; i < names.axes.size(); ++i) {
    const auto value = configuration.find(names.axes[i]);
    if (value == configuration.end()) return invalid("a configuration has no ", names.axes[i]);
    const auto place = names.values[i].find(text_of(*value));
    if (place == names.values[i].end()) return invalid(names.axes[i], " has no value ", text_of(*value));
    point.push_back(place->second);
  }
  return point;
}

Recording::Result result_of(const Json& row, double unit) {
  Recording::Result result;
  const Json& times = row["times"];
  double spent = 0;
  for (const Json& value : times.value("runtimes", Json::array())) {
    if (!value.is_number()) continue;
    result.samples_ns.push_back(value.get<double>() * unit);
    spent += result.samples_ns.back();
  }
  if (times.contains("compilation") && times["compilation"].is_number())
    spent += times["compilation"].get<double>() * unit;
  result.cost_s = spent * 1e-9;
  result.correct = row.value("invalidity", "correct") == "correct" && !result.samples_ns.empty();
  if (result.correct) result.ns = *std::min_element(result.samples_ns.begin(), result.samples_ns.end());
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Recording>> parse_t4(const std::string& name, const std::string& text) {
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object() || !file.contains("results") || !file["results"].is_array() || file["results"].empty())
    return invalid(name, ": expected a T4 file, an object with \"results\"");
  auto out = std::make_unique<Recording>();
  out->name = name;
  const Json metadata = file.value("metadata", Json::object());
  out->warploom = metadata.value("warploom", Json::object());
  out->graph = out->warploom.value("graph", "");
  out->space.prefix = out->warploom.value("prefix", "t4");
  const size_t kind = out->space.prefix.find(" class=");
  if (kind != std::string::npos) out->space.kind = std::string_view(out->space.prefix).substr(kind + 7);
  const Names names = name_axes(file, out->space);
  const double unit = ns_per_unit(metadata);
  for (const Json& row : file["results"]) {
    auto point = point_of(row["configuration"], names);
    if (!point.ok()) return invalid(name, ": ", point.status().message());
    const Recording::Result result = result_of(row, unit);
    if (result.correct && (out->best_ns == 0 || result.ns < out->best_ns)) out->best_ns = result.ns;
    out->results[*std::move(point)] = result;
  }
  if (out->best_ns == 0) return invalid(name, ": no point of it is correct");
  out->space.legal_point = [recording = out.get()](const Point& point) { return recording->results.contains(point); };
  for (const Json& seed : out->warploom.value("seeds", Json::array())) {
    const auto point = out->space.parse(seed.get<std::string>());
    if (point.ok()) out->space.seeds.push_back(*point);
  }
  return out;
}

absl::StatusOr<std::unique_ptr<Recording>> read_t4(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return absl::NotFoundError(cat(path, ": cannot be read"));
  std::string text(1 << 16, 0);
  std::string all;
  int n = 0;
  while ((n = gzread(file, text.data(), static_cast<unsigned>(text.size()))) > 0)
    all.append(text, 0, static_cast<size_t>(n));
  gzclose(file);
  if (n < 0) return absl::DataLossError(cat(path, ": damaged"));
  std::string name = std::filesystem::path(path).filename().string();
  return parse_t4(name.substr(0, name.find(".T4")), all);
}

Device device_of(const Json& device) {
  Device out;
  out.target = device["target"];
  out.threads = device["threads"];
  out.l1_bytes = device["l1_bytes"];
  out.l2_bytes = device["l2_bytes"];
  out.l3_bytes = device["l3_bytes"];
  out.compilers = device["compilers"].get<std::vector<std::string>>();
  return out;
}

absl::StatusOr<Machine> recorded_machine(const Recording& recording) {
  const Json device = recording.warploom.value("device", Json::object());
  if (!device.contains("l1_bytes") || recording.graph.empty())
    return invalid(recording.name, " was not recorded by `record_space`: it has no graph, or no device");
  return machine_of(device_of(device));
}

nlohmann::json t4_result(const std::string& plan, Outcome outcome, const std::vector<int64_t>& samples_ns,
                         double compile_s) {
  Json configuration = Json::object();
  for (size_t at = plan.find('='); at != std::string::npos; at = plan.find('=', at + 1)) {
    const size_t begin = plan.rfind(' ', at) + 1, end = std::min(plan.find(' ', at), plan.size());
    const std::string name = plan.substr(begin, at - begin), value = plan.substr(at + 1, end - at - 1);
    if (name == "target" || name == "class") continue;
    const bool number = value.find_first_not_of("-0123456789") == std::string::npos;
    configuration[name] = number ? Json(std::stoll(value)) : Json(value);
  }
  const bool correct = outcome == Outcome::kCorrect && !samples_ns.empty();
  Json row = {{"configuration", configuration},
              {"times", {{"compilation", std::round(compile_s * 1e9)}, {"runtimes", Json::array()}}},
              {"invalidity", kInvalidity[static_cast<int>(outcome)]},
              {"correctness", correct ? 1 : 0}};
  if (correct) {
    row["times"]["runtimes"] = samples_ns;
    row["measurements"] = {{{"name", "time"}, {"value", undisturbed_ns(samples_ns)}, {"unit", ""}}};
    row["objectives"] = {"time"};
  }
  return row;
}

nlohmann::json t4_file(const nlohmann::json& warploom, const nlohmann::json& results) {
  return {{"schema_version", "1.0.0"},
          {"metadata", {{"timeunit", "nanoseconds"}, {"warploom", warploom}}},
          {"results", results}};
}

}  // namespace wl
