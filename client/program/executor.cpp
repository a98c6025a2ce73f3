#include "client/program/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "client/program/uses.h"
#include "runtime/arena.h"

namespace wl {

constexpr uintptr_t kArgumentAlignment = 64;  // alignment in bytes of a kernel's args (compiler/base/records.h)

std::string type_text(const ProgramBuffer& buffer) {
  return type_text(buffer.dtype, buffer.shape);
}

absl::Status Executor::load_objects(const ExecutorOptions& options, Shared* shared) {
  int wanted = 1;
  int64_t scratch = 0, work = 0;
  for (const ProgramKernel& kernel : program_->kernels) {
    WL_ASSIGN_OR_RETURN(SharedObject object, SharedObject::open(kernel.object_path));
    WL_ASSIGN_OR_RETURN(void* entry, object.symbol(kernel.source.entry));
    WL_RETURN_IF_ERROR(object.prepare(kernel.source.entry, kernel.source.library));
    entries_.push_back(reinterpret_cast<BlockFunction>(entry));
    outside_.push_back(object.outside_of(kernel.source.entry, kernel.source.scratch_bytes));
    objects_.push_back(std::move(object));
    wanted = std::max(wanted, kernel.source.threads);
    scratch = std::max(scratch, kernel.source.scratch_bytes);
    work = std::max(work, kernel.source.work_bytes);
  }
  if (shared != nullptr) pool_ = shared->pool;
  if (!pool_) {
    const int threads = options.threads > 0 ? std::min(options.threads, wanted) : wanted;
    pool_ = std::make_shared<Pool>(threads, options.pin);
    if (shared != nullptr) shared->pool = pool_;
  }
  WL_RETURN_IF_ERROR(pool_->reserve_scratch(scratch));
  return pool_->reserve_work(work);
}

// Allocates memory for those weights of a program that have none yet.
static absl::Status add_weights(const Program& program, std::map<std::string, Shared::Weight>& weights) {
  std::vector<Lifetime> sizes;
  std::vector<Shared::Weight*> added;
  for (const ProgramBuffer& buffer : program.buffers) {
    if (buffer.place != Place::kInput || !is_weight(program, buffer.name)) continue;
    Shared::Weight& weight = weights[buffer.name];
    if (weight.memory == nullptr) {
      weight.bytes = buffer.bytes();
      sizes.push_back({weight.bytes});
      added.push_back(&weight);
    } else if (weight.bytes != buffer.bytes()) {
      return invalid("weight ", buffer.name, " has ", weight.bytes, " bytes for one size and ", buffer.bytes(),
                     " for another");
    }
  }
  if (added.empty()) return absl::OkStatus();
  // All new weights share one allocation, so that large pages can hold them: with small pages, kernels that read
  // weights from memory would spend time on TLB misses.
  const Arena arena = plan_arena(sizes);
  WL_ASSIGN_OR_RETURN(Buffer made, Buffer::create(arena.bytes));
  const auto memory = std::make_shared<Buffer>(std::move(made));
  for (size_t i = 0; i < added.size(); ++i) {
    added[i]->data = memory->data() + arena.offsets[i];
    added[i]->memory = memory;
  }
  return absl::OkStatus();
}

absl::Status Executor::place_buffers(std::map<std::string, Shared::Weight>& weights) {
  WL_RETURN_IF_ERROR(add_weights(*program_, weights));
  const auto keep = [this](Buffer made) {
    buffers_.push_back(std::make_shared<Buffer>(std::move(made)));
    return buffers_.back()->data();
  };
  WL_ASSIGN_OR_RETURN(Buffer arena, Buffer::create(program_->arena_bytes));
  char* const intermediates = keep(std::move(arena));
  int64_t index = 0;
  for (const ProgramBuffer& buffer : program_->buffers) {
    if (buffer.place == Place::kArena) {
      arguments_.push_back(intermediates + buffer.offset);
      continue;
    }
    ++index;
    if (const auto weight = weights.find(buffer.name); buffer.place == Place::kInput && weight != weights.end()) {
      arguments_.push_back(weight->second.data);
      buffers_.push_back(weight->second.memory);
      continue;
    }
    WL_ASSIGN_OR_RETURN(Buffer made, Buffer::create(buffer.bytes(), stagger_of(index)));
    arguments_.push_back(keep(std::move(made)));
  }
  own_ = arguments_;
  return absl::OkStatus();
}

absl::StatusOr<Executor> Executor::without_kernels(const Program& program) {
  Executor executor;
  executor.program_ = &program;
  std::map<std::string, Shared::Weight> own;
  WL_RETURN_IF_ERROR(executor.place_buffers(own));
  return executor;
}

absl::StatusOr<Executor> Executor::create(const Program& program, const ExecutorOptions& options, Shared* shared) {
  Executor executor;
  executor.program_ = &program;
  if (is_for_gpu(program)) {
    WL_ASSIGN_OR_RETURN(executor.gpu_,
                        GpuProgram::load(program, options.device, shared != nullptr ? &shared->gpu : nullptr));
  } else {
    WL_RETURN_IF_ERROR(executor.load_objects(options, shared));
  }

  std::map<std::string, Shared::Weight> own;
  WL_RETURN_IF_ERROR(executor.place_buffers(shared != nullptr ? shared->weights : own));

  for (const ProgramStep& step : program.steps) {
    if (executor.gpu_) break;
    const Source& source = program.kernels[step.kernel].source;
    Call call;
    call.launch = {executor.entries_[step.kernel], source.grid,   source.threads,
                   source.scratch_bytes,           source.passes, executor.outside_[step.kernel]};
    for (int buffer : step.args) call.args.push_back(executor.arguments_[buffer]);
    // The last argument is the workspace. Its address is set at each run, since another executor that uses the pool may
    // enlarge the workspace and thereby move it.
    call.args.push_back(nullptr);
    executor.calls_.push_back(std::move(call));
  }
  return executor;
}

bool Executor::bind(int buffer, void* memory) {
  const ProgramBuffer& value = program_->buffers[static_cast<size_t>(buffer)];
  if (gpu_) gpu_->bind(buffer, nullptr);
  if (memory == nullptr) memory = own_[static_cast<size_t>(buffer)];
  if (memory == data(buffer)) return true;
  const bool usable = reinterpret_cast<uintptr_t>(memory) % kArgumentAlignment == 0 && value.place != Place::kArena &&
                      !is_weight(*program_, value.name);
  if (gpu_ || !usable) return false;
  arguments_[static_cast<size_t>(buffer)] = memory;
  for (size_t step = 0; step < calls_.size(); ++step) {
    const std::vector<int>& args = program_->steps[step].args;
    for (size_t a = 0; a < args.size(); ++a)
      if (args[a] == buffer) calls_[step].args[a] = memory;
  }
  return true;
}

absl::Status Executor::needs_gpu() const {
  if (gpu_) return absl::OkStatus();
  return absl::FailedPreconditionError("the kernels run on CPUs, where there is no device memory and no stream");
}

absl::Status Executor::bind_device(int buffer, void* memory) {
  WL_RETURN_IF_ERROR(needs_gpu());
  if (reinterpret_cast<uintptr_t>(memory) % kArgumentAlignment != 0)
    return invalid(program_->buffers[buffer].name, ": its device memory has to begin at a multiple of ",
                   kArgumentAlignment, " bytes");
  gpu_->bind(buffer, memory);
  return absl::OkStatus();
}

absl::Status Executor::launch(void* stream) const {
  if (gpu_ && program_->meter != nullptr) (void)program_->meter->begin_run();
  return gpu_ ? gpu_->launch_on(stream) : needs_gpu();
}

absl::Status Executor::copy_on_device(int buffer, void* to, std::optional<void*> stream) const {
  return gpu_ ? gpu_->copy(buffer, to, stream) : needs_gpu();
}

absl::Status Executor::generate(int buffer, uint64_t seed) {
  const ProgramBuffer& value = program_->buffers[buffer];
  fill_range(value.fill, value.dtype, seed, value.stream, 0, static_cast<uint64_t>(elements(value.shape)),
             data(buffer));
  return gpu_ ? gpu_->write(buffer, data(buffer)) : absl::OkStatus();
}

absl::Status Executor::set(int buffer, const Array& array) {
  return set(buffer, array.dtype, array.shape, array.bytes);
}

absl::Status Executor::set(int buffer, DType dtype, const Shape& shape, std::string_view bytes) {
  const ProgramBuffer& value = program_->buffers[buffer];
  if (dtype != value.dtype || shape != value.shape || static_cast<int64_t>(bytes.size()) != value.bytes()) {
    return invalid("input ", value.name, " is ", type_text(value), ", the given array is ", type_text(dtype, shape),
                   "; give one of the input's type and shape");
  }
  std::memcpy(data(buffer), bytes.data(), bytes.size());
  return gpu_ ? gpu_->write(buffer, data(buffer)) : absl::OkStatus();
}

absl::Status Executor::poison(int buffer) {
  const ProgramBuffer& value = program_->buffers[buffer];
  wl::poison(value.dtype, data(buffer), elements(value.shape));
  return gpu_ ? gpu_->write(buffer, data(buffer)) : absl::OkStatus();
}

absl::Status Executor::poison_results() {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (program_->buffers[i].place != Place::kInput) WL_RETURN_IF_ERROR(poison(static_cast<int>(i)));
  }
  if (pool_) pool_->spoil_scratch();
  return absl::OkStatus();
}

absl::Status Executor::poison_step(int step) {
  const ProgramStep& call = program_->steps[step];
  for (size_t a = static_cast<size_t>(program_->kernels[call.kernel].inputs); a < call.args.size(); ++a)
    WL_RETURN_IF_ERROR(poison(call.args[a]));
  return absl::OkStatus();
}

absl::Status Executor::run() {
  const bool timed = program_->meter != nullptr && program_->meter->begin_run();
  if (!gpu_ && timed) return run_timed();
  if (!gpu_) {
    for (int i = 0; i < static_cast<int>(program_->steps.size()); ++i) WL_RETURN_IF_ERROR(run_step(i));
    return absl::OkStatus();
  }
  WL_RETURN_IF_ERROR(gpu_->run());
  for (const ProgramOutput& output : program_->outputs) {
    // An output in the executor's own device memory is copied to the host. An output that is also an input is on the
    // host already, unless the input is bound to device memory: then it is copied.
    const bool is_input = program_->buffers[output.buffer].place == Place::kInput;
    if (is_input == gpu_->is_bound(output.buffer))
      WL_RETURN_IF_ERROR(gpu_->read(output.buffer, arguments_[output.buffer]));
  }
  return absl::OkStatus();
}

// Runs all steps on CPUs, and adds their times to the program's meter.
absl::Status Executor::run_timed() {
  using Clock = std::chrono::steady_clock;
  std::vector<int64_t> times(program_->kernels.size());
  Clock::time_point last = Clock::now();
  for (int i = 0; i < static_cast<int>(program_->steps.size()); ++i) {
    WL_RETURN_IF_ERROR(run_step(i));
    const Clock::time_point now = Clock::now();
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now - std::exchange(last, now));
    times[static_cast<size_t>(program_->steps[static_cast<size_t>(i)].kernel)] += ns.count();
  }
  program_->meter->add(times);
  return absl::OkStatus();
}

absl::Status Executor::run_step(int step) {
  if (!gpu_) {
    if (calls_.empty()) return absl::FailedPreconditionError("the kernels of this program are not loaded");
    Call& call = calls_[step];
    call.args.back() = pool_->workspace();
    if (call.launch.grid <= 0) return absl::OkStatus();
    const OutsideIndex outside = pool_->launch(call.launch, call.args.data());
    return outside.extent == 0 ? absl::OkStatus() : told_of(outside, step);
  }
  WL_RETURN_IF_ERROR(gpu_->run_step(step));
  const ProgramStep& call = program_->steps[step];
  for (size_t a = static_cast<size_t>(program_->kernels[call.kernel].inputs); a < call.args.size(); ++a)
    WL_RETURN_IF_ERROR(gpu_->read(call.args[a], data(call.args[a])));
  return absl::OkStatus();
}

absl::Status Executor::told_of(const OutsideIndex& outside, int step) const {
  const ProgramStep& call = program_->steps[step];
  const auto inputs = static_cast<size_t>(program_->kernels[call.kernel].inputs);
  std::string names[2];
  for (size_t a = 0; a < call.args.size(); ++a) {
    std::string& list = names[a < inputs ? 0 : 1];
    append(&list, list.empty() ? "" : ", ", program_->buffers[call.args[a]].name);
  }
  return absl::OutOfRangeError(cat("index ", outside.index, " is outside an axis of ", outside.extent,
                                   " elements, where indices are ", -outside.extent, " to ", outside.extent - 1,
                                   "; the kernel computes ", names[1], " from ", names[0]));
}

absl::StatusOr<std::vector<int64_t>> Executor::time(int repeats) {
  if (gpu_) return gpu_->time(repeats);
  using Clock = std::chrono::steady_clock;
  std::vector<int64_t> samples;
  for (int i = 0; i < repeats + 2; ++i) {
    const Clock::time_point start = Clock::now();
    WL_RETURN_IF_ERROR(run());
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start);
    if (i >= 2) samples.push_back(time.count());
  }
  return samples;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> Executor::profile(int repeats) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<int64_t>> samples(program_->steps.size());
  for (int i = 0; i < repeats + 2; ++i) {
    for (int step = 0; step < static_cast<int>(samples.size()); ++step) {
      int64_t ns = 0;
      if (gpu_) {
        WL_ASSIGN_OR_RETURN(ns, gpu_->time_step(step));
      } else {
        const Clock::time_point start = Clock::now();
        WL_RETURN_IF_ERROR(run_step(step));
        ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
      }
      if (i >= 2) samples[step].push_back(ns);
    }
  }
  return samples;
}

}  // namespace wl
