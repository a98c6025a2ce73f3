// What is executed of the HIP prelude: a table of expressions over values, and one of moves of a thread or of the lanes
// together. To probe a function, add a row; prelude_test.cpp fails if the prelude has one that no row names.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "compiler/base/dtype.h"

namespace wl::testing {

// An expression R of x, y and z, which are of the type V: each a vector and a scalar in turn.
struct ValueProbe {
  const char* name;
  DType from, to;  // V's and R's
  const char* expression;
  double (*expected)(double x, double y, double z);
  // How far an f32 may be from the correctly rounded one, in units in the last place: as
  // compiler/target/prelude/ACCURACY.md says. All else is exact.
  double ulps = 0.5;
  // Whether it divides. The emulator's division is not a GPU's where an operand or the result is near the ends of the
  // exponents (v_div_scale), so those elements are not compared.
  bool divides = false;
};
std::span<const ValueProbe> value_probes();

// Functions that are not executed: the tables of the first three are found by s_getpc, which the emulator does not
// know; the others are for swizzled buffers and for blocks that lanes exchange, which no kernel for AMD has yet.
inline constexpr const char* kNotExecuted[] = {"wl_sin",    "wl_cos",  "wl_tan",          "wl_swizzle",
                                               "wl_panels", "wl_pack", "wl_to_row_along", "wl_to_row_across"};

// Statements that use `thread` of kProbeThreads, `at`, which is 8 * thread, `p` (f32: p[i] is i, and kProbeValues of
// them), `s` (f32 in shared memory, as many) and set up to eight f32 from q on, which are -1 before.
struct MoveProbe {
  const char* name;
  const char* statements;
  double (*expected)(int thread, int i);
  int wave = 0;  // the only size of waves that it is for; 0: any
};
inline constexpr int kProbeThreads = 128, kProbeValues = 8 * kProbeThreads;
std::span<const MoveProbe> move_probes();

// Four blocks that count each other. p[0] becomes what the last one reads of all.
inline constexpr const char* kCountingProbe = R"(
WL_KERNEL(wl_probe, 4, 128, WL_OUT(f32, p, 1), WL_PASSES(4112)) {
  WL_ENTER;
  (void)pass;
  WL_WORK(f32, w, 4096, 4);
  WL_SHARED(u32, told, 0, 1);
  if (thread == 127) w[block] = (f32)(block + 1);
  if (wl_last<4>(workspace, 0, thread, told) && thread == 0) p[0] = w[0] + 10 * w[1] + 100 * w[2] + 1000 * w[3];
}
)";
inline constexpr double kCountingResult = 4321;

}  // namespace wl::testing
