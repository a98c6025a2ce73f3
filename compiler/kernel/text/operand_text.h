// The text of each kind of operand. To add a kind: a row of instrs.def, one in operand_text.cpp, and a check in the
// verifier.
#pragma once

#include <string>

#include "compiler/kernel/text/value_text.h"

namespace wl {

// The text behind an instruction's name, with its leading blank.
std::string operands_text(const Kernel& kernel, const Instr& instr);
// Reads that text into `instr`, whose op is known.
absl::Status read_operands(ValueReader& reader, Instr& instr);

}  // namespace wl
