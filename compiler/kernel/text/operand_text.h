// The text of each kind of operand. A new kind is a row of instrs.def, one here, and one in the verifier.
#pragma once

#include <string>

#include "compiler/kernel/text/value_text.h"

namespace wl {

// What stands behind an instruction's name, with its leading blanks.
std::string operands_text(const Kernel& kernel, const Instr& instr);
// Reads the same into `instr`, whose op is known.
absl::Status read_operands(ValueReader& reader, Instr& instr);

}  // namespace wl
