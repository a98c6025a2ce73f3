#include "compiler/base/job.h"

#include "absl/strings/str_replace.h"
#include "compiler/base/sha256.h"

namespace wl {
namespace {

void add(Encoder& out, const std::vector<int64_t>& values) {
  out.integer(static_cast<int64_t>(values.size()));
  for (int64_t value : values) out.integer(value);
}

void add(Encoder& out, const Device& device) {
  out.text(device.target).text(device.name).integer(device.threads);
  out.integer(device.l1_bytes).integer(device.l2_bytes).integer(device.l3_bytes);
  out.integer(static_cast<int64_t>(device.compilers.size()));
  for (const std::string& compiler : device.compilers) out.text(compiler);
  out.text(device.compiler_versions);
  if (!device.details.empty())
    // Empty Device::details are left out of the digest, so that digests of CPU records stay as they were before GPUs.
    out.text(device.details);
  // An empty Device::libraries is left out of the digest, so that digests of older records stay valid.
  if (!device.libraries.empty()) out.text(device.libraries);
}

void add(Encoder& out, const Problem& problem) {
  out.text(problem.key).integer(static_cast<int64_t>(problem.buffers.size()));
  for (const BufferSpec& buffer : problem.buffers) {
    out.text(buffer.name).text(name_of(buffer.dtype));
    add(out, buffer.shape);
    out.integer(buffer.output).integer(static_cast<int64_t>(buffer.stream));
    out.real(buffer.fill.mean).real(buffer.fill.stddev).integer(buffer.fill.low).integer(buffer.fill.high);
    out.integer(static_cast<int64_t>(buffer.fill.literal.size()));
    for (double value : buffer.fill.literal) out.real(value);
  }
}

void add(Encoder& out, const Source& source) {
  out.text(source.target).text(source.compiler).text(source.prelude).text(source.text).text(source.entry);
  out.integer(source.grid).integer(source.threads).integer(source.scratch_bytes);
  if (source.load_bytes != 0 || source.store_bytes != 0) out.integer(source.load_bytes).integer(source.store_bytes);
  if (source.passes != 1 || source.work_bytes != 0)
    // For kernels of one pass without a workspace, the number of passes and the size of the workspace are left out of
    // the digest, so that digests of older records stay valid.
    out.integer(source.passes).integer(source.work_bytes);
  // An empty Source::library is left out of the digest, so that digests of older records stay valid.
  if (!source.library.empty()) out.text(source.library);
}

}  // namespace

std::string record_digest(const KernelRecord& record) {
  Encoder out("warploom.record", 1);
  out.text(record.key).text(record.environment);
  add(out, record.device);
  out.text(record.graph).text(record.plan).text(record.default_plan);
  add(out, record.problem);
  add(out, record.source);
  out.text(record.object_sha256);
  add(out, record.samples_ns);
  add(out, record.default_samples_ns);
  out.real(record.max_error).real(record.bound).integer(static_cast<int64_t>(record.check_seeds.size()));
  for (uint64_t seed : record.check_seeds) out.integer(static_cast<int64_t>(seed));
  out.text(record.strategy).integer(record.trials_asked).real(record.budget_s);
  for (int64_t count : record.outcomes) out.integer(count);
  out.integer(record.bytes).integer(record.ops).real(record.flops);
  out.real(record.compile_s).real(record.check_s).real(record.measure_s);
  // If measured_by is empty, both names of workers are left out of the digest, so that digests of older records stay
  // valid.
  if (!record.measured_by.empty()) out.text(record.measured_by).text(record.confirmed_by);
  return out.hash();
}

std::string shown_name(std::string_view worker) {
  return absl::StrReplaceAll(absl::string_view(worker.data(), worker.size()),
                             {{"%2F", "/"}, {"%25", "%"}, {"%23", "#"}});
}

bool is_confirmed(std::string_view measured_by, std::string_view confirmed_by) {
  return is_answered_for(measured_by) && is_answered_for(confirmed_by) &&
         principal_of(measured_by) != principal_of(confirmed_by);
}

GroupResult group_of(const KernelRecord& record) {
  GroupResult group;
  group.key = record.key;
  group.graph = record.graph;
  group.ops = record.ops;
  group.bytes = record.bytes;
  group.flops = record.flops;
  group.best_ns = median_of(record.samples_ns);
  group.samples_ns = record.samples_ns;
  group.trials = record.outcomes;
  group.max_error = record.max_error;
  group.bound = record.bound;
  group.plan = record.plan;
  group.record_digest = record.digest;
  group.measured_by = record.measured_by;
  group.confirmed_by = record.confirmed_by;
  group.built = !record.built_by.empty();
  return group;
}

double JobResult::whole_ns() const {
  for (const TimedCover& cover : covers)
    if (cover.chosen && !cover.samples_ns.empty()) return undisturbed_ns(cover.samples_ns);
  return steps.size() == 1 && groups.size() == 1 ? undisturbed_ns(groups[0].samples_ns) : 0;
}

}  // namespace wl
