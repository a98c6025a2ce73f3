// The text of each kind of operand. To add a kind, add a row to instrs.def, its text to operand_text.cpp, and a check
// to the verifier.
#pragma once

#include <string>

#include "compiler/kernel/text/value_text.h"

namespace wl {

// Returns the text of an instruction's operands, which follows its name, with a leading blank.
std::string operands_text(const Kernel& kernel, const Instr& instr);
// Parses the text of an instruction's operands into `instr`, whose op is already set.
absl::Status read_operands(ValueReader& reader, Instr& instr);

}  // namespace wl
