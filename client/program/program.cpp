#include "client/program/program.h"

#include <algorithm>
#include <map>

#include "runtime/arena.h"

namespace wl {

bool is_weight(const Program& program, const std::string& name) {
  return std::find(program.weights.begin(), program.weights.end(), name) != program.weights.end();
}

int input_buffer(const Program& program, const std::string& name) {
  const auto is_it = [&](const ProgramBuffer& buffer) { return buffer.place == Place::kInput && buffer.name == name; };
  const auto at = std::find_if(program.buffers.begin(), program.buffers.end(), is_it);
  return at == program.buffers.end() ? -1 : static_cast<int>(at - program.buffers.begin());
}

absl::Status lay_out(Program& program) {
  auto wrong = [](size_t step, const auto&... what) { return invalid("call ", step, " ", what...); };
  std::vector<bool> stored(program.buffers.size());
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = program.buffers[i].place == Place::kInput;

  std::vector<Lifetime> lifetimes;
  std::vector<int> owners;  // for each element of `lifetimes`, the number of its buffer
  std::map<int, size_t> slot;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const ProgramStep& step = program.steps[i];
    if (step.kernel < 0 || static_cast<size_t>(step.kernel) >= program.kernels.size()) return wrong(i, "has no kernel");
    const ProgramKernel& kernel = program.kernels[step.kernel];
    if (step.args.size() != static_cast<size_t>(kernel.inputs + kernel.outputs)) {
      return wrong(i, "has ", step.args.size(), " arguments, its kernel takes ", kernel.inputs + kernel.outputs);
    }
    for (size_t a = 0; a < step.args.size(); ++a) {
      int buffer = step.args[a];
      if (buffer < 0 || static_cast<size_t>(buffer) >= program.buffers.size()) return wrong(i, "has no such argument");
      const ProgramBuffer& value = program.buffers[buffer];
      bool reads = a < static_cast<size_t>(kernel.inputs);
      if (reads && !stored[buffer]) return wrong(i, "reads ", value.name, " before anything has stored it");
      if (!reads && value.place == Place::kInput) return wrong(i, "stores to the input ", value.name);
      if (!reads) stored[buffer] = true;
      if (value.place != Place::kArena) continue;
      int now = static_cast<int>(i);
      auto [at, fresh] = slot.try_emplace(buffer, lifetimes.size());
      if (fresh) {
        lifetimes.push_back({value.bytes(), now, now});
        owners.push_back(buffer);
      }
      lifetimes[at->second].last = now;
    }
  }
  for (const ProgramOutput& output : program.outputs) {
    if (output.buffer < 0 || static_cast<size_t>(output.buffer) >= program.buffers.size() ||
        (!stored[output.buffer] && program.buffers[output.buffer].bytes() > 0)) {
      return invalid("no call stores the output ", output.name);
    }
  }
  Arena arena = plan_arena(lifetimes);
  for (size_t i = 0; i < owners.size(); ++i) program.buffers[owners[i]].offset = arena.offsets[i];
  program.arena_bytes = arena.bytes;
  return absl::OkStatus();
}

MemoryUse memory_of(const Program& program) {
  MemoryUse use;
  use.arena = program.arena_bytes;
  const size_t count = program.buffers.size();
  std::vector<size_t> first(count, program.steps.size()), last(count, 0);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    for (int buffer : program.steps[i].args) {
      first[buffer] = std::min(first[buffer], i);
      last[buffer] = i;
    }
  }
  std::vector<int64_t> live(program.steps.size());
  for (size_t b = 0; b < count; ++b) {
    const ProgramBuffer& buffer = program.buffers[b];
    if (buffer.place == Place::kInput) use.inputs += buffer.bytes();
    if (buffer.place == Place::kOutput) use.outputs += buffer.bytes();
    if (buffer.place != Place::kArena) continue;
    use.intermediates += buffer.bytes();
    for (size_t i = first[b]; i < program.steps.size() && i <= last[b]; ++i) live[i] += buffer.bytes();
  }
  for (int64_t bytes : live) use.live = std::max(use.live, bytes);
  return use;
}

}  // namespace wl
