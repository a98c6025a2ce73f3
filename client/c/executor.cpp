#include <algorithm>
#include <cstring>
#include <optional>

#include "client/c/handles.h"
#include "client/c/structs.h"

namespace wl {
namespace {

using Side = warploom_executor::Side;

Side side_of(const Program& program, int buffer) {
  return {buffer, static_cast<size_t>(program.buffers[static_cast<size_t>(buffer)].bytes())};
}

absl::Status no_such(const char* what, size_t index, size_t count) {
  return invalid("there is no ", what, " ", index, "; the model has ", count);
}

// Binds an input or output to the caller's memory: kernels use it in place if they can; otherwise every run copies.
void bind(warploom_executor& executor, Side& side, void* data) {
  side.copied = nullptr;
  side.on_device = false;
  if (executor.replica.bind(side.buffer, data)) return;
  executor.replica.bind(side.buffer, nullptr);
  side.copied = data;
}

// Whether the buffer of an input or output (`side`) is also the buffer of another input or output of the executor.
bool is_shared(const warploom_executor& executor, const Side& side) {
  const auto shares = [&](const Side& other) { return &other != &side && other.buffer == side.buffer; };
  return std::any_of(executor.inputs.begin(), executor.inputs.end(), shares) ||
         std::any_of(executor.outputs.begin(), executor.outputs.end(), shares);
}

absl::Status bind_device(warploom_executor& executor, Side& side, void* data, bool shared) {
  // A buffer that another input or output uses too (`shared`) is not bound to `data`. After each run the result is
  // copied from the buffer to `data` instead.
  WL_RETURN_IF_ERROR(shared ? executor.replica.needs_gpu() : executor.replica.bind_device(side.buffer, data));
  side.copied = shared ? data : nullptr;
  side.on_device = data != nullptr;
  return absl::OkStatus();
}

// Copies those outputs to the caller's memory that kernels did not write there. Without a stream, waits until copies
// on a GPU are complete.
absl::Status copy_results(const warploom_executor& executor, std::optional<void*> stream) {
  for (const Side& output : executor.outputs) {
    if (output.copied == nullptr) continue;
    if (output.on_device)
      WL_RETURN_IF_ERROR(executor.replica.copy_on_device(output.buffer, output.copied, stream));
    else
      std::memcpy(output.copied, executor.replica.data(output.buffer), output.bytes);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace wl

extern "C" {

warploom_status* warploom_executor_create(warploom_model* model, size_t size, const warploom_executor_options* given,
                                          warploom_executor** executor) {
  return wl::guarded([&]() -> absl::Status {
    if (model == nullptr || executor == nullptr)
      return wl::invalid("warploom_executor_create: model and executor may not be NULL");
    const warploom_executor_options options = wl::taken(given);
    if (options.threads < 0) return wl::invalid("threads are ", options.threads, "; expected 0 or more");
    WL_ASSIGN_OR_RETURN(wl::Replica replica,
                        model->model.replica(size, {.threads = options.threads,
                                                    .pin = options.pin != 0,
                                                    .device = options.device == nullptr ? "" : options.device}));
    auto made = std::make_unique<warploom_executor>(warploom_executor{std::move(replica), {}, {}});
    const wl::Program& program = made->replica.program();
    for (const wl::TensorInfo& input : model->sizes[size].inputs)
      made->inputs.push_back(wl::side_of(program, wl::input_buffer(program, input.name)));
    for (const wl::ProgramOutput& output : program.outputs)
      made->outputs.push_back(wl::side_of(program, output.buffer));
    *executor = made.release();
    return absl::OkStatus();
  });
}

void warploom_executor_free(warploom_executor* executor) {
  delete executor;
}

warploom_status* warploom_executor_memory(const warploom_executor* executor, warploom_memory* memory) {
  return wl::guarded([&]() -> absl::Status {
    const wl::MemoryUse use = wl::memory_of(executor->replica.program());
    wl::give(warploom_memory{0, static_cast<size_t>(use.arena), static_cast<size_t>(use.inputs),
                             static_cast<size_t>(use.outputs)},
             memory);
    return absl::OkStatus();
  });
}

int32_t warploom_executor_threads(const warploom_executor* executor) {
  return executor->replica.threads();
}

void* warploom_executor_input(warploom_executor* executor, size_t index) {
  return index < executor->inputs.size() ? executor->replica.data(executor->inputs[index].buffer) : nullptr;
}

const void* warploom_executor_output(const warploom_executor* executor, size_t index) {
  return index < executor->outputs.size() ? executor->replica.data(executor->outputs[index].buffer) : nullptr;
}

warploom_status* warploom_executor_bind_input(warploom_executor* executor, size_t index, const void* data) {
  return wl::guarded([&]() -> absl::Status {
    if (index >= executor->inputs.size()) return wl::no_such("input", index, executor->inputs.size());
    // const_cast is safe, since kernels never write to inputs.
    wl::bind(*executor, executor->inputs[index], const_cast<void*>(data));
    return absl::OkStatus();
  });
}

warploom_status* warploom_executor_bind_output(warploom_executor* executor, size_t index, void* data) {
  return wl::guarded([&]() -> absl::Status {
    if (index >= executor->outputs.size()) return wl::no_such("output", index, executor->outputs.size());
    wl::Side& side = executor->outputs[index];
    if (wl::is_shared(*executor, side)) {
      side.copied = data;
      side.on_device = false;
    } else {
      wl::bind(*executor, side, data);
    }
    return absl::OkStatus();
  });
}

warploom_status* warploom_executor_bind_device_input(warploom_executor* executor, size_t index, const void* data) {
  return wl::guarded([&]() -> absl::Status {
    if (index >= executor->inputs.size()) return wl::no_such("input", index, executor->inputs.size());
    return wl::bind_device(*executor, executor->inputs[index], const_cast<void*>(data), /*shared=*/false);
  });
}

warploom_status* warploom_executor_bind_device_output(warploom_executor* executor, size_t index, void* data) {
  return wl::guarded([&]() -> absl::Status {
    if (index >= executor->outputs.size()) return wl::no_such("output", index, executor->outputs.size());
    wl::Side& side = executor->outputs[index];
    return wl::bind_device(*executor, side, data, wl::is_shared(*executor, side));
  });
}

warploom_status* warploom_executor_launch(warploom_executor* executor, void* stream) {
  return wl::guarded([&]() -> absl::Status {
    WL_RETURN_IF_ERROR(executor->replica.needs_gpu());
    const wl::Program& program = executor->replica.program();
    for (const std::vector<wl::Side>* sides : {&executor->inputs, &executor->outputs})
      for (const wl::Side& side : *sides)
        if (!side.on_device)
          return absl::FailedPreconditionError(wl::cat(program.buffers[static_cast<size_t>(side.buffer)].name,
                                                       " is in the host's memory, which a launch in a stream neither "
                                                       "reads nor writes; bind memory of the device"));
    WL_RETURN_IF_ERROR(executor->replica.launch(stream));
    return wl::copy_results(*executor, stream);
  });
}

warploom_status* warploom_executor_run(warploom_executor* executor) {
  return wl::guarded([&]() -> absl::Status {
    for (const wl::Side& input : executor->inputs)
      if (input.copied != nullptr) std::memcpy(executor->replica.data(input.buffer), input.copied, input.bytes);
    WL_RETURN_IF_ERROR(executor->replica.run());
    return wl::copy_results(*executor, std::nullopt);
  });
}

}  // extern "C"
