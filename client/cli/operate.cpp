#include "client/cli/operate.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_code.h"
#include "client/cli/table.h"
#include "client/program/json.h"
#include "client/remote/report.h"
#include "proto/utc.h"

namespace wl {
namespace {

std::string date_text(int64_t unix_ms) {
  return unix_ms <= 0 ? "-" : utc_text(unix_ms / 1000, "%Y-%m-%d %H:%M:%S");
}

// The output of a command: text for people, and JSON for programs.
struct Listing {
  std::string text;
  Json json = {{"format", kReportFormat}};
};

bool colour() {
  return wants_colour(STDOUT_FILENO);
}

absl::StatusOr<Listing> jobs(Context& context, const OperateOptions& options) {
  WL_ASSIGN_OR_RETURN(const std::vector<Job> jobs, context.service.list_jobs(options.most));
  Table table({{"job"}, {"state"}, {"what"}, {"trials", true}, {"created (UTC)"}, {"trace"}}, colour());
  Listing out;
  out.json["jobs"] = Json::array();
  for (const Job& job : jobs) {
    const std::string state = kJobStateNames[static_cast<int>(job.state)];
    table.add({job.name, state, job.label, cat(job.progress.trials_done, "/", job.progress.trials_total),
               date_text(job.created_unix_ms), job.trace});
    out.json["jobs"].push_back({{"name", job.name},
                                {"state", state},
                                {"label", job.label},
                                {"cached", job.cached},
                                {"target", job.options.target},
                                {"trials_done", job.progress.trials_done},
                                {"trials_total", job.progress.trials_total},
                                {"error", std::string(job.error.message())},
                                {"created_unix_ms", job.created_unix_ms},
                                {"finished_unix_ms", job.finished_unix_ms},
                                {"trace", job.trace}});
  }
  out.text = table.text();
  return out;
}

absl::StatusOr<Listing> records(Context& context, const OperateOptions& options) {
  WL_ASSIGN_OR_RETURN(const std::vector<RecordSummary> records, context.service.list_records(options.most));
  constexpr size_t kShownDigits = 12;  // number of digits that are shown of a key; commands accept keys of this length
  Table table({{"key"},
               {"what"},
               {"target"},
               {"best", true},
               {"default", true},
               {"created (UTC)"},
               {"pin"},
               {"confirmed by"},
               {"team"}},
              colour());
  Listing out;
  out.json["records"] = Json::array();
  for (const RecordSummary& record : records) {
    table.add({record.key.substr(0, kShownDigits), record.name, record.target, time_text(record.best_ns),
               time_text(record.default_ns), date_text(record.created_unix_ms), record.pinned ? "yes" : "",
               record.confirmed_by.empty() ? "nobody" : shown_name(record.confirmed_by),
               record.team.empty() ? "shared" : record.team});
    out.json["records"].push_back({{"key", record.key},
                                   {"what", record.name},
                                   {"digest", record.digest},
                                   {"environment", record.environment},
                                   {"target", record.target},
                                   {"device", record.device},
                                   {"plan", record.plan},
                                   {"ops", record.ops},
                                   {"best_ns", record.best_ns},
                                   {"default_ns", record.default_ns},
                                   {"created_unix_ms", record.created_unix_ms},
                                   {"pinned", record.pinned},
                                   {"measured_by", record.measured_by},
                                   {"confirmed_by", record.confirmed_by},
                                   {"team", record.team}});
  }
  out.text = table.text();
  return out;
}

absl::StatusOr<Listing> workers(Context& context, const OperateOptions& /*options*/) {
  WL_ASSIGN_OR_RETURN(const std::vector<WorkerSummary> workers, context.service.list_workers());
  Table table({{"worker"}, {"state"}, {"devices"}, {"sandbox"}, {"team"}, {"leases", true}, {"last seen (UTC)"}},
              colour());
  Listing out;
  out.json["workers"] = Json::array();
  for (const WorkerSummary& worker : workers) {
    std::vector<std::string> devices;
    for (const Device& device : worker.devices) devices.push_back(device.target + " " + device.name);
    // All devices of a worker have the same sandbox.
    const std::string told = worker.devices.empty() ? "" : worker.devices[0].detail(kSandboxDetail);
    const std::string sandbox = told.empty() ? "unknown" : told;
    table.add({shown_name(worker.name), worker.alive ? "alive" : "lost", absl::StrJoin(devices, "; "), sandbox,
               worker.team.empty() ? "all" : worker.team, cat(worker.leases), date_text(worker.last_seen_unix_ms)});
    out.json["workers"].push_back({{"name", worker.name},
                                   {"alive", worker.alive},
                                   {"epoch", worker.epoch},
                                   {"devices", devices},
                                   {"sandbox", sandbox},
                                   {"team", worker.team},
                                   {"leases", worker.leases},
                                   {"last_seen_unix_ms", worker.last_seen_unix_ms}});
  }
  out.text = table.text();
  return out;
}

absl::StatusOr<Listing> cancel(Context& context, const OperateOptions& options) {
  WL_ASSIGN_OR_RETURN(const Job job, context.service.cancel_job(options.name));
  const std::string state = is_done(job.state) ? kJobStateNames[static_cast<int>(job.state)] : "cancelling";
  Listing out{cat(job.name, ": ", state, "\n")};
  out.json.update({{"name", job.name}, {"state", state}});
  return out;
}

absl::StatusOr<Listing> set_drained(Context& context, bool drained) {
  WL_RETURN_IF_ERROR(context.service.set_drained(drained));
  return Listing{
      cat(context.connection.server, drained ? ": workers get no new work\n" : ": workers get work again\n")};
}

absl::StatusOr<Listing> drain(Context& context, const OperateOptions& /*options*/) {
  return set_drained(context, true);
}

absl::StatusOr<Listing> undrain(Context& context, const OperateOptions& /*options*/) {
  return set_drained(context, false);
}

absl::StatusOr<Listing> set_pinned(Context& context, const std::string& name, bool pinned) {
  WL_ASSIGN_OR_RETURN(const std::string key, context.service.whole_key(name));
  WL_ASSIGN_OR_RETURN(const int64_t count, context.service.set_pinned(key, pinned));
  Listing out;
  out.text = cat(key, ": ", count, count == 1 ? " record is" : " records are",
                 pinned ? " kept whatever the bounds of the store are\n" : " no longer pinned\n");
  out.json["records"] = count;
  return out;
}

absl::StatusOr<Listing> pin(Context& context, const OperateOptions& options) {
  return set_pinned(context, options.name, true);
}

absl::StatusOr<Listing> unpin(Context& context, const OperateOptions& options) {
  return set_pinned(context, options.name, false);
}

absl::StatusOr<Listing> invalidate(Context& context, const OperateOptions& options) {
  WL_ASSIGN_OR_RETURN(const std::string key, context.service.whole_key(options.name));
  WL_ASSIGN_OR_RETURN(const int64_t count, context.service.invalidate(key));
  Listing out;
  out.text = cat(key, ": ", count, count == 1 ? " record is" : " records are", " no longer served\n");
  out.json["records"] = count;
  return out;
}

absl::StatusOr<Listing> backup(Context& context, const OperateOptions& /*options*/) {
  WL_ASSIGN_OR_RETURN(const Service::Backup made, context.service.make_backup());
  Listing out;
  out.text =
      absl::StrFormat("%s: %.1f MB, on the coordinator's machine\n", made.file, static_cast<double>(made.bytes) / 1e6);
  out.json["file"] = made.file;
  out.json["bytes"] = made.bytes;
  return out;
}

absl::StatusOr<Listing> signer(Context& context, const OperateOptions& /*options*/) {
  WL_ASSIGN_OR_RETURN(const ServerSummary server, context.service.server());
  if (server.signing_key.empty()) {
    return absl::NotFoundError(
        cat("the coordinator at ", context.connection.server, " signs no records; is it older than this program?"));
  }
  Listing out;
  out.text = cat(server.signing_key, " ", context.connection.server, "\n");
  out.json["signing_key"] = server.signing_key;
  return out;
}

std::string memory_text(int64_t bytes) {
  return bytes <= 0 ? "not known" : absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
}

absl::StatusOr<Listing> server_status(Context& context, const OperateOptions& /*options*/) {
  WL_ASSIGN_OR_RETURN(const ServerSummary server, context.service.server());
  Table table({{"coordinator"}, {context.connection.server}}, colour());
  table.add({"version", cat(server.version, ", protocol ", server.api_version)});
  table.add({"store", cat(server.store, ", schema ", server.schema_version, ", SQLite ", server.sqlite_version)});
  table.add({"new work", server.draining ? "none: drained" : "is given to workers"});
  table.add({"signing key", server.signing_key.empty() ? "none" : server.signing_key});
  const std::string away = server.upstream_problem.empty() ? "" : cat(", ", server.upstream_problem);
  table.add({"upstream", server.upstream.empty() ? "none" : cat(server.upstream, away)});
  table.add({"found in the store", found_text(server)});
  table.add({"heap holds", memory_text(server.heap_bytes)});
  table.add({"resident", memory_text(server.resident_bytes)});
  Listing out;
  out.text = table.text();
  out.json.update({{"version", server.version},
                   {"api_version", server.api_version},
                   {"store", server.store},
                   {"schema_version", server.schema_version},
                   {"sqlite_version", server.sqlite_version},
                   {"draining", server.draining},
                   {"signing_key", server.signing_key},
                   {"upstream", server.upstream},
                   {"upstream_problem", server.upstream_problem},
                   {"groups_found", server.groups_found},
                   {"groups_missed", server.groups_missed},
                   {"saved_s", server.saved_s},
                   {"heap_bytes", server.heap_bytes},
                   {"resident_bytes", server.resident_bytes}});
  return out;
}

absl::StatusOr<Listing> revoke(Context& context, const OperateOptions& options) {
  const std::string& producer = options.name;
  WL_ASSIGN_OR_RETURN(const Service::Revoked gone, context.service.revoke(producer));
  Listing out;
  out.text = cat(producer, ": ", gone.records, " records and ", gone.trials,
                 " trials are forgotten; their kernels are searched again when somebody asks for them\n");
  out.json["records"] = gone.records;
  out.json["trials"] = gone.trials;
  return out;
}

struct Row {
  const char* command;
  absl::StatusOr<Listing> (*run)(Context& context, const OperateOptions& options);
};
constexpr Row kRows[] = {{"jobs", jobs},
                         {"records", records},
                         {"workers", workers},
                         {"cancel", cancel},
                         {"drain", drain},
                         {"undrain", undrain},
                         {"pin", pin},
                         {"unpin", unpin},
                         {"invalidate", invalidate},
                         {"backup", backup},
                         {"signer", signer},
                         {"revoke", revoke},
                         {"status", server_status}};

}  // namespace

absl::StatusOr<int> operate_command(Context& context, const std::string& command, const OperateOptions& options) {
  for (const Row& row : kRows) {
    if (command != row.command) continue;
    const absl::StatusOr<Listing> listing = row.run(context, options);
    // FailedPrecondition would give the exit code for "no correct candidate". Here, it means that the operator has to
    // do something first, so it is converted to InvalidArgument.
    if (absl::IsFailedPrecondition(listing.status())) return invalid(std::string(listing.status().message()));
    WL_RETURN_IF_ERROR(listing.status());
    WL_RETURN_IF_ERROR(write_report(options.json, text_of(listing->json)));
    if (options.json != "-") std::fputs(listing->text.c_str(), stdout);
    return kExitDone;
  }
  return absl::InternalError(cat("no function for the command ", command));
}

}  // namespace wl
