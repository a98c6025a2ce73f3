#include "server/services/inspect.h"

#include <algorithm>
#include <deque>
#include <set>

#include "compiler/ir/text.h"
#include "proto/limits.h"
#include "proto/rpc.h"
#include "server/jobs/job_plan.h"

namespace wl {
namespace {

constexpr uint64_t kGroupSteps = 1000;  // of work on a group; the caller is asked about before each
constexpr size_t kPartBytes = 1 << 20;  // A part with groups ends when it is this long.

absl::StatusOr<v1::InspectResponse::Group> inspect_group(const PlannedGroup& group, const std::string& stage,
                                                         const JobPlan& plan, const Compiler& compiler, Store* store,
                                                         const Reader& reader) {
  v1::InspectResponse::Group out;
  out.set_key(group.key);
  out.set_count(group.fused_count);
  out.set_graph(group.text);
  if (stage == "graph") return out;
  auto compiled = compiler.open(group.graph, plan.machine);
  if (absl::IsUnimplemented(compiled.status()) && (stage == "space" || stage == "plan")) {
    // A job computes its parts instead.
    out.set_space(cat("no legal points: ", compiled.status().message(), "\n"));
    return out;
  }
  WL_RETURN_IF_ERROR(compiled.status());
  const std::unique_ptr<GroupCompiler> opened = *std::move(compiled);
  WL_ASSIGN_OR_RETURN(std::optional<RecordRow> record,
                      store->record_by_key(group.key, environment_of(plan.device), reader));
  const std::string chosen = record ? record->record.plan : opened->seeds().front();
  out.set_plan(chosen);
  out.set_tuned(record.has_value());
  if (stage == "kernel") {
    WL_ASSIGN_OR_RETURN(*out.mutable_kernel(), opened->kernel_text(chosen));
  } else if (stage == "source") {
    WL_ASSIGN_OR_RETURN(const Source source, opened->generate(chosen));
    *out.mutable_source() = to_proto(source);
  } else {
    out.set_space(opened->space_text());
  }
  return out;
}

// A stream. It deletes itself once gRPC is done with it.
class InspectCall final : public grpc::ServerWriteReactor<v1::InspectResponse> {
 public:
  InspectCall(const Serving& serving, grpc::CallbackServerContext* context, const v1::InspectRequest& request)
      : serving_(serving), context_(context), request_(request) {
    held_ = hold_call(serving, context, "/warploom.v1.TuningService/Inspect", kLongestTransfer);
    if (const absl::Status fields = check_fields(request); !fields.ok()) {
      Finish(to_grpc(fields));
    } else if (!serving_.slow->post([this] { answer(); })) {
      Finish(too_busy());
    }
  }

  void OnWriteDone(bool ok) override {
    parts_.pop_front();
    ok ? write() : Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    serving_.transfers->give(bytes_);
    delete this;
  }

 private:
  void answer() {
    if (const absl::Status made = make_parts(); made.ok())
      write();
    else
      Finish(to_grpc(made));
  }

  void write() {
    if (parts_.empty()) return Finish(grpc::Status::OK);
    StartWrite(&parts_.front());
  }

  absl::Status make_parts() {
    static const std::set<std::string> stages = {"graph", "space", "plan", "kernel", "source"};
    if (!stages.contains(request_.stage()))
      return invalid("stage: expected graph, space, plan, kernel or source, found \"", request_.stage(), "\"");
    v1::InspectResponse whole;
    if (request_.simplify_only()) {
      WL_ASSIGN_OR_RETURN(Graph graph, parse(request_.graph()));
      WL_ASSIGN_OR_RETURN(graph, compiler_.simplify(graph));
      whole.set_graph(print(graph));
      return keep(std::move(whole));
    }
    WL_ASSIGN_OR_RETURN(TuneOptions options, from_proto(request_.options()));
    WL_ASSIGN_OR_RETURN(const Reader reader, reader_of(serving_, *context_));
    WL_ASSIGN_OR_RETURN(Device device, serving_.engine->device_for(options, reader.team));
    WL_ASSIGN_OR_RETURN(JobPlan plan, make_plan(request_.graph(), options, device, compiler_, {}, &work_));
    whole.set_graph(print(plan.graph));
    WL_RETURN_IF_ERROR(keep(std::move(whole)));
    if (request_.why()) {
      WL_ASSIGN_OR_RETURN(CoverExplanation made, compiler_.explain(plan.graph, plan.machine, options.cover, &work_));
      v1::InspectResponse why, picture;
      why.set_why(std::move(made.text));
      WL_RETURN_IF_ERROR(keep(std::move(why)));
      picture.set_picture(std::move(made.picture));
      WL_RETURN_IF_ERROR(keep(std::move(picture)));
    }
    return make_groups(plan, reader);
  }

  absl::Status make_groups(const JobPlan& plan, const Reader& reader) {
    v1::InspectResponse part;
    size_t part_bytes = 0;
    for (const PlannedGroup& group : plan.groups) {
      if (group.fused_count == 0) continue;
      if (!work_.go_on(kGroupSteps)) return work_.status();
      WL_ASSIGN_OR_RETURN(v1::InspectResponse::Group made,
                          inspect_group(group, request_.stage(), plan, compiler_, serving_.store, reader));
      std::string prelude;
      if (made.has_source()) prelude.swap(*made.mutable_source()->mutable_prelude());
      const size_t bytes = made.ByteSizeLong();
      if (part.groups_size() > 0 && (part_bytes + bytes > kPartBytes || part.prelude() != prelude)) {
        WL_RETURN_IF_ERROR(keep(std::move(part)));
        part = {};
        part_bytes = 0;
      }
      part.set_prelude(std::move(prelude));
      *part.add_groups() = std::move(made);
      part_bytes += bytes;
    }
    return keep(std::move(part));
  }

  // Keeps a part to be sent. It takes its place among the transfers until the end of the call.
  absl::Status keep(v1::InspectResponse part) {
    const auto size = static_cast<int64_t>(part.ByteSizeLong());
    if (size > std::min<int64_t>(kMaxMessageBytes, kMostInspection - bytes_)) {
      return absl::ResourceExhaustedError(
          cat("inspect: the answer takes more than ", kMostInspection, " bytes, or ", kMaxMessageBytes,
              " in one part; inspect a part of the graph, or an earlier stage of the compiler"));
    }
    if (!serving_.transfers->take(size)) {
      return absl::UnavailableError(
          "inspect: blobs and other answers are being transferred that fill the memory set aside for it; try again in "
          "a second");
    }
    bytes_ += size;
    parts_.push_back(std::move(part));
    return absl::OkStatus();
  }

  const Serving serving_;
  grpc::CallbackServerContext* const context_;
  const v1::InspectRequest& request_;
  const Compiler& compiler_ = serving_.engine->compiler();
  Work work_{[this] {
    return context_->IsCancelled() || serving_.engine->leaving() ? absl::CancelledError("the caller has gone")
                                                                 : absl::OkStatus();
  }};
  std::deque<v1::InspectResponse> parts_;
  int64_t bytes_ = 0;  // taken of the transfers
  std::unique_ptr<OpenCalls::Held> held_;
};

}  // namespace

grpc::ServerWriteReactor<v1::InspectResponse>* inspect(const Serving& serving, grpc::CallbackServerContext* context,
                                                       const v1::InspectRequest& request) {
  return new InspectCall(serving, context, request);
}

}  // namespace wl
