#include "server/services/inspect.h"

#include <algorithm>
#include <deque>
#include <set>
#include <string_view>

#include "compiler/cover/explain.h"
#include "compiler/ir/compose/compose.h"
#include "compiler/ir/text.h"
#include "compiler/target/target.h"
#include "proto/limits.h"
#include "proto/rpc.h"
#include "server/jobs/job_plan.h"

namespace wl {
namespace {

constexpr uint64_t kGroupSteps = 1000;  // steps of Work (compiler/base/work.h) that each group in the answer costs
constexpr size_t kPartBytes = 1 << 20;  // bytes of a part of the answer, beyond which no further group is added to it

struct Shown {
  std::string key;
  Graph graph;
  int64_t count = 0;                     // number of launches of the group
  std::optional<std::string> plan = {};  // the plan to show; nullopt: that of the default schedule
};

absl::StatusOr<v1::InspectResponse::Group> inspect_kernel(const Shown& kernel, const std::string& stage,
                                                          const Machine& machine, const Compiler& compiler) {
  v1::InspectResponse::Group out;
  out.set_key(kernel.key);
  out.set_count(kernel.count);
  out.set_graph(print(kernel.graph));
  if (stage == "graph") return out;
  out.set_plan(kernel.plan.value_or(""));
  out.set_tuned(kernel.plan.has_value());
  auto compiled = compiler.open(kernel.graph, machine);
  if (absl::IsUnimplemented(compiled.status()) && (stage == "space" || stage == "plan")) {
    // No kernel computes the whole group, so a job computes the group's parts instead.
    out.set_space(cat("no legal points: ", compiled.status().message(), "\n"));
    return out;
  }
  WL_RETURN_IF_ERROR(compiled.status());
  const std::unique_ptr<GroupCompiler> opened = *std::move(compiled);
  if (!kernel.plan) out.set_plan(opened->seeds().front());
  if (stage == "kernel") {
    WL_ASSIGN_OR_RETURN(*out.mutable_kernel(), opened->kernel_text(out.plan()));
  } else if (stage == "source") {
    WL_ASSIGN_OR_RETURN(const Source source, opened->generate(out.plan()));
    *out.mutable_source() = to_proto(source);
  } else {
    out.set_space(opened->space_text());
  }
  return out;
}

// The stream of one call of Inspect. The object deletes itself once gRPC no longer needs it.
class InspectCall final : public grpc::ServerWriteReactor<v1::InspectResponse> {
 public:
  InspectCall(const Serving& serving, grpc::CallbackServerContext* context, const v1::InspectRequest& request)
      : serving_(serving), context_(context), request_(request) {
    held_ = hold_call(serving, context, "/warploom.v1.TuningService/Inspect", kLongestTransfer);
    if (const absl::Status fields = check_fields(request); !fields.ok()) {
      Finish(to_grpc(fields));
    } else if (!pool_for_graph(serving, request_.graph().size())
                    ->post([this] { answer(); }, caller_of(serving, *context))) {
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
    try {
      if (const absl::Status made = make_parts(); made.ok())
        write();
      else
        Finish(to_grpc(made));
    } catch (const std::bad_alloc&) {
      Finish(to_grpc(no_memory()));
    }
  }

  void write() {
    if (parts_.empty()) return Finish(grpc::Status::OK);
    StartWrite(&parts_.front());
  }

  absl::Status make_parts() {
    static const std::set<std::string> stages = {"graph", "space", "plan", "kernel", "source"};
    if (!stages.contains(request_.stage()))
      return invalid("stage: expected graph, space, plan, kernel or source, found \"", request_.stage(), "\"");
    WL_ASSIGN_OR_RETURN(memory_, serving_.engine->memory_for(request_.graph(), caller_of(serving_, *context_)));
    if (request_.simplify_only()) {
      WL_ASSIGN_OR_RETURN(Graph graph, parse(request_.graph()));
      WL_ASSIGN_OR_RETURN(graph, compiler_.simplify(graph));
      return keep_graph(graph);
    }
    if (request_.has_result()) {
      WL_ASSIGN_OR_RETURN(const JobResult result, from_proto(request_.result()));
      return make_result(result);
    }
    WL_ASSIGN_OR_RETURN(const TuneOptions options, from_proto(request_.options()));
    WL_ASSIGN_OR_RETURN(const Reader reader, reader_of(serving_, *context_));
    WL_ASSIGN_OR_RETURN(const Device device, serving_.engine->device_for(options, reader.team));
    WL_ASSIGN_OR_RETURN(const auto known,
                        serving_.store->whole_answer(result_key(request_.graph(), device, options, reader.team)));
    return known ? make_result(known->result) : make_planned(options, reader, device);
  }

  // Shows the kernels with which a job would begin, for a graph without a stored result.
  absl::Status make_planned(const TuneOptions& options, const Reader& reader, const Device& device) {
    WL_ASSIGN_OR_RETURN(JobPlan plan, make_plan(request_.graph(), options, device, compiler_, {}, &work_));
    WL_RETURN_IF_ERROR(keep_graph(plan.graph));
    if (request_.why()) {
      WL_ASSIGN_OR_RETURN(CoverExplanation made, compiler_.explain(plan.graph, plan.machine, options.cover, &work_));
      WL_RETURN_IF_ERROR(
          keep_why(std::move(made), "as planned before any kernel is timed; a search may choose others"));
    }
    for (PlannedGroup& group : plan.groups) {
      if (group.fused_count == 0) continue;
      Shown kernel{group.key, std::move(group.graph), group.fused_count};
      if (request_.stage() != "graph") {
        WL_ASSIGN_OR_RETURN(const std::optional<RecordRow> record,
                            serving_.store->record_by_key(group.key, environment_of(plan.device), reader));
        if (record) kernel.plan = record->record.plan;
      }
      WL_RETURN_IF_ERROR(add_group(kernel, plan.machine));
    }
    return keep(std::move(part_));
  }

  // Shows the kernels that a stored result launches; covers and schedules are not chosen again.
  absl::Status make_result(const JobResult& result) {
    WL_ASSIGN_OR_RETURN(const Machine machine, machine_of(result.device));
    WL_ASSIGN_OR_RETURN(const Composition whole, compose(result));
    WL_RETURN_IF_ERROR(keep_graph(whole.graph));
    if (request_.why()) {
      WL_ASSIGN_OR_RETURN(CoverExplanation made, explain(whole, machine, &work_));
      WL_RETURN_IF_ERROR(keep_why(std::move(made), "as they were chosen by a search and are launched"));
    }
    for (const GroupResult& group : result.groups) {
      WL_ASSIGN_OR_RETURN(Graph part, parse(group.graph));
      WL_RETURN_IF_ERROR(add_group({group.key, std::move(part), group.count, group.plan}, machine));
    }
    return keep(std::move(part_));
  }

  absl::Status keep_graph(const Graph& graph) {
    v1::InspectResponse whole;
    whole.set_graph(print(graph));
    return keep(std::move(whole));
  }

  // Keeps an explanation to be sent. `whence`: where the kernels come from, which is printed after the line of totals.
  absl::Status keep_why(CoverExplanation made, std::string_view whence) {
    v1::InspectResponse why, picture;
    made.text.insert(made.text.find('\n') + 1,
                     cat("# the kernels are shown ", whence, "; times are the cost model's\n"));
    why.set_why(std::move(made.text));
    WL_RETURN_IF_ERROR(keep(std::move(why)));
    picture.set_picture(themed(std::move(made.picture)));
    return keep(std::move(picture));
  }

  // Adds a group to the current part of the answer. If the part would become too long, or if the group has another
  // prelude, the part is first kept for sending and a new part is begun.
  absl::Status add_group(const Shown& kernel, const Machine& machine) {
    if (!work_.go_on(kGroupSteps)) return work_.status();
    WL_ASSIGN_OR_RETURN(v1::InspectResponse::Group made, inspect_kernel(kernel, request_.stage(), machine, compiler_));
    std::string prelude;
    if (made.has_source()) prelude.swap(*made.mutable_source()->mutable_prelude());
    const size_t bytes = made.ByteSizeLong();
    if (part_.groups_size() > 0 && (part_bytes_ + bytes > kPartBytes || part_.prelude() != prelude)) {
      WL_RETURN_IF_ERROR(keep(std::move(part_)));
      part_ = {};
      part_bytes_ = 0;
    }
    part_.set_prelude(std::move(prelude));
    *part_.add_groups() = std::move(made);
    part_bytes_ += bytes;
    return absl::OkStatus();
  }

  // Keeps a part to be sent. Its bytes count against the budget of transfers until the call ends. ResourceExhausted:
  // the answer is too large. Unavailable: other transfers fill the memory.
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
  std::shared_ptr<const void> memory_;  // the reservation of memory for planning
  std::deque<v1::InspectResponse> parts_;
  v1::InspectResponse part_;  // the part to which groups are added
  size_t part_bytes_ = 0;
  int64_t bytes_ = 0;  // bytes that this call holds of the budget `transfers`
  std::unique_ptr<OpenCalls::Held> held_;
};

}  // namespace

grpc::ServerWriteReactor<v1::InspectResponse>* inspect(const Serving& serving, grpc::CallbackServerContext* context,
                                                       const v1::InspectRequest& request) {
  return new InspectCall(serving, context, request);
}

}  // namespace wl
