#include "compiler/base/code.h"

#include <cstdio>

#include "absl/strings/str_format.h"
#include "compiler/base/status.h"

namespace wl {

std::string code_text(const CodeFacts& code) {
  return absl::StrFormat("registers=%d spill=%d stack=%d shared=%d+%d load=%d..%d store=%d..%d cas=%d occupancy=%.3f",
                         code.registers, code.spill_bytes, code.stack_bytes, code.static_shared, code.dynamic_shared,
                         code.narrowest_load, code.widest_load, code.narrowest_store, code.widest_store,
                         code.compare_and_swap ? 1 : 0, code.occupancy);
}

absl::StatusOr<CodeFacts> parse_code(std::string_view text) {
  CodeFacts code;
  long long spill = 0, stack = 0, fixed = 0, dynamic = 0;
  int cas = 0, end = -1;
  const std::string line(text);
  const int fields =
      std::sscanf(line.c_str(),
                  "registers=%9d spill=%15lld stack=%15lld shared=%15lld+%15lld load=%5d..%5d "
                  "store=%5d..%5d cas=%1d occupancy=%9lf%n",
                  &code.registers, &spill, &stack, &fixed, &dynamic, &code.narrowest_load, &code.widest_load,
                  &code.narrowest_store, &code.widest_store, &cas, &code.occupancy, &end);
  if (fields != 11 || end != static_cast<int>(line.size()))
    return invalid("facts of a kernel's code: expected \"registers=N spill=N ...\", found \"", line.substr(0, 200),
                   "\" (field ", fields + 1, ")");
  code.spill_bytes = spill;
  code.stack_bytes = stack;
  code.static_shared = fixed;
  code.dynamic_shared = dynamic;
  code.compare_and_swap = cas != 0;
  return code;
}

}  // namespace wl
