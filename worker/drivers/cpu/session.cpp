#include "worker/drivers/cpu/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "compiler/base/status.h"
#include "worker/drivers/process.h"
#include "worker/drivers/sandbox.h"
#include "worker/drivers/timing.h"

namespace wl {
namespace {

// The largest number of arguments of a step of a chain; equal to kMostItems in proto/limits.h.
constexpr size_t kMaxArguments = 4096;
constexpr size_t kMaxClones = 256;
// bytes of memory that the copies of the arguments leave free for scratch, stacks and what a kernel allocates
constexpr int64_t kMemoryReserve = int64_t{1} << 30;

// If all outputs together have more than kLargeOutputs bytes, only some of their pages are poisoned. Before a check, it
// is every kOfCheckedPages-th page; the number is odd, so that a kernel which leaves out elements at distances of a
// power of two is found. Before timing, every kOfTimedPages-th page is poisoned: more pages, since the worker then
// reads few values.
constexpr int64_t kLargeOutputs = int64_t{16} << 20;
constexpr int64_t kOfCheckedPages = 17, kOfTimedPages = 8;

// Arguments start at different offsets modulo 4096; Buffer::create (runtime/buffer.h) says why.
int64_t stagger_of(size_t argument) {
  return static_cast<int64_t>(argument * 704 % 4096);
}

int64_t physical_memory_bytes() {
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

bool same_arguments(const SetupCommand& a, const SetupCommand& b) {
  return a.buffers == b.buffers && a.cold == b.cold && a.threads == b.threads && a.cache_bytes == b.cache_bytes &&
         a.arena_bytes == b.arena_bytes;
}

}  // namespace

absl::Status CpuSession::setup(const SetupCommand& command) {
  const bool again = pool_ && same_arguments(problem_, command);
  // Inputs that an earlier setup filled from the same seed are still intact, since they are read-only while candidates
  // run.
  const bool filled = again && filled_ && problem_.seed == command.seed;
  problem_ = command;
  if (filled) return absl::OkStatus();
  filled_ = false;
  if (!again) WL_RETURN_IF_ERROR(allocate(command));
  WL_RETURN_IF_ERROR(fill());
  filled_ = true;
  return absl::OkStatus();
}

absl::Status CpuSession::allocate(const SetupCommand& command) {
  for (const BufferSpec& spec : command.buffers)
    for (int64_t extent : spec.shape)
      if (extent < 0) return invalid("argument ", spec.name, " has a negative extent");
  if (command.arena_bytes < 0) return invalid("an arena of ", command.arena_bytes, " bytes");
  if (sealed_) return absl::FailedPreconditionError("another problem after a candidate");
  clones_.clear();
  slots_.clear();
  if (!pool_ || pool_->threads() != command.threads) {
    pool_.reset();
    pool_ = std::make_unique<Pool>(std::max(1, command.threads));
  }
  int64_t bytes = command.arena_bytes;
  for (const BufferSpec& spec : command.buffers) bytes += spec.bytes() + 2 * 4096;
  size_t clones = 1;
  const int64_t enough = 3 * command.cache_bytes;
  if (command.cold && bytes < enough)
    clones = std::min(kMaxClones, static_cast<size_t>(enough / std::max<int64_t>(bytes, 1)) + 1);
  const int64_t total = bytes * static_cast<int64_t>(clones);
  eviction_.clear();
  if (command.cold && total < enough) eviction_.resize(static_cast<size_t>(enough));
  const int64_t machine = physical_memory_bytes();
  if (total > machine / 10 * 9)
    return absl::ResourceExhaustedError(
        absl::StrCat("the arguments take ", total >> 20, " MiB; this machine has ", machine >> 20, " MiB"));
  limit_memory(total + static_cast<int64_t>(eviction_.size()) + kMemoryReserve);
  for (size_t c = 0; c < clones; ++c) {
    Arguments arguments;
    for (size_t i = 0; i < command.buffers.size(); ++i) {
      WL_ASSIGN_OR_RETURN(Buffer buffer, Buffer::create(command.buffers[i].bytes(), stagger_of(i)));
      arguments.push_back(std::move(buffer));
    }
    if (command.arena_bytes > 0) {
      WL_ASSIGN_OR_RETURN(Buffer arena, Buffer::create(command.arena_bytes));
      arguments.push_back(std::move(arena));
    }
    clones_.push_back(std::move(arguments));
  }
  next_clone_ = judged_ = 0;
  return absl::OkStatus();
}

absl::Status CpuSession::fill() {
  const auto threads = static_cast<uint64_t>(pool_->threads());
  for (Arguments& arguments : clones_) {
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      const BufferSpec& spec = problem_.buffers[i];
      Buffer& buffer = arguments[i];
      if (spec.output) continue;
      WL_RETURN_IF_ERROR(buffer.set_read_only(false));
      const auto elements = static_cast<uint64_t>(spec.elements());
      pool_->each(pool_->threads(), [&](int thread) {
        const uint64_t begin = elements / threads * static_cast<uint64_t>(thread);
        const uint64_t end = static_cast<uint64_t>(thread) + 1 == threads ? elements : begin + elements / threads;
        fill_range(spec.fill, spec.dtype, problem_.seed, spec.stream, begin, end,
                   buffer.data() + begin * static_cast<uint64_t>(size_of(spec.dtype)));
      });
      // The input becomes read-only, so that a kernel that writes to it gets a SIGSEGV.
      WL_RETURN_IF_ERROR(buffer.set_read_only(true));
      alive_(-1);
    }
  }
  return absl::OkStatus();
}

absl::Status CpuSession::load(const LoadCommand& command) {
  if (!pool_) return absl::FailedPreconditionError("load before setup");
  WL_RETURN_IF_ERROR(pool_->reserve_scratch(command.scratch_bytes));
  WL_RETURN_IF_ERROR(pool_->reserve_work(command.work_bytes));
  if (!std::exchange(sealed_, true)) seal(problem_.cpu_s * (pool_->threads() + 1), problem_.libraries);
  Candidate candidate;
  WL_ASSIGN_OR_RETURN(candidate.object, SharedObject::open(command.object));
  WL_ASSIGN_OR_RETURN(void* entry, candidate.object.symbol(command.entry));
  WL_RETURN_IF_ERROR(candidate.object.prepare(command.entry, command.library));
  candidate.launch = {reinterpret_cast<BlockFunction>(entry), command.grid, command.threads, command.scratch_bytes,
                      command.passes};
  slots_.insert_or_assign(command.slot, std::move(candidate));
  return absl::OkStatus();
}

absl::StatusOr<CpuSession::Candidate*> CpuSession::slot(int64_t number) {
  const auto at = slots_.find(number);
  if (at == slots_.end()) return invalid("no candidate is loaded as slot ", number);
  return &at->second;
}

// Makes a chain of kernels from the command's steps, after checking everything that run_steps() relies on.
absl::Status CpuSession::assemble(const ChainCommand& command) {
  if (!pool_) return absl::FailedPreconditionError("a chain before setup");
  Candidate chain;
  for (const ChainCommand::Step& step : command.steps) {
    WL_ASSIGN_OR_RETURN(const Candidate* kernel, slot(step.slot));
    if (!kernel->steps.empty()) return invalid("slot ", step.slot, " is a chain");
    if (step.arguments.size() > kMaxArguments) return invalid("a step has ", step.arguments.size(), " arguments");
    for (const ChainCommand::Argument& argument : step.arguments) {
      const bool in_arena = argument.buffer < 0;
      if (in_arena ? argument.offset < 0 || argument.offset >= problem_.arena_bytes
                   : static_cast<size_t>(argument.buffer) >= problem_.buffers.size() || argument.offset != 0)
        return invalid("no argument ", argument.buffer, " at byte ", argument.offset);
    }
    chain.steps.push_back({kernel->launch, step.arguments});
  }
  if (chain.steps.empty()) return invalid("a chain without steps");
  slots_.insert_or_assign(command.slot, std::move(chain));
  return absl::OkStatus();
}

void CpuSession::run_steps(const Candidate& chain, const Arguments& arguments) {
  for (const Step& step : chain.steps) {
    pointers_.clear();
    for (const ChainCommand::Argument& argument : step.arguments)
      pointers_.push_back(argument.buffer < 0 ? arguments.back().data() + argument.offset
                                              : arguments[static_cast<size_t>(argument.buffer)].data());
    pointers_.push_back(pool_->workspace());
    if (step.launch.grid > 0) pool_->launch(step.launch, pointers_.data());
  }
}

void CpuSession::run(const Candidate& candidate, const Arguments& arguments) {
  if (!candidate.steps.empty()) return run_steps(candidate, arguments);
  pointers_.clear();
  for (const auto& argument : arguments) pointers_.push_back(argument.data());
  pointers_.push_back(pool_->workspace());
  pool_->launch(candidate.launch, pointers_.data());
}

template <typename F>
void CpuSession::each_page(const BufferSpec& spec, int64_t of_pages, F&& f) {
  const int64_t step = 4096 / size_of(spec.dtype);
  const int64_t pages = (spec.elements() + step - 1) / step, threads = pool_->threads();
  // If every page is visited (of_pages = 1), each thread passes all its pages to one call of `f`; otherwise `f` is
  // called once for each page.
  const int64_t run = of_pages == 1 ? pages / threads + threads : 1;
  pool_->each(pool_->threads(), [&](int thread) {
    const int64_t end = thread + 1 == threads ? pages : pages / threads * (thread + 1);
    for (int64_t page = pages / threads * thread; page < end; page += run * of_pages)
      f(thread, page * step, std::min(std::min(page + run, end) * step, spec.elements()));
  });
}

void CpuSession::poison_outputs(Arguments& arguments, bool other, int64_t of_pages) {
  for (size_t i = 0; i < problem_.buffers.size(); ++i) {
    const BufferSpec& spec = problem_.buffers[i];
    if (!spec.output) continue;
    each_page(spec, of_pages, [&](int, int64_t begin, int64_t end) {
      poison(spec.dtype, arguments[i].data() + begin * size_of(spec.dtype), end - begin, other);
    });
  }
}

int64_t CpuSession::output_bytes() const {
  int64_t bytes = 0;
  for (const BufferSpec& spec : problem_.buffers) bytes += spec.output ? spec.bytes() : 0;
  return bytes;
}

std::string CpuSession::damage() const {
  for (const Arguments& arguments : clones_) {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (const absl::Status status = arguments[i].check_red_zones(); !status.ok())
        return absl::StrCat("argument ", i, " (", name_of(i), "): ", std::string(status.message()));
  }
  return "";
}

std::string CpuSession::name_of(size_t argument) const {
  return argument < problem_.buffers.size() ? problem_.buffers[argument].name : "the intermediates";
}

std::vector<CheckAnswer::Unwritten> CpuSession::unwritten(const Candidate& candidate, int64_t of_pages) {
  std::vector<CheckAnswer::Unwritten> found;
  Arguments& arguments = clones_[0];
  bool integers = false;
  for (size_t i = 0; i < problem_.buffers.size(); ++i) {
    const BufferSpec& spec = problem_.buffers[i];
    if (!spec.output) continue;
    std::vector<CheckAnswer::Unwritten> parts(static_cast<size_t>(pool_->threads()));
    each_page(spec, of_pages, [&](int thread, int64_t begin, int64_t end) {
      CheckAnswer::Unwritten& part = parts[static_cast<size_t>(thread)];
      int64_t first = 0;
      const int64_t n =
          count_poison(spec.dtype, arguments[i].data() + begin * size_of(spec.dtype), end - begin, &first);
      if (n && !part.elements) part.first = begin + first;
      part.elements += n;
    });
    CheckAnswer::Unwritten sum{static_cast<int64_t>(i), 0, -1};
    for (const CheckAnswer::Unwritten& part : parts) {
      if (part.elements && sum.first < 0) sum.first = part.first;
      sum.elements += part.elements;
    }
    if (!sum.elements) continue;
    found.push_back(sum);
    integers = integers || !is_float(spec.dtype);
  }
  if (!integers) return found;
  // An integer result may equal the poison by chance, so the candidate runs a second time over another poison. An
  // element is unwritten if it still holds the poison after each of the two runs.
  std::vector<std::vector<char>> first(arguments.size());
  for (const CheckAnswer::Unwritten& u : found) {
    const Buffer& buffer = arguments[static_cast<size_t>(u.buffer)];
    first[static_cast<size_t>(u.buffer)].assign(buffer.data(), buffer.data() + buffer.bytes());
  }
  poison_outputs(arguments, true, 1);
  run(candidate, arguments);
  for (CheckAnswer::Unwritten& u : found) {
    const auto b = static_cast<size_t>(u.buffer);
    const DType dtype = problem_.buffers[b].dtype;
    u.elements = 0;
    for (int64_t e = problem_.buffers[b].elements() - 1; e >= 0; --e) {
      if (!is_poison(dtype, first[b].data(), e) || !is_poison(dtype, arguments[b].data(), e, true)) continue;
      ++u.elements;
      u.first = e;
    }
  }
  std::erase_if(found, [](const CheckAnswer::Unwritten& u) { return u.elements == 0; });
  return found;
}

absl::StatusOr<CheckAnswer> CpuSession::check(const CheckCommand& command) {
  WL_ASSIGN_OR_RETURN(Candidate * candidate, slot(command.slot));
  alive_(command.slot);
  pool_->spoil_scratch();
  const int64_t of_pages = command.thorough || output_bytes() <= kLargeOutputs ? 1 : kOfCheckedPages;
  judged_ = 0;
  poison_outputs(clones_[0], false, of_pages);
  run(*candidate, clones_[0]);
  CheckAnswer answer;
  answer.damage = damage();
  alive_(command.slot);
  if (answer.damage.empty()) answer.unwritten = unwritten(*candidate, of_pages);
  return answer;
}

absl::StatusOr<PeekAnswer> CpuSession::peek(const PeekCommand& command) {
  PeekAnswer answer;
  for (const PeekCommand::Place& place : command.places) {
    const auto b = static_cast<size_t>(place.buffer);
    if (place.buffer < 0 || b >= problem_.buffers.size() || clones_.empty() || place.index < 0 ||
        place.index >= problem_.buffers[b].elements())
      return invalid("no element ", place.index, " in argument ", place.buffer);
    answer.values.push_back(
        load_element(problem_.buffers[b].dtype, clones_[judged_][b].data(), static_cast<uint64_t>(place.index)));
  }
  return answer;
}

void CpuSession::evict() {
  for (size_t i = 0; i < eviction_.size(); i += 64) eviction_[i] = static_cast<char>(eviction_[i] + 1);
}

int64_t CpuSession::timed(const Candidate& candidate, int64_t calls) {
  int64_t spent = 0;
  while (calls > 0) {
    const size_t n = problem_.cold ? std::min<size_t>(static_cast<size_t>(calls), clones_.size() - next_clone_) : 1;
    const int64_t begin = monotonic_ns();
    if (problem_.cold) {
      for (size_t c = 0; c < n; ++c) run(candidate, clones_[next_clone_ + c]);
      calls -= static_cast<int64_t>(n);
    } else {
      for (; calls > 0; --calls) run(candidate, clones_[0]);
    }
    spent += monotonic_ns() - begin;
    if (!problem_.cold) continue;
    next_clone_ += n;
    if (next_clone_ < clones_.size()) continue;
    next_clone_ = 0;
    evict();
  }
  return spent;
}

absl::StatusOr<TimeAnswer> CpuSession::time(const TimeCommand& command) {
  std::vector<Candidate*> candidates;
  for (int64_t number : command.slots) {
    WL_ASSIGN_OR_RETURN(Candidate * candidate, slot(number));
    candidates.push_back(candidate);
  }
  // The worker judges the values that a timed run stores, so the outputs are poisoned again to erase the values of the
  // earlier check. Of large outputs it is enough to poison some pages, which saves a pass over memory. If there are
  // several copies of the arguments, the one that the first timed call uses is judged, since there may be too few calls
  // to use the others.
  judged_ = next_clone_;
  poison_outputs(clones_[judged_], false, output_bytes() <= kLargeOutputs ? 1 : kOfTimedPages);
  TimeAnswer answer;
  answer.slots = time_slots(command.recipe, static_cast<int>(candidates.size()), [&](int index, int64_t calls) {
    const auto i = static_cast<size_t>(index);
    alive_(command.slots[i]);
    return timed(*candidates[i], calls);
  });
  answer.damage = damage();
  return answer;
}

void CpuSession::describe_address(const void* address, char* text, size_t size) const {
  text[0] = 0;
  for (const Arguments& arguments : clones_) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].covers(address)) continue;
      const long at = static_cast<const char*>(address) - arguments[i].data();
      if (i >= problem_.buffers.size()) {
        std::snprintf(text, size, " at byte %ld of the intermediates (%lld bytes)", at,
                      static_cast<long long>(arguments[i].bytes()));
        return;
      }
      std::snprintf(text, size, " at byte %ld of argument %zu (%s, %s, %lld bytes)", at, i,
                    problem_.buffers[i].name.c_str(), problem_.buffers[i].output ? "output" : "read-only input",
                    static_cast<long long>(arguments[i].bytes()));
      return;
    }
  }
}

}  // namespace wl
