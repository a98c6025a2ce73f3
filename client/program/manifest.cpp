#include "client/program/manifest.h"

#include <algorithm>
#include <map>

#include "client/program/files.h"
#include "client/program/json.h"
#include "compiler/base/names.h"
#include "compiler/base/sha256.h"
#include "compiler/ir/text.h"
#include "runtime/arena.h"

namespace wl {
namespace {

constexpr std::string_view kPlaces[] = {"input", "output", "arena"};

Json fill_json(const Fill& fill, DType dtype) {
  if (!fill.literal.empty()) return {{"literal", fill.literal}};
  if (dtype == DType::b1) return Json::object();
  if (is_float(dtype)) return {{"mean", fill.mean}, {"stddev", fill.stddev}};
  return {{"low", fill.low}, {"high", fill.high}};
}

Json to_json(const Program& program, const std::vector<BundleFile>& files) {
  Json manifest;
  manifest["format"] = kBundleFormat;
  manifest["graph"] = {{"file", "graph.txt"}, {"hash", program.graph_hash}};
  manifest["target"] = {{"name", program.target}, {"device", program.device}, {"fingerprint", program.fingerprint}};
  manifest["bind"] = program.bind;
  manifest["weights"] = program.weights;
  manifest["folded"] = Json::array();
  for (const FoldedWeight& folded : program.folded) {
    manifest["folded"].push_back({{"name", folded.name}, {"graph", print(folded.from)}});
  }
  manifest["arena_bytes"] = program.arena_bytes;
  manifest["buffers"] = Json::array();
  for (const ProgramBuffer& buffer : program.buffers) {
    Json row = {{"name", buffer.name},
                {"dtype", name_of(buffer.dtype)},
                {"shape", buffer.shape},
                {"place", kPlaces[static_cast<int>(buffer.place)]}};
    if (buffer.place == Place::kArena) row["offset"] = buffer.offset;
    if (buffer.place == Place::kInput) {
      row["stream"] = buffer.stream;
      row["fill"] = fill_json(buffer.fill, buffer.dtype);
    }
    manifest["buffers"].push_back(std::move(row));
  }
  manifest["outputs"] = Json::array();
  for (const ProgramOutput& output : program.outputs) {
    manifest["outputs"].push_back({{"name", output.name}, {"buffer", output.buffer}});
  }
  manifest["kernels"] = Json::array();
  for (const ProgramKernel& kernel : program.kernels) {
    manifest["kernels"].push_back({{"entry", kernel.source.entry},
                                   {"graph", graph_path(kernel)},
                                   {"source", source_path(kernel)},
                                   {"object", object_path(kernel)},
                                   {"target", kernel.source.target},
                                   {"compiler", kernel.source.compiler},
                                   {"grid", kernel.source.grid},
                                   {"threads", kernel.source.threads},
                                   {"scratch_bytes", kernel.source.scratch_bytes},
                                   {"passes", kernel.source.passes},
                                   {"work_bytes", kernel.source.work_bytes},
                                   {"library", kernel.source.library},
                                   {"inputs", kernel.inputs},
                                   {"outputs", kernel.outputs},
                                   {"key", kernel.key},
                                   {"plan", kernel.plan}});
  }
  manifest["calls"] = Json::array();
  for (const ProgramStep& step : program.steps) {
    manifest["calls"].push_back({{"kernel", step.kernel}, {"args", step.args}});
  }
  manifest["files"] = Json::array();
  for (const BundleFile& file : files) {
    manifest["files"].push_back({{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  return manifest;
}

Fill fill_of(const Json& json) {
  Fill fill;
  fill.mean = json.value("mean", fill.mean);
  fill.stddev = json.value("stddev", fill.stddev);
  fill.low = json.value("low", fill.low);
  fill.high = json.value("high", fill.high);
  fill.literal = json.value("literal", fill.literal);
  return fill;
}

// Reads texts (names, paths) from a manifest, and remembers the error of the first text that is not allowed for its
// kind.
class TextReader {
 public:
  std::string check(std::string value, const std::string& member, TextKind kind, size_t most = 1024) {
    if (status_.ok() && (!value.empty() || kind == TextKind::kIdentifier || kind == TextKind::kPath))
      status_ = check_text(cat("manifest.json: ", member), value, kind, most);
    return value;
  }
  std::string at(const Json& row, const char* member, TextKind kind, size_t most = 1024) {
    return check(row.at(member).get<std::string>(), member, kind, most);
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

// Reads a manifest that was parsed as JSON. Throws the exceptions of the JSON library when a key is missing or has
// another type.
absl::StatusOr<Manifest> read_json(const Json& json) {
  constexpr size_t kMostPlan = 256 << 10;
  TextReader text;
  Manifest manifest;
  manifest.format = json.at("format").get<int64_t>();
  Program& program = manifest.program;
  program.graph_hash = text.at(json.at("graph"), "hash", TextKind::kDigest);
  const Json& target = json.at("target");
  program.target = text.at(target, "name", TextKind::kWord);
  program.device = text.at(target, "device", TextKind::kName);
  program.fingerprint = text.at(target, "fingerprint", TextKind::kName);
  program.bind = json.at("bind").get<std::map<std::string, int64_t>>();
  for (const auto& [name, extent] : program.bind) text.check(name, "bind", TextKind::kName);
  program.weights = json.at("weights").get<std::vector<std::string>>();
  for (const std::string& name : program.weights) text.check(name, "weights", TextKind::kName);
  for (const Json& row : json.value("folded", Json::array())) {
    FoldedWeight folded{text.at(row, "name", TextKind::kName), {}};
    auto from = parse(row.at("graph").get<std::string>());
    if (!from.ok() || from->outputs.size() != 1) {
      return invalid("manifest.json: folded weight ", folded.name, ": its graph is broken", from.ok() ? "" : ": ",
                     from.ok() ? "" : from.status().message());
    }
    folded.from = *std::move(from);
    program.folded.push_back(std::move(folded));
  }
  program.arena_bytes = json.at("arena_bytes").get<int64_t>();
  for (const Json& row : json.at("buffers")) {
    ProgramBuffer buffer;
    buffer.name = text.at(row, "name", TextKind::kName);
    auto dtype = dtype_named(row.at("dtype").get<std::string>());
    if (!dtype) return invalid("manifest.json: buffer ", buffer.name, ": unknown dtype ", row.at("dtype").dump());
    buffer.dtype = *dtype;
    buffer.shape = row.at("shape").get<Shape>();
    auto place = std::find(std::begin(kPlaces), std::end(kPlaces), row.at("place").get<std::string>());
    if (place == std::end(kPlaces)) return invalid("manifest.json: buffer ", buffer.name, ": unknown place");
    buffer.place = static_cast<Place>(place - std::begin(kPlaces));
    if (buffer.place == Place::kArena) buffer.offset = row.at("offset").get<int64_t>();
    if (buffer.place == Place::kInput) {
      buffer.stream = row.at("stream").get<uint64_t>();
      buffer.fill = fill_of(row.at("fill"));
    }
    program.buffers.push_back(std::move(buffer));
  }
  for (const Json& row : json.at("outputs")) {
    program.outputs.push_back({text.at(row, "name", TextKind::kName), row.at("buffer").get<int>()});
  }
  for (const Json& row : json.at("kernels")) {
    ProgramKernel kernel;
    kernel.source.entry = text.at(row, "entry", TextKind::kIdentifier, 128);
    kernel.source.target = text.at(row, "target", TextKind::kWord);
    kernel.source.compiler = text.at(row, "compiler", TextKind::kWord);
    kernel.source.grid = row.at("grid").get<int64_t>();
    kernel.source.threads = row.at("threads").get<int>();
    kernel.source.scratch_bytes = row.at("scratch_bytes").get<int64_t>();
    kernel.source.passes = row.value("passes", 1);
    kernel.source.work_bytes = row.value("work_bytes", int64_t{0});
    kernel.source.library = text.check(row.value("library", std::string()), "library", TextKind::kWord);
    kernel.inputs = row.at("inputs").get<int>();
    kernel.outputs = row.at("outputs").get<int>();
    kernel.key = text.at(row, "key", TextKind::kDigest);
    kernel.plan = text.at(row, "plan", TextKind::kText, kMostPlan);
    program.kernels.push_back(std::move(kernel));
  }
  for (const Json& row : json.at("calls")) {
    program.steps.push_back({row.at("kernel").get<int>(), row.at("args").get<std::vector<int>>()});
  }
  for (const Json& row : json.at("files")) {
    manifest.files.push_back({text.at(row, "path", TextKind::kPath), text.at(row, "sha256", TextKind::kDigest),
                              row.at("bytes").get<int64_t>()});
  }
  WL_RETURN_IF_ERROR(text.status());
  return manifest;
}

// Checks that every number of a program on which the executor relies is in range.
absl::Status check_program(const Program& program) {
  constexpr int64_t kMaxBytes = int64_t{1} << 46;
  auto wrong = [](const auto&... what) { return invalid("manifest.json: ", what...); };
  if (program.arena_bytes < 0 || program.arena_bytes > kMaxBytes) return wrong("arena_bytes out of range");
  for (const ProgramBuffer& buffer : program.buffers) {
    int64_t bytes = size_of(buffer.dtype);
    for (int64_t extent : buffer.shape) {
      if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes) || bytes > kMaxBytes) {
        return wrong("buffer ", buffer.name, ": shape out of range");
      }
    }
    bool inside = buffer.offset >= 0 && buffer.offset % kArenaAlignment == 0 && buffer.offset <= program.arena_bytes &&
                  bytes <= program.arena_bytes - buffer.offset;
    if (buffer.place == Place::kArena && !inside) {
      return wrong("buffer ", buffer.name, " is outside the arena");
    }
  }
  for (const FoldedWeight& folded : program.folded) {
    const Node& value = folded.from.nodes[folded.from.outputs[0].node];
    const bool fits = std::any_of(program.buffers.begin(), program.buffers.end(), [&](const ProgramBuffer& buffer) {
      return buffer.place == Place::kInput && buffer.name == folded.name && buffer.dtype == value.dtype &&
             buffer.shape == value.shape;
    });
    if (!fits) return wrong("folded weight ", folded.name, " is not an input of the type that its graph computes");
  }
  auto is_buffer = [&](int index) { return index >= 0 && static_cast<size_t>(index) < program.buffers.size(); };
  for (const ProgramOutput& output : program.outputs) {
    if (!is_buffer(output.buffer)) return wrong("output ", output.name, " names no buffer");
  }
  for (const ProgramKernel& kernel : program.kernels) {
    const Source& source = kernel.source;
    if (source.grid < 0 || source.threads < 1 || source.threads > 4096 || source.scratch_bytes < 0 ||
        source.scratch_bytes > kMaxBytes || source.passes < 1 || source.passes > 4096 || source.work_bytes < 0 ||
        source.work_bytes > kMaxBytes) {
      return wrong("kernel ", source.entry, ": launch sizes out of range");
    }
  }
  for (const ProgramStep& step : program.steps) {
    if (step.kernel < 0 || static_cast<size_t>(step.kernel) >= program.kernels.size()) {
      return wrong("a call names no kernel");
    }
    if (!std::all_of(step.args.begin(), step.args.end(), is_buffer)) return wrong("a call names no buffer");
    const ProgramKernel& kernel = program.kernels[step.kernel];
    if (static_cast<int64_t>(step.args.size()) != int64_t{kernel.inputs} + kernel.outputs) {
      return wrong("a call of ", kernel.source.entry, " has ", step.args.size(), " arguments");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string source_file(const Source& source) {
  const std::string& target = source.target;
  return cat(source.entry, target.starts_with("cuda:") ? ".cu" : target.starts_with("hip:") ? ".hip" : ".cpp");
}
std::string object_file(const Source& source) {
  const std::string& target = source.target;
  return cat(source.entry, target.starts_with("cuda:") ? ".cubin" : target.starts_with("hip:") ? ".hsaco" : ".so");
}
std::string source_path(const ProgramKernel& kernel) {
  return cat("kernels/", source_file(kernel.source));
}
std::string object_path(const ProgramKernel& kernel) {
  return cat("kernels/", object_file(kernel.source));
}

std::string graph_path(const ProgramKernel& kernel) {
  return cat("kernels/", kernel.source.entry, ".graph");
}

absl::Status bundle_changed(std::string_view file, std::string_view how) {
  return absl::DataLossError(
      cat("bundle file ", file, " has changed: ", how, "; write the bundle again with `warploom tune FILE --out DIR`"));
}

std::string manifest_text(const Program& program, const std::vector<BundleFile>& files) {
  Json manifest = to_json(program, files);
  manifest["sha256"] = sha256_hex(text_of(manifest));
  return text_of(manifest);
}

absl::StatusOr<Manifest> read_manifest(const std::string& folder) {
  const auto text = read_file(folder + "/manifest.json");
  if (!text.ok())
    return invalid(folder, " is not a bundle: ", text.status().message(),
                   "; expected a folder written by `tune --out`");
  return parse_manifest(*text);
}

absl::StatusOr<Manifest> parse_manifest(const std::string& text) {
  try {
    Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded() || !json.is_object()) return bundle_changed("manifest.json", "it is not JSON");
    if (!json.contains("format") || !json["format"].is_number_integer()) {
      return bundle_changed("manifest.json", "it names no format");
    }
    if (json["format"].get<int64_t>() > kBundleFormat) {
      return invalid("bundle format ", json["format"].get<int64_t>(), " is newer than ", kBundleFormat,
                     ", which this program knows; use a newer warploom");
    }
    // The digest covers the canonical form of the text. The text must equal that form, so that no byte can differ
    // unnoticed.
    if (text_of(json) != text) return bundle_changed("manifest.json", "its bytes are not what was written");
    std::string digest = json.at("sha256").get<std::string>();
    json.erase("sha256");
    if (sha256_hex(text_of(json)) != digest) return bundle_changed("manifest.json", "its digest does not match");
    WL_ASSIGN_OR_RETURN(Manifest manifest, read_json(json));
    WL_RETURN_IF_ERROR(check_program(manifest.program));
    return manifest;
  } catch (const Json::exception& error) {
    return invalid("manifest.json: ", error.what());
  }
}

}  // namespace wl
