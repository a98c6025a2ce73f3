#include "client/program/bundle.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "client/program/arena.h"
#include "client/program/files.h"
#include "client/program/json.h"
#include "compiler/base/sha256.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

constexpr std::string_view kPlaces[] = {"input", "output", "arena"};

std::string source_path(const ProgramKernel& kernel) {
  const std::string& target = kernel.source.target;
  const char* kind = target.starts_with("cuda:") ? ".cu" : target.starts_with("hip:") ? ".hip" : ".cpp";
  return cat("kernels/", kernel.source.entry, kind);
}
std::string object_path(const ProgramKernel& kernel) {
  const std::string& target = kernel.source.target;
  const char* kind = target.starts_with("cuda:") ? ".cubin" : target.starts_with("hip:") ? ".hsaco" : ".so";
  return cat("kernels/", kernel.source.entry, kind);
}

std::string graph_path(const ProgramKernel& kernel) {
  return cat("kernels/", kernel.source.entry, ".graph");
}

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

// Throws the exceptions of the JSON library when a key is missing or has another type.
absl::StatusOr<Manifest> read_json(const Json& json) {
  Manifest manifest;
  Program& program = manifest.program;
  program.graph_hash = json.at("graph").at("hash").get<std::string>();
  const Json& target = json.at("target");
  program.target = target.at("name").get<std::string>();
  program.device = target.at("device").get<std::string>();
  program.fingerprint = target.at("fingerprint").get<std::string>();
  program.bind = json.at("bind").get<std::map<std::string, int64_t>>();
  program.weights = json.at("weights").get<std::vector<std::string>>();
  for (const Json& row : json.value("folded", Json::array())) {
    FoldedWeight folded{row.at("name").get<std::string>(), {}};
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
    buffer.name = row.at("name").get<std::string>();
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
    program.outputs.push_back({row.at("name").get<std::string>(), row.at("buffer").get<int>()});
  }
  for (const Json& row : json.at("kernels")) {
    ProgramKernel kernel;
    kernel.source.entry = row.at("entry").get<std::string>();
    kernel.source.target = row.at("target").get<std::string>();
    kernel.source.compiler = row.at("compiler").get<std::string>();
    kernel.source.grid = row.at("grid").get<int64_t>();
    kernel.source.threads = row.at("threads").get<int>();
    kernel.source.scratch_bytes = row.at("scratch_bytes").get<int64_t>();
    kernel.source.passes = row.value("passes", 1);
    kernel.source.work_bytes = row.value("work_bytes", int64_t{0});
    kernel.inputs = row.at("inputs").get<int>();
    kernel.outputs = row.at("outputs").get<int>();
    kernel.key = row.at("key").get<std::string>();
    kernel.plan = row.at("plan").get<std::string>();
    program.kernels.push_back(std::move(kernel));
  }
  for (const Json& row : json.at("calls")) {
    program.steps.push_back({row.at("kernel").get<int>(), row.at("args").get<std::vector<int>>()});
  }
  for (const Json& row : json.at("files")) {
    manifest.files.push_back(
        {row.at("path").get<std::string>(), row.at("sha256").get<std::string>(), row.at("bytes").get<int64_t>()});
  }
  return manifest;
}

// Checks every number that the executor relies on.
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
    bool plain = !source.entry.empty() && std::all_of(source.entry.begin(), source.entry.end(), [](unsigned char c) {
      return c == '_' || (c < 128 && std::isalnum(c));
    });
    if (!plain) return wrong("a kernel's entry is not an identifier");
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

absl::Status changed(const std::string& path, std::string_view how) {
  return absl::DataLossError(
      cat("bundle file ", path, " has changed: ", how, "; write the bundle again with `warploom tune FILE --out DIR`"));
}

}  // namespace

absl::Status may_become_bundle(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path target(folder);
  if (fs::exists(target, ignored) && !fs::exists(target / "manifest.json", ignored) &&
      !fs::exists(target / "buckets.json", ignored) &&
      !(fs::is_directory(target, ignored) && fs::is_empty(target, ignored))) {
    return invalid("will not replace ", folder, ": it is not a bundle; choose another --out or remove it");
  }
  return absl::OkStatus();
}

absl::Status write_bundle(const std::string& folder, const Program& program, const std::string& report) {
  WL_RETURN_IF_ERROR(may_become_bundle(folder));
  WL_ASSIGN_OR_RETURN(PendingFolder pending, PendingFolder::create(folder));
  WL_RETURN_IF_ERROR(make_folders(pending.path() + "/kernels"));
  std::vector<BundleFile> files;
  auto put = [&](const std::string& path, std::string_view bytes) -> absl::Status {
    files.push_back({path, sha256_hex(bytes), static_cast<int64_t>(bytes.size())});
    std::string place = cat(pending.path(), "/", path);
    absl::Status status = write_file(place, bytes);
    if (status.ok()) return status;
    // Error messages should not name the temporary folder.
    std::string_view reason(status.message().data(), status.message().size());
    std::string prefix = cat("cannot write ", place, ": ");
    if (reason.starts_with(prefix)) reason.remove_prefix(prefix.size());
    return absl::Status(status.code(), cat("cannot write the bundle ", folder, ": ", reason));
  };
  WL_RETURN_IF_ERROR(put("graph.txt", program.graph_text));
  WL_RETURN_IF_ERROR(put("report.json", report));
  for (const ProgramKernel& kernel : program.kernels) {
    WL_RETURN_IF_ERROR(put(graph_path(kernel), kernel.graph));
    WL_RETURN_IF_ERROR(put(source_path(kernel), cat(kernel.source.prelude, kernel.source.text)));
    WL_RETURN_IF_ERROR(put(object_path(kernel), kernel.object));
  }
  Json manifest = to_json(program, files);
  manifest["sha256"] = sha256_hex(text_of(manifest));
  WL_RETURN_IF_ERROR(write_file(pending.path() + "/manifest.json", text_of(manifest)));
  return pending.commit();
}

absl::StatusOr<Manifest> parse_manifest(const std::string& text) {
  try {
    Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded() || !json.is_object()) return changed("manifest.json", "it is not JSON");
    if (!json.contains("format") || !json["format"].is_number_integer()) {
      return changed("manifest.json", "it names no format");
    }
    if (json["format"].get<int64_t>() > kBundleFormat) {
      return invalid("bundle format ", json["format"].get<int64_t>(), " is newer than ", kBundleFormat,
                     ", which this program knows; use a newer warploom");
    }
    // The digest covers the canonical bytes, and the text must equal them, so that no byte can differ unnoticed.
    if (text_of(json) != text) return changed("manifest.json", "its bytes are not what was written");
    std::string digest = json.at("sha256").get<std::string>();
    json.erase("sha256");
    if (sha256_hex(text_of(json)) != digest) return changed("manifest.json", "its digest does not match");
    WL_ASSIGN_OR_RETURN(Manifest manifest, read_json(json));
    WL_RETURN_IF_ERROR(check_program(manifest.program));
    return manifest;
  } catch (const Json::exception& error) {
    return invalid("manifest.json: ", error.what());
  }
}

absl::StatusOr<Program> load_bundle(const std::string& folder) {
  if (!is_folder(folder)) return invalid("no bundle at ", folder, ": expected a folder written by `tune --out`");
  auto text = read_file(folder + "/manifest.json");
  if (!text.ok()) return invalid(folder, " is not a bundle: ", text.status().message());
  WL_ASSIGN_OR_RETURN(Manifest manifest, parse_manifest(*text));
  Program& program = manifest.program;
  for (const BundleFile& file : manifest.files) {
    if (file.path.starts_with('/') || absl::StrContains(file.path, "..")) {
      return invalid("manifest.json: the file ", file.path, " is outside the bundle");
    }
    auto bytes = read_file(cat(folder, "/", file.path));
    if (!bytes.ok()) return changed(file.path, std::string(bytes.status().message()));
    if (sha256_hex(*bytes) != file.sha256) return changed(file.path, "its SHA-256 does not match the manifest's");
    if (file.path == "graph.txt") program.graph_text = *bytes;
    for (ProgramKernel& kernel : program.kernels) {
      if (file.path == graph_path(kernel)) kernel.graph = *bytes;
    }
  }
  for (ProgramKernel& kernel : program.kernels) {
    std::string path = object_path(kernel);
    bool listed = std::any_of(manifest.files.begin(), manifest.files.end(),
                              [&](const BundleFile& file) { return file.path == path; });
    if (!listed) return invalid("manifest.json: the kernel ", kernel.source.entry, " has no object file");
    kernel.object_path = std::filesystem::absolute(cat(folder, "/", path)).string();
  }
  return manifest.program;
}

}  // namespace wl
