#include "worker/drivers/gpu/session.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"
#include "runtime/buffer.h"
#include "runtime/pool.h"
#include "worker/drivers/cpu/session.h"
#include "worker/drivers/process.h"

namespace wl {
namespace {

constexpr size_t kMaxGpuClones = 16;
constexpr int64_t kChunk = int64_t{4} << 20;  // number of bytes that are copied to or from the device at once
constexpr int64_t kMostFillers = 16;          // largest number of host threads that generate inputs

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> open_session(const std::string& device, Session::Alive alive) {
  if (device == "cpu") return std::make_unique<CpuSession>(std::move(alive));
  if (is_gpu_name(device)) return GpuSession::open(device, std::move(alive));
  return absl::FailedPreconditionError(absl::StrCat("no device \"", device, "\"; expected cpu, cuda:N or hip:N"));
}

absl::StatusOr<std::unique_ptr<Session>> GpuSession::open(const std::string& device, Alive alive) {
  std::unique_ptr<GpuSession> session(new GpuSession);
  WL_ASSIGN_OR_RETURN(session->device_, GpuDevice::open(device));
  session->alive_ = std::move(alive);
  WL_ASSIGN_OR_RETURN(session->timer_, GpuTimer::create(*session->device_));
  return session;
}

absl::Status GpuSession::setup(const SetupCommand& command) {
  const bool again = !clones_.empty() && problem_.buffers == command.buffers && problem_.cold == command.cold;
  problem_ = command;
  if (!again) WL_RETURN_IF_ERROR(allocate());
  return fill();
}

absl::Status GpuSession::allocate() {
  slots_.clear();
  clones_.clear();
  int64_t bytes = 0;
  for (const BufferSpec& spec : problem_.buffers) {
    for (int64_t extent : spec.shape)
      if (extent < 0) return invalid("argument ", spec.name, " has a negative extent");
    bytes += spec.bytes() + 2 * static_cast<int64_t>(kGpuZone);
  }
  // The copies of the arguments (clones) together cover three times the L2, so that no launch finds its data there.
  // There are fewer if they would exceed kMaxGpuClones or half of the free memory.
  size_t clones = 1;
  const int64_t enough = 3 * device_->l2_bytes();
  if (problem_.cold && bytes < enough)
    clones = std::min(kMaxGpuClones, static_cast<size_t>(enough / std::max<int64_t>(bytes, 1)) + 1);
  size_t left = 0, total = 0;
  WL_RETURN_IF_ERROR(device_->check(device_->api().memory_left(&left, &total), "asking for the memory that is left"));
  if (static_cast<size_t>(bytes) > left / 10 * 9)
    return absl::ResourceExhaustedError(absl::StrCat("the arguments take ", bytes >> 20, " MiB; the device has ",
                                                     left >> 20, " of ", total >> 20, " MiB left"));
  clones = std::max<size_t>(1, std::min(clones, left / 2 / std::max<size_t>(static_cast<size_t>(bytes), 1)));
  for (size_t c = 0; c < clones; ++c) {
    Arguments arguments;
    for (const BufferSpec& spec : problem_.buffers) {
      WL_ASSIGN_OR_RETURN(GpuBuffer buffer, GpuBuffer::create(*device_, spec.bytes()));
      arguments.push_back(std::move(buffer));
    }
    clones_.push_back(std::move(arguments));
    alive_(-1);
  }
  return absl::OkStatus();
}

// Each thread of the host generates a chunk of an input, and the calling thread copies the chunks to the device.
absl::Status GpuSession::fill() {
  int64_t most = 1;  // number of chunks of the largest input
  for (const BufferSpec& spec : problem_.buffers)
    if (!spec.output) most = std::max(most, (spec.bytes() + kChunk - 1) / kChunk);
  const auto cpus = static_cast<int64_t>(allowed_cpus().size());
  Pool fillers(static_cast<int>(std::min({kMostFillers, cpus, most})), false);
  std::vector<char> chunks(static_cast<size_t>(fillers.threads() * kChunk));
  for (size_t i = 0; i < problem_.buffers.size(); ++i) {
    const BufferSpec& spec = problem_.buffers[i];
    if (spec.output) continue;
    const int64_t each = kChunk / size_of(spec.dtype), step = fillers.threads() * each;
    for (int64_t at = 0; at < spec.elements(); at += step) {
      const int64_t n = std::min(step, spec.elements() - at), bytes = n * size_of(spec.dtype);
      fillers.each(static_cast<int>((n + each - 1) / each), [&](int thread) {
        const int64_t begin = thread * each, end = std::min(begin + each, n);
        fill_range(spec.fill, spec.dtype, problem_.seed, spec.stream, static_cast<uint64_t>(at + begin),
                   static_cast<uint64_t>(at + end), chunks.data() + thread * kChunk);
      });
      for (Arguments& arguments : clones_)
        WL_RETURN_IF_ERROR(device_->check(device_->api().to_device(arguments[i].data() + at * size_of(spec.dtype),
                                                                   chunks.data(), static_cast<size_t>(bytes)),
                                          absl::StrCat("filling ", spec.name)));
      alive_(-1);
    }
  }
  return absl::OkStatus();
}

absl::Status GpuSession::load(const LoadCommand& command) {
  if (clones_.empty()) return absl::FailedPreconditionError("load before setup");
  Candidate candidate;
  WL_ASSIGN_OR_RETURN(candidate.kernel, GpuKernel::load(*device_, command.object, command.entry, command.scratch_bytes,
                                                        command.library, command.work_bytes));
  candidate.grid = command.grid;
  candidate.threads = command.threads;
  candidate.passes = command.passes;
  if (command.work_bytes > work_.bytes()) {
    // The workspace is replaced by a larger one. Captured graphs of other candidates contain its old address, so they
    // are dropped.
    for (auto& [number, other] : slots_) {
      other.graph = {};
      other.graph_calls = std::min<int64_t>(other.graph_calls, 0);
    }
    WL_ASSIGN_OR_RETURN(work_, GpuBuffer::workspace(*device_, command.work_bytes));
  }
  slots_.insert_or_assign(command.slot, std::move(candidate));
  return absl::OkStatus();
}

absl::StatusOr<GpuSession::Candidate*> GpuSession::slot(int64_t number) {
  const auto at = slots_.find(number);
  if (at == slots_.end()) return invalid("no candidate is loaded as slot ", number);
  return &at->second;
}

absl::Status GpuSession::launch(const Candidate& candidate, size_t clone) {
  std::vector<void*> values, arguments;
  values.reserve(clones_[clone].size() + 1);
  for (const GpuBuffer& buffer : clones_[clone]) values.push_back(buffer.data());
  values.push_back(work_.data());
  for (void*& value : values) arguments.push_back(&value);
  int pass = 0;
  arguments.push_back(&pass);
  for (; pass < candidate.passes; ++pass)
    WL_RETURN_IF_ERROR(candidate.kernel.launch(candidate.grid, candidate.threads, arguments));
  return absl::OkStatus();
}

absl::Status GpuSession::run_once(const Candidate& candidate, const std::string& doing) {
  WL_RETURN_IF_ERROR(launch(candidate, 0));
  return device_->wait([&] { alive_(-1); }, doing);
}

absl::Status GpuSession::read(const GpuBuffer& buffer, int64_t offset, int64_t bytes, void* to) {
  return device_->check(device_->api().to_host(to, buffer.data() + offset, static_cast<size_t>(bytes)),
                        "reading an argument");
}

absl::Status GpuSession::poison_outputs() {
  std::vector<char> chunk(static_cast<size_t>(std::max<int64_t>(0, work_.bytes() - kCounterBytes)), '\xff');
  if (!chunk.empty())
    WL_RETURN_IF_ERROR(device_->check(
        device_->api().to_device(work_.data() + kCounterBytes, chunk.data(), chunk.size()), "poisoning the workspace"));
  for (size_t i = 0; i < problem_.buffers.size(); ++i) {
    const BufferSpec& spec = problem_.buffers[i];
    if (!spec.output) continue;
    const int64_t bytes = spec.bytes(), step = std::min(bytes, kChunk);
    chunk.resize(static_cast<size_t>(step));
    poison(spec.dtype, chunk.data(), step / size_of(spec.dtype), false);
    for (int64_t at = 0; at < bytes; at += step)
      WL_RETURN_IF_ERROR(device_->check(device_->api().to_device(clones_[0][i].data() + at, chunk.data(),
                                                                 static_cast<size_t>(std::min(step, bytes - at))),
                                        "poisoning an output"));
  }
  return absl::OkStatus();
}

// Checks the red zones of all copies of the arguments, and the inputs of the first copy. On a CPU, a write to an input
// faults at once; on a GPU it does not, so some pages of the inputs are compared with the generator's values.
absl::StatusOr<std::string> GpuSession::damage() {
  constexpr int64_t kPages = 32, kPage = 4096;
  for (const Arguments& arguments : clones_) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const absl::Status status = arguments[i].check_red_zones(*device_);
      if (absl::IsDataLoss(status))
        return absl::StrCat("argument ", i, " (", problem_.buffers[i].name, "): ", std::string(status.message()));
      WL_RETURN_IF_ERROR(status);
    }
  }
  const absl::Status work = work_.bytes() == 0 ? absl::OkStatus() : work_.check_red_zones(*device_);
  if (absl::IsDataLoss(work)) return absl::StrCat("the workspace: ", std::string(work.message()));
  WL_RETURN_IF_ERROR(work);
  std::vector<char> got(kPage), want(kPage);
  for (size_t i = 0; i < problem_.buffers.size(); ++i) {
    const BufferSpec& spec = problem_.buffers[i];
    if (spec.output || spec.elements() == 0) continue;
    const int64_t size = size_of(spec.dtype), step = std::max<int64_t>(kPage, spec.bytes() / kPages / kPage * kPage);
    for (int64_t at = 0; at < spec.bytes(); at += step) {
      const int64_t bytes = std::min(kPage, spec.bytes() - at);
      WL_RETURN_IF_ERROR(read(clones_[0][i], at, bytes, got.data()));
      fill_range(spec.fill, spec.dtype, problem_.seed, spec.stream, static_cast<uint64_t>(at / size),
                 static_cast<uint64_t>((at + bytes) / size), want.data());
      if (std::memcmp(got.data(), want.data(), static_cast<size_t>(bytes)) != 0)
        return absl::StrCat("argument ", i, " (", spec.name, ", input) was written near byte ", at);
    }
  }
  return "";
}

absl::StatusOr<std::vector<CheckAnswer::Unwritten>> GpuSession::unwritten(Candidate& candidate) {
  std::vector<CheckAnswer::Unwritten> found;
  std::vector<char> chunk(kChunk);
  for (size_t i = 0; i < problem_.buffers.size(); ++i) {
    const BufferSpec& spec = problem_.buffers[i];
    // Before a run, outputs are filled with a known pattern (the poison). An integer result may equal that pattern by
    // chance, so unwritten integers are found by their sampled values instead.
    if (!spec.output || !is_float(spec.dtype)) continue;
    const int64_t step = kChunk / size_of(spec.dtype);
    CheckAnswer::Unwritten sum{static_cast<int64_t>(i), 0, -1};
    for (int64_t at = 0; at < spec.elements(); at += step) {
      const int64_t n = std::min(step, spec.elements() - at);
      WL_RETURN_IF_ERROR(read(clones_[0][i], at * size_of(spec.dtype), n * size_of(spec.dtype), chunk.data()));
      int64_t first = 0;
      const int64_t count = count_poison(spec.dtype, chunk.data(), n, &first);
      if (count > 0 && sum.first < 0) sum.first = at + first;
      sum.elements += count;
    }
    if (sum.elements > 0) found.push_back(sum);
  }
  (void)candidate;
  return found;
}

absl::StatusOr<CheckAnswer> GpuSession::check(const CheckCommand& command) {
  WL_ASSIGN_OR_RETURN(Candidate * candidate, slot(command.slot));
  alive_(command.slot);
  WL_RETURN_IF_ERROR(poison_outputs());
  WL_RETURN_IF_ERROR(run_once(*candidate, absl::StrCat("running ", candidate->kernel.entry())));
  CheckAnswer answer;
  WL_ASSIGN_OR_RETURN(answer.damage, damage());
  alive_(command.slot);
  if (answer.damage.empty()) {
    WL_ASSIGN_OR_RETURN(answer.unwritten, unwritten(*candidate));
  }
  return answer;
}

absl::StatusOr<PeekAnswer> GpuSession::peek(const PeekCommand& command) {
  PeekAnswer answer;
  char element[16];
  for (const PeekCommand::Place& place : command.places) {
    const auto b = static_cast<size_t>(place.buffer);
    if (place.buffer < 0 || b >= problem_.buffers.size() || clones_.empty() || place.index < 0 ||
        place.index >= problem_.buffers[b].elements())
      return invalid("no element ", place.index, " in argument ", place.buffer);
    const int64_t size = size_of(problem_.buffers[b].dtype);
    WL_RETURN_IF_ERROR(read(clones_[0][b], place.index * size, size, element));
    answer.values.push_back(load_element(problem_.buffers[b].dtype, element, 0));
  }
  return answer;
}

}  // namespace wl
