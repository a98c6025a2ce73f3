// Kernels of a group, compiled by each compiler of the machine.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/schedule/groups.h"

namespace wl::testing {

// Adds the default kernel of a group for a CPU target to the checks and to the count `*kernels`. If `both`, also adds
// the kernel for the machine's other compiler. The two kernels differ only in their preludes, which do not depend on
// the dtype, so callers set `both` for one dtype only. `label` is shown before the plan of a kernel that is wrong.
inline void add_by_compilers(CompiledChecks& checks, const Graph& group, const std::string& target, bool both,
                             const std::string& label, int* kernels) {
  const auto number = checks.group(group);
  ASSERT_TRUE(number.ok()) << number.status();
  const Machine machine = machine_named(target);
  const auto domain = analyze(group, machine);
  ASSERT_TRUE(domain.ok()) << domain.status() << "\n" << print(group);
  const auto space = space_of(group, *domain, machine);
  ASSERT_TRUE(space.ok()) << space.status();
  const Point point = sample_points(*space, 0)[0];
  const auto kernel = lower(group, *domain, space->schedule(point), machine);
  ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << print(group);
  for (const char* compiler : {"gcc", "clang"}) {
    Kernel variant = *kernel;
    variant.compiler = compiler;
    if (variant.compiler != kernel->compiler && !both) continue;
    const auto source = emit(variant, machine);
    ASSERT_TRUE(source.ok()) << source.status() << "\n" << print(group);
    checks.add(*number, *source, label + space->text(point));
    ++*kernels;
  }
}

}  // namespace wl::testing
