#include "client/executor.h"

#include <algorithm>
#include <cstring>

#include "client/arena.h"

namespace wl {
std::string type_text(const ProgramBuffer& buffer) {
  return type_text(buffer.dtype, buffer.shape);
}

absl::StatusOr<Executor> Executor::create(const Program& program, const ExecutorOptions& options, Shared* shared) {
  Executor executor;
  executor.program_ = &program;
  int wanted = 1;
  int64_t scratch = 0;
  std::vector<BlockFunction> entries;
  for (const ProgramKernel& kernel : program.kernels) {
    if (kernel.source.target.starts_with("cuda:") || kernel.source.target.starts_with("hip:"))
      return unimplemented("kernels for ", kernel.source.target,
                           ": bundles run on CPUs and simulated GPUs; load a GPU's kernels with its driver");
    WL_ASSIGN_OR_RETURN(SharedObject object, SharedObject::open(kernel.object_path));
    WL_ASSIGN_OR_RETURN(void* entry, object.symbol(kernel.source.entry));
    entries.push_back(reinterpret_cast<BlockFunction>(entry));
    executor.objects_.push_back(std::move(object));
    wanted = std::max(wanted, kernel.source.threads);
    scratch = std::max(scratch, kernel.source.scratch_bytes);
  }
  if (shared != nullptr) executor.pool_ = shared->pool;
  if (!executor.pool_) {
    const int threads = options.threads > 0 ? std::min(options.threads, wanted) : wanted;
    executor.pool_ = std::make_shared<Pool>(threads, options.pin);
    if (shared != nullptr) shared->pool = executor.pool_;
  }
  WL_RETURN_IF_ERROR(executor.pool_->reserve_scratch(scratch));

  WL_ASSIGN_OR_RETURN(Buffer arena, Buffer::create(program.arena_bytes));
  int64_t index = 0;
  for (const ProgramBuffer& buffer : program.buffers) {
    if (buffer.place == Place::kArena) {
      executor.arguments_.push_back(arena.data() + buffer.offset);
      continue;
    }
    ++index;
    std::shared_ptr<Buffer>* known = nullptr;
    if (shared != nullptr && buffer.place == Place::kInput &&
        std::find(program.weights.begin(), program.weights.end(), buffer.name) != program.weights.end()) {
      known = &shared->weights[buffer.name];
    }
    std::shared_ptr<Buffer> memory = known != nullptr ? *known : nullptr;
    if (memory != nullptr && memory->bytes() != buffer.bytes()) {
      return invalid("weight ", buffer.name, " has ", memory->bytes(), " bytes for one size and ", buffer.bytes(),
                     " for another");
    }
    if (memory == nullptr) {
      WL_ASSIGN_OR_RETURN(Buffer made, Buffer::create(buffer.bytes(), stagger_of(index)));
      memory = std::make_shared<Buffer>(std::move(made));
      if (known != nullptr) *known = memory;
    }
    executor.arguments_.push_back(memory->data());
    executor.buffers_.push_back(std::move(memory));
  }
  executor.buffers_.push_back(std::make_shared<Buffer>(std::move(arena)));

  for (const ProgramStep& step : program.steps) {
    const Source& source = program.kernels[step.kernel].source;
    Call call;
    call.launch = {entries[step.kernel], source.grid, source.threads, source.scratch_bytes};
    for (int buffer : step.args) call.args.push_back(executor.arguments_[buffer]);
    executor.calls_.push_back(std::move(call));
  }
  return executor;
}

void Executor::generate(int buffer, uint64_t seed) {
  const ProgramBuffer& value = program_->buffers[buffer];
  fill_range(value.fill, value.dtype, seed, value.stream, 0, static_cast<uint64_t>(elements(value.shape)),
             data(buffer));
}

absl::Status Executor::set(int buffer, const Array& array) {
  return set(buffer, array.dtype, array.shape, array.bytes);
}

absl::Status Executor::set(int buffer, DType dtype, const Shape& shape, std::string_view bytes) {
  const ProgramBuffer& value = program_->buffers[buffer];
  if (dtype != value.dtype || shape != value.shape || static_cast<int64_t>(bytes.size()) != value.bytes()) {
    return invalid("input ", value.name, " is ", type_text(value), ", the given array is ", type_text(dtype, shape));
  }
  std::memcpy(data(buffer), bytes.data(), bytes.size());
  return absl::OkStatus();
}

void Executor::poison_results() {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const ProgramBuffer& value = program_->buffers[i];
    if (value.place != Place::kInput) poison(value.dtype, arguments_[i], elements(value.shape));
  }
  pool_->spoil_scratch();
}

void Executor::poison_step(int step) {
  const ProgramStep& call = program_->steps[step];
  for (size_t a = static_cast<size_t>(program_->kernels[call.kernel].inputs); a < call.args.size(); ++a) {
    const ProgramBuffer& value = program_->buffers[call.args[a]];
    poison(value.dtype, arguments_[call.args[a]], elements(value.shape));
  }
}

void Executor::run() {
  for (int i = 0; i < static_cast<int>(calls_.size()); ++i) run_step(i);
}

void Executor::run_step(int step) {
  const Call& call = calls_[step];
  if (call.launch.grid > 0) pool_->launch(call.launch, call.args.data());
}

}  // namespace wl
