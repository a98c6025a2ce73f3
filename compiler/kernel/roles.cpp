#include "compiler/kernel/roles.h"

#include <algorithm>

namespace wl {
namespace {

const SharedAccess* found_in(const std::vector<SharedAccess>& accesses, const auto& is) {
  const auto at = std::find_if(accesses.begin(), accesses.end(), is);
  return at == accesses.end() ? nullptr : &*at;
}

// Whether `accesses` has an access with the same instruction, slice, tile and iterations as `access`.
bool is_known(const std::vector<SharedAccess>& accesses, const SharedAccess& access) {
  return std::any_of(accesses.begin(), accesses.end(), [&](const SharedAccess& one) {
    return one.instr.op == access.instr.op && shared_slice(one.instr) == shared_slice(access.instr) &&
           one.iterations == access.iterations && space_tile(one.instr) == space_tile(access.instr);
  });
}

struct Uses {
  std::set<Role> arrive, await;
};

class Roles {
 public:
  explicit Roles(const Kernel& kernel) : kernel_(kernel) {}

  absl::Status run() {
    WL_RETURN_IF_ERROR(body(kernel_.body, Role::kTeams));
    for (BufferId id = 0; id < static_cast<BufferId>(kernel_.buffers.size()); ++id) {
      const KernelBuffer& buffer = kernel_.buffers[id];
      if (buffer.arrivals == 0) continue;
      for (BufferId other = 0; other < static_cast<BufferId>(kernel_.buffers.size()); ++other)
        if (kernel_.overlap(id, other)) return fail(cat("phases ", buffer.name, " share their memory"));
      const Uses& uses = uses_[id];
      if (uses.arrive.size() > 1 || uses.await.size() > 1 || (!uses.arrive.empty() && uses.arrive == uses.await))
        return fail(cat("one role arrives at ", buffer.name, ", and the other waits for it"));
    }
    if (kernel_.copiers == 0) return absl::OkStatus();
    if (kernel_.copiers % kernel_.wave != 0 || kernel_.teams != 1 || kernel_.cluster != 1 || kernel_.sweeps() != 1)
      return fail("copiers are whole waves, beside one team, in blocks that do not know each other");
    return absl::OkStatus();
  }

 private:
  absl::Status fail(const std::string& what) const {
    return absl::InternalError(cat("kernel ", kernel_.name, ": ", what));
  }

  absl::Status body(const std::vector<Instr>& instrs, Role role) {
    for (const Instr& instr : instrs) {
      const InstrInfo& row = info(instr.op);
      const bool phase = row.has(Operand::phase);
      if (phase) {
        if (kernel_.copiers == 0) return fail(cat("no copiers: ", print(kernel_, instr)));
        Uses& uses = uses_[instr.slice.buffer];
        (row.order == Order::kPhase ? uses.arrive : uses.await).insert(role);
        if (row.order == Order::kPhase) WL_RETURN_IF_ERROR(arrives(instr, role));
      }
      for (const Slice* slice : {&instr.slice, &instr.into})
        if (!phase && slice->buffer >= 0 && kernel_.buffers[slice->buffer].arrivals != 0)
          return fail(cat("an access to phases: ", print(kernel_, instr)));
      if (role == Role::kCopiers && !phase && instr.op != InstrOp::kLoop && !row.is_async_copy())
        return fail(cat("copiers only copy: ", print(kernel_, instr)));
      if (role != Role::kCopiers && instr.op == InstrOp::kBoxLoad)
        return fail(cat("only copiers copy boxes: ", print(kernel_, instr)));
      if (instr.role == Role::kCopiers && kernel_.copiers == 0) return fail(cat("no copiers: ", print(kernel_, instr)));
      WL_RETURN_IF_ERROR(body(instr.body, instr.role == Role::kCopiers ? instr.role : role));
    }
    return absl::OkStatus();
  }

  absl::Status arrives(const Instr& instr, Role role) const {
    const int arrivals = kernel_.buffers[instr.slice.buffer].arrivals;
    const bool copied = instr.op == InstrOp::kArriveCopied;
    const int threads = copied ? kernel_.copiers : kernel_.team * kernel_.teams / kernel_.wave;
    if (copied != (role == Role::kCopiers)) return fail(cat("the other role arrives: ", print(kernel_, instr)));
    return arrivals == threads ? absl::OkStatus()
                               : fail(cat(threads, " arrive, not ", arrivals, ": ", print(kernel_, instr)));
  }

  const Kernel& kernel_;
  std::map<BufferId, Uses> uses_;
};

}  // namespace

std::string phase_problem(const Kernel& kernel, const Instr& instr) {
  if (instr.slice.buffer < 0 || instr.slice.buffer >= static_cast<BufferId>(kernel.buffers.size()))
    return "no such buffer";
  const KernelBuffer& buffer = kernel.buffers[instr.slice.buffer];
  const bool are = buffer.level == Level::kShared && buffer.dtype == DType::i64 && buffer.arrivals > 0;
  return are && instr.slice.strides.empty() ? "" : "a phase is an element of a shared i64 buffer that has arrivals";
}

absl::Status check_roles(const Kernel& kernel) {
  return Roles(kernel).run();
}

const SharedAccess* Told::clash(const SharedAccess& access) const {
  const auto meets = [&](const SharedAccess& earlier) { return hazard(kernel_, earlier, access); };
  const SharedAccess* const own = found_in(own_[index(access.role)], meets);
  return own != nullptr ? own : found_in(theirs_[index(access.role)], meets);
}

const SharedAccess* Told::unfinished(const SharedAccess& access) const {
  const auto meets = [&](const SharedAccess& copy) { return uses_unfinished(kernel_, copy, access); };
  if (const SharedAccess* const copy = found_in(started_, meets); copy != nullptr) return copy;
  for (const auto& [element, phase] : phases_)
    if (const SharedAccess* const copy = found_in(phase.copies, meets); copy != nullptr) return copy;
  return nullptr;
}

void Told::add(const SharedAccess& access) {
  std::vector<SharedAccess>& own = own_[index(access.role)];
  if (!is_known(own, access)) own.push_back(access);
  std::vector<SharedAccess>& theirs = theirs_[index(other(access.role))];
  if (kernel_.copiers > 0 && !is_known(theirs, access)) theirs.push_back(access);
}

std::string Told::arrive(const Instr& instr, int64_t element, Role role) {
  Phase& phase = phases_[{instr.slice.buffer, element}];
  if (phase.ended != phase.awaited) return "a phase ends before anybody waited for the one before it";
  ++phase.ended;
  phase.last = number_ - 1;
  phase.unknown.clear();
  for (const SharedAccess& access : theirs_[index(role)]) phase.unknown.insert(access.number);
  if (instr.op == InstrOp::kArriveCopied) phase.copies = std::exchange(started_, {});
  return "";
}

std::string Told::await(const Instr& instr, int64_t element, int64_t parity, Role role) {
  Phase& phase = phases_[{instr.slice.buffer, element}];
  if ((phase.ended + 1) % 2 != parity % 2) return "a wait for another phase than the one that ended last";
  phase.awaited = phase.ended;
  phase.copies.clear();
  std::erase_if(theirs_[index(role)], [&](const SharedAccess& a) { return a.number <= phase.last; });
  std::erase_if(own_[index(role)],
                [&](const SharedAccess& a) { return a.number <= phase.last && !phase.unknown.contains(a.number); });
  return "";
}

const SharedAccess* Told::untold() const {
  if (!started_.empty()) return started_.data();
  for (const auto& [element, phase] : phases_)
    if (!phase.copies.empty()) return phase.copies.data();
  return nullptr;
}

void Told::forget(VarId loop) {
  const auto forget_in = [loop](std::vector<SharedAccess>& accesses) {
    for (SharedAccess& access : accesses) access.iterations.erase(loop);
  };
  for (const size_t role : {0, 1}) {
    forget_in(own_[role]);
    forget_in(theirs_[role]);
  }
  forget_in(started_);
  for (auto& [element, phase] : phases_) forget_in(phase.copies);
}

}  // namespace wl
