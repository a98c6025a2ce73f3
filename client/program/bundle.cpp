#include "client/program/bundle.h"

#include <filesystem>
#include <map>
#include <set>

#include "client/program/files.h"
#include "client/program/json.h"
#include "client/program/manifest.h"
#include "client/program/sound.h"
#include "compiler/base/sha256.h"

namespace wl {

namespace {

// Returns a bundle's manifest without what depends on its report; null: it cannot be read.
Json manifest_without_report(const std::string& folder) {
  const absl::StatusOr<std::string> text = read_file(folder + "/manifest.json");
  Json manifest = Json::parse(text.value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !manifest.contains("files")) return nullptr;
  manifest.erase("sha256");
  Json files = Json::array();
  for (const Json& file : manifest["files"])
    if (file.is_object() && file.value("path", "") != "report.json") files.push_back(file);
  manifest["files"] = std::move(files);
  return manifest;
}

}  // namespace

bool same_kernels(const std::string& folder, const std::string& other) {
  const Json one = manifest_without_report(folder);
  return one != nullptr && one == manifest_without_report(other);
}

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
    // The error names the bundle's final folder instead of the temporary folder in which the bundle is written.
    std::string_view reason(status.message().data(), status.message().size());
    std::string prefix = cat("cannot write ", place, ": ");
    if (reason.starts_with(prefix)) reason.remove_prefix(prefix.size());
    return absl::Status(status.code(), cat("cannot write the bundle ", folder, ": ", reason));
  };
  WL_RETURN_IF_ERROR(put("graph.txt", program.graph_text));
  WL_RETURN_IF_ERROR(put("report.json", report));
  for (int i = 0; i < static_cast<int>(program.kernels.size()); ++i) {
    const ProgramKernel& kernel = program.kernels[i];
    WL_RETURN_IF_ERROR(put(graph_path(kernel), kernel.graph));
    WL_RETURN_IF_ERROR(
        put(source_path(kernel), cat(kernel.source.prelude, kernel.source.text, launch_text(program, i))));
    WL_RETURN_IF_ERROR(put(object_path(kernel), kernel.object));
  }
  WL_RETURN_IF_ERROR(write_file(pending.path() + "/manifest.json", manifest_text(program, files)));
  return pending.commit();
}

absl::StatusOr<Program> load_bundle(const std::string& folder) {
  if (!is_folder(folder)) return invalid("no bundle at ", folder, ": expected a folder written by `tune --out`");
  WL_ASSIGN_OR_RETURN(Manifest manifest, read_manifest(folder));
  Program& program = manifest.program;
  const auto wrong = [](const auto&... what) { return invalid("manifest.json: ", what...); };
  // For each path, the contents of its file; "" for shared objects, whose contents are not needed.
  std::map<std::string, std::string> texts;
  std::set<std::string> objects;
  for (const ProgramKernel& kernel : program.kernels) objects.insert(object_path(kernel));
  for (const BundleFile& file : manifest.files) {
    auto bytes = read_file(cat(folder, "/", file.path));
    if (!bytes.ok()) return bundle_changed(file.path, std::string(bytes.status().message()));
    if (static_cast<int64_t>(bytes->size()) != file.bytes || sha256_hex(*bytes) != file.sha256)
      return bundle_changed(file.path, "its SHA-256 does not match the manifest's");
    texts[file.path] = objects.contains(file.path) ? "" : *std::move(bytes);
  }
  program.graph_text = texts["graph.txt"];
  for (int i = 0; i < static_cast<int>(program.kernels.size()); ++i) {
    ProgramKernel& kernel = program.kernels[i];
    const std::string path = object_path(kernel);
    if (!texts.contains(path)) return wrong("the kernel ", kernel.source.entry, " has no object file");
    kernel.object_path = std::filesystem::absolute(cat(folder, "/", path)).string();
    kernel.graph = texts[graph_path(kernel)];
    if (manifest.format >= kFirstWithLaunches && !texts[source_path(kernel)].ends_with(launch_text(program, i)))
      return wrong("the kernel ", kernel.source.entry, " is launched in another way than ", source_path(kernel),
                   " says at its end");
  }
  if (const absl::Status sound = check_sound(program); !sound.ok())
    return wrong("it contradicts its kernels: ", std::string(sound.message()));
  // The offsets of intermediates in the arena are computed from the program's steps, since the manifest may be wrong.
  if (const absl::Status placed = lay_out(program); !placed.ok()) return wrong(std::string(placed.message()));
  return manifest.program;
}

}  // namespace wl
