#include "client/program/bucket.h"

#include <algorithm>

#include "client/program/bundle.h"
#include "client/program/files.h"
#include "client/program/json.h"
#include "client/program/manifest.h"
#include "compiler/base/names.h"
#include "compiler/base/sha256.h"

namespace wl {
namespace {

absl::Status changed(std::string_view what) {
  return bundle_changed("buckets.json", what);
}

// Reads buckets.json. It does not list inputs and outputs, so those of the returned buckets stay empty. Throws
// exceptions of the JSON library for members that are missing or of another type.
absl::StatusOr<std::vector<Bucket>> read_index(const std::string& folder, const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return changed("it is not JSON");
  if (json.at("format").get<int64_t>() > kBundleFormat) {
    return invalid("bundle format ", json["format"].get<int64_t>(), " is newer than ", kBundleFormat,
                   ", which this program knows; use a newer warploom");
  }
  if (text_of(json) != text) return changed("its bytes are not what was written");
  const std::string digest = json.at("sha256").get<std::string>();
  json.erase("sha256");
  if (sha256_hex(text_of(json)) != digest) return changed("its digest does not match");
  std::vector<Bucket> buckets;
  for (const Json& row : json.at("buckets")) {
    const std::string name = row.at("folder").get<std::string>();
    WL_RETURN_IF_ERROR(check_text("buckets.json: folder", name, TextKind::kName, 1024));
    if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.'))
      return invalid("buckets.json: the folder \"", name, "\" is outside the bundle");
    Bucket bucket;
    bucket.bind = row.at("bind").get<Bind>();
    bucket.folder = cat(folder, "/", name);
    auto manifest = read_file(bucket.folder + "/manifest.json");
    if (!manifest.ok() || sha256_hex(*manifest) != row.at("sha256").get<std::string>()) {
      return changed(cat("the manifest of ", name, " is not the one it names"));
    }
    buckets.push_back(std::move(bucket));
  }
  if (buckets.empty()) return changed("it names no bucket");
  return buckets;
}

std::string sizes_text(const std::vector<Bucket>& buckets) {
  std::string text;
  for (const Bucket& bucket : buckets) append(&text, text.empty() ? "" : "; ", bind_text(bucket.bind));
  return text;
}

bool fits(const Bucket& bucket, const Bind& bind, const std::map<std::string, Shape>& inputs) {
  for (const auto& [name, extent] : bind) {
    const auto found = bucket.bind.find(name);
    if (found == bucket.bind.end() || found->second != extent) return false;
  }
  return std::all_of(bucket.inputs.begin(), bucket.inputs.end(), [&](const TensorInfo& buffer) {
    const auto given = inputs.find(buffer.name);
    return given == inputs.end() || given->second == buffer.shape;
  });
}

}  // namespace

std::vector<Bind> combinations(const std::map<std::string, std::vector<int64_t>>& values) {
  std::vector<Bind> result = {{}};
  for (const auto& [name, extents] : values) {
    std::vector<Bind> longer;
    for (const Bind& bind : result) {
      for (int64_t extent : extents) {
        longer.push_back(bind);
        longer.back()[name] = extent;
      }
    }
    result = std::move(longer);
  }
  return result;
}

std::string bind_text(const Bind& bind) {
  std::string text;
  for (const auto& [name, extent] : bind) append(&text, text.empty() ? "" : ",", name, "=", extent);
  return text;
}

absl::Status write_buckets(const std::string& folder, const std::vector<TunedProgram>& programs) {
  if (programs.size() == 1) return write_bundle(folder, programs[0].program, programs[0].report);
  WL_RETURN_IF_ERROR(may_become_bundle(folder));
  WL_ASSIGN_OR_RETURN(PendingFolder pending, PendingFolder::create(folder));
  Json index = {{"format", kBundleFormat}, {"buckets", Json::array()}};
  for (const TunedProgram& tuned : programs) {
    std::string name = bind_text(tuned.program.bind);
    for (char& c : name) {
      if (c == '/' || static_cast<unsigned char>(c) <= 32) c = '_';
    }
    const std::string place = cat(pending.path(), "/", name);
    WL_RETURN_IF_ERROR(write_bundle(place, tuned.program, tuned.report));
    WL_ASSIGN_OR_RETURN(const std::string manifest, read_file(place + "/manifest.json"));
    index["buckets"].push_back({{"bind", tuned.program.bind}, {"folder", name}, {"sha256", sha256_hex(manifest)}});
  }
  index["sha256"] = sha256_hex(text_of(index));
  WL_RETURN_IF_ERROR(write_file(pending.path() + "/buckets.json", text_of(index)));
  return pending.commit();
}

absl::StatusOr<std::vector<Bucket>> list_buckets(const std::string& folder) {
  if (!is_folder(folder)) return invalid("no bundle at ", folder, ": expected a folder written by `tune --out`");
  std::vector<Bucket> buckets = {{{}, folder, {}, {}}};
  if (const auto text = read_file(folder + "/buckets.json"); text.ok()) {
    try {
      WL_ASSIGN_OR_RETURN(buckets, read_index(folder, *text));
    } catch (const Json::exception& error) {
      return invalid("buckets.json: ", error.what());
    }
  }
  for (Bucket& bucket : buckets) {
    WL_ASSIGN_OR_RETURN(const Manifest manifest, read_manifest(bucket.folder));
    const Program& program = manifest.program;
    bucket.bind = program.bind;
    for (const ProgramBuffer& buffer : program.buffers) {
      if (buffer.place == Place::kInput) {
        bucket.inputs.push_back({buffer.name, buffer.dtype, buffer.shape});
      }
    }
    for (const ProgramOutput& output : program.outputs) {
      const ProgramBuffer& buffer = program.buffers[output.buffer];
      bucket.outputs.push_back({output.name, buffer.dtype, buffer.shape});
    }
  }
  return buckets;
}

absl::StatusOr<size_t> pick_bucket(const std::vector<Bucket>& buckets, const Bind& bind,
                                   const std::map<std::string, Shape>& inputs) {
  std::vector<size_t> fitting;
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (fits(buckets[i], bind, inputs)) fitting.push_back(i);
  }
  if (fitting.size() == 1) return fitting[0];
  // If the bundle has a single bucket and no extents were asked for, that bucket is chosen even if the inputs do not
  // fit it. A later error then names the input that does not fit.
  if (buckets.size() == 1 && bind.empty()) return 0;
  if (!fitting.empty()) {
    return invalid("the bundle was tuned for ", sizes_text(buckets),
                   ", and no size was chosen; add, for example, --bind ", bind_text(buckets[fitting[0]].bind));
  }
  std::string asked = bind_text(bind);
  for (const auto& [name, shape] : inputs) append(&asked, asked.empty() ? "" : ", ", name, " ", shape_text(shape));
  return invalid("no plan for ", asked, ": the bundle was tuned for ",
                 buckets[0].bind.empty() ? "no symbolic dimensions" : sizes_text(buckets),
                 "; sizes must match exactly: tune again with --bind");
}

}  // namespace wl
