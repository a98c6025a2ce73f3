// Visits, counts and damages the instructions of a kernel, including those of its loops.
#pragma once

#include <functional>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl::testing {

// Calls visit(body, i) for every instruction, the i-th of its body; a loop comes before the instructions in its body.
// visit() may change or erase the instruction.
inline void each_place(std::vector<Instr>& body, const std::function<void(std::vector<Instr>&, size_t)>& visit) {
  for (size_t i = 0; i < body.size(); ++i) {
    visit(body, i);
    if (i < body.size()) each_place(body[i].body, visit);
  }
}

// Calls visit(instr) for every instruction with this op. visit() may change the instruction.
inline void each_of(Kernel& kernel, InstrOp op, const std::function<void(Instr&)>& visit) {
  each_instr(kernel.body, [&](Instr& instr) {
    if (instr.op == op) visit(instr);
  });
}

inline int instrs_in(const std::vector<Instr>& body, InstrOp op) {
  int n = 0;
  for (const Instr& instr : body) n += (instr.op == op ? 1 : 0) + instrs_in(instr.body, op);
  return n;
}

// A function that damages the i-th instruction of a body.
using Damage = std::function<void(std::vector<Instr>& body, size_t i)>;

inline void erase_instr(std::vector<Instr>& body, size_t i) {
  body.erase(body.begin() + static_cast<int64_t>(i));
}

// Returns a copy of the kernel for each instruction with this op, in which that instruction alone is damaged.
inline std::vector<Kernel> each_damaged(const Kernel& whole, InstrOp op, const Damage& damage) {
  std::vector<Kernel> out;
  for (int wanted = 0; wanted < instrs_in(whole.body, op); ++wanted) {
    int at = 0;
    each_place(out.emplace_back(whole).body, [&](std::vector<Instr>& body, size_t i) {
      if (body[i].op == op && at++ == wanted) damage(body, i);
    });
  }
  return out;
}

}  // namespace wl::testing
