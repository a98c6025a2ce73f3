// Visits and counts the instructions of a kernel's body, including those of its loops.
#pragma once

#include <functional>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl::testing {

// Calls visit(body, i) for the i-th instruction of every body, outer ones first; it may change the instruction or erase
// it.
inline void each_place(std::vector<Instr>& body, const std::function<void(std::vector<Instr>&, size_t)>& visit) {
  for (size_t i = 0; i < body.size(); ++i) {
    visit(body, i);
    if (i < body.size()) each_place(body[i].body, visit);
  }
}

inline int instrs_in(const std::vector<Instr>& body, InstrOp op) {
  int n = 0;
  for (const Instr& instr : body) n += (instr.op == op ? 1 : 0) + instrs_in(instr.body, op);
  return n;
}

}  // namespace wl::testing
