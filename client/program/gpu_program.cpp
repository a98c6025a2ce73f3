#include "client/program/gpu_program.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "client/program/files.h"

namespace wl {
namespace {

// Returns the name of the device to use, such as "cuda:0". `wanted`: only this device; empty: the first device that
// runs the kernels. Unavailable: there is no such device; the message lists the devices.
absl::StatusOr<std::string> choose(const Program& program, const std::string& wanted) {
  const std::string& target = program.kernels[0].source.target;
  const std::string family = target.substr(0, target.find(':'));
  const auto targets = gpu_targets(family);
  if (!targets.ok()) {
    return absl::UnavailableError(cat("kernels for ", target, " need its driver and device; ",
                                      targets.status().message(), "; tune for --target cpu or sim:", family,
                                      " to run here"));
  }
  std::vector<std::string> seen;
  for (size_t i = 0; i < targets->size(); ++i) {
    const std::string name = cat(family, ":", i);
    const bool fits = std::all_of(program.kernels.begin(), program.kernels.end(), [&](const ProgramKernel& kernel) {
      return gpu_runs(kernel.source.target, (*targets)[i]);
    });
    if (fits && (wanted.empty() || wanted == name)) return name;
    seen.push_back(cat(name, " is ", (*targets)[i]));
  }
  return absl::UnavailableError(cat("kernels for ", target, " run on no ",
                                    wanted.empty() ? std::string("device of this machine") : wanted, "; ",
                                    absl::StrJoin(seen, ", "), "; tune for that target"));
}

}  // namespace

bool is_for_gpu(const Program& program) {
  return std::any_of(program.kernels.begin(), program.kernels.end(),
                     [](const ProgramKernel& kernel) { return is_gpu_name(kernel.source.target); });
}

absl::StatusOr<std::unique_ptr<GpuProgram>> GpuProgram::load(const Program& program, const std::string& device,
                                                             GpuShared* shared) {
  std::unique_ptr<GpuProgram> gpu(new GpuProgram);
  gpu->program_ = &program;
  if (shared != nullptr) gpu->shared_ = *shared;
  if (gpu->shared_.device == nullptr) {
    WL_ASSIGN_OR_RETURN(gpu->shared_.name, choose(program, device));
    WL_ASSIGN_OR_RETURN(gpu->shared_.device, GpuDevice::open(gpu->shared_.name));
  }
  WL_RETURN_IF_ERROR(gpu->shared_.device->use());
  WL_RETURN_IF_ERROR(gpu->allocate());
  for (const ProgramKernel& kernel : program.kernels) {
    WL_ASSIGN_OR_RETURN(const std::string image, read_file(kernel.object_path));
    WL_ASSIGN_OR_RETURN(GpuKernel loaded,
                        GpuKernel::load(*gpu->shared_.device, image, kernel.source.entry, kernel.source.scratch_bytes,
                                        kernel.source.library, kernel.source.work_bytes));
    gpu->kernels_.push_back(std::move(loaded));
  }
  gpu->own_ = gpu->addresses_;
  WL_ASSIGN_OR_RETURN(gpu->timer_, GpuTimer::create(*gpu->shared_.device));
  if (shared != nullptr) *shared = gpu->shared_;
  return gpu;
}

absl::Status GpuProgram::allocate() {
  const GpuDevice& device = *shared_.device;
  const auto make = [&](int64_t bytes) -> absl::StatusOr<std::shared_ptr<GpuBuffer>> {
    WL_ASSIGN_OR_RETURN(GpuBuffer made, GpuBuffer::create(device, bytes));
    return std::make_shared<GpuBuffer>(std::move(made));
  };
  WL_ASSIGN_OR_RETURN(std::shared_ptr<GpuBuffer> arena, make(program_->arena_bytes));
  buffers_.push_back(arena);
  int64_t work = 0;
  for (const ProgramKernel& kernel : program_->kernels) work = std::max(work, kernel.source.work_bytes);
  WL_ASSIGN_OR_RETURN(work_, GpuBuffer::workspace(device, work));
  for (const ProgramBuffer& buffer : program_->buffers) {
    if (buffer.place == Place::kArena) {
      addresses_.push_back(arena->data() + buffer.offset);
      continue;
    }
    const bool weight = buffer.place == Place::kInput && is_weight(*program_, buffer.name);
    std::shared_ptr<GpuBuffer> memory = weight ? shared_.weights[buffer.name] : nullptr;
    if (memory == nullptr) {
      WL_ASSIGN_OR_RETURN(memory, make(buffer.bytes()));
    }
    if (weight) shared_.weights[buffer.name] = memory;
    addresses_.push_back(memory->data());
    buffers_.push_back(std::move(memory));
  }
  return absl::OkStatus();
}

absl::Status GpuProgram::write(int buffer, const void* from) const {
  const ProgramBuffer& value = program_->buffers[buffer];
  if (value.bytes() == 0) return absl::OkStatus();
  const GpuDevice& device = *shared_.device;
  WL_RETURN_IF_ERROR(device.use());
  return device.check(device.api().to_device(addresses_[buffer], from, static_cast<size_t>(value.bytes())),
                      cat("copying ", value.name, " to the device"));
}

absl::Status GpuProgram::read(int buffer, void* to) const {
  const ProgramBuffer& value = program_->buffers[buffer];
  if (value.bytes() == 0) return absl::OkStatus();
  const GpuDevice& device = *shared_.device;
  WL_RETURN_IF_ERROR(device.use());
  return device.check(device.api().to_host(to, addresses_[buffer], static_cast<size_t>(value.bytes())),
                      cat("copying ", value.name, " from the device"));
}

absl::Status GpuProgram::launch(int step, void* stream) const {
  const ProgramStep& call = program_->steps[step];
  const Source& source = program_->kernels[call.kernel].source;
  std::vector<void*> values, arguments;
  values.reserve(call.args.size() + 1);
  for (int buffer : call.args) values.push_back(addresses_[buffer]);
  values.push_back(work_.data());
  for (void*& value : values) arguments.push_back(&value);
  int pass = 0;
  arguments.push_back(&pass);
  for (; pass < source.passes; ++pass)
    WL_RETURN_IF_ERROR(kernels_[call.kernel].launch(source.grid, source.threads, arguments, stream));
  return absl::OkStatus();
}

void GpuProgram::bind(int buffer, void* memory) {
  void* const now = memory != nullptr ? memory : own_[buffer];
  if (now == addresses_[buffer]) return;
  addresses_[buffer] = now;
  graph_ = GpuGraph();  // the captured CUDA or HIP graph, which has the buffer's previous address, is dropped
  runs_ = 0;
}

absl::Status GpuProgram::launch_all_on(void* stream) const {
  for (int step = 0; step < static_cast<int>(program_->steps.size()); ++step) WL_RETURN_IF_ERROR(launch(step, stream));
  return absl::OkStatus();
}

// Launches kernel by kernel instead of launching the captured graph, because the caller's own stream may be capturing.
absl::Status GpuProgram::launch_on(void* stream) const {
  WL_RETURN_IF_ERROR(shared_.device->use());
  return launch_all_on(stream);
}

absl::Status GpuProgram::copy(int buffer, void* to, std::optional<void*> into) const {
  const GpuDevice& device = *shared_.device;
  const auto bytes = static_cast<size_t>(program_->buffers[buffer].bytes());
  if (bytes == 0) return absl::OkStatus();
  WL_RETURN_IF_ERROR(device.use());
  const std::string doing = cat("copying ", program_->buffers[buffer].name);
  WL_RETURN_IF_ERROR(device.check(device.api().copy(to, addresses_[buffer], bytes, into.value_or(stream())), doing));
  return into ? absl::OkStatus() : device.wait(nullptr, doing);
}

// The first run launches kernel by kernel. The second run captures the launches as a CUDA or HIP graph, since only a
// program that runs several times benefits from capturing.
absl::Status GpuProgram::launch_all() {
  const auto plainly = [&] { return launch_all_on(stream()); };
  if (++runs_ == 2) {
    WL_ASSIGN_OR_RETURN(graph_, GpuGraph::capture(*shared_.device, plainly));
  }
  return graph_.empty() ? plainly() : graph_.launch("running the program");
}

absl::Status GpuProgram::run() {
  WL_RETURN_IF_ERROR(shared_.device->use());
  WL_RETURN_IF_ERROR(launch_all());
  return shared_.device->wait(nullptr, "running the program");
}

absl::Status GpuProgram::run_step(int step) const {
  WL_RETURN_IF_ERROR(shared_.device->use());
  WL_RETURN_IF_ERROR(launch(step, stream()));
  return shared_.device->wait(nullptr, cat("running ", program_->kernels[program_->steps[step].kernel].source.entry));
}

absl::StatusOr<std::vector<int64_t>> GpuProgram::time(int repeats) {
  for (int i = 0; i < 2; ++i) WL_RETURN_IF_ERROR(run());
  std::vector<int64_t> samples;
  for (int i = 0; i < repeats; ++i) {
    WL_ASSIGN_OR_RETURN(const int64_t ns, timer_.time([&] { return launch_all(); }, nullptr, "timing the program"));
    samples.push_back(ns);
  }
  return samples;
}

absl::StatusOr<int64_t> GpuProgram::time_step(int step) {
  WL_RETURN_IF_ERROR(shared_.device->use());
  return timer_.time([&] { return launch(step, stream()); }, nullptr,
                     cat("timing ", program_->kernels[program_->steps[step].kernel].source.entry));
}

}  // namespace wl
