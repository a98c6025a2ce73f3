// Probes that execute the HIP prelude: a table of expressions over values, and a table of moves of data, by a thread
// alone or among lanes. To probe a function, add a row; prelude_test.cpp fails if the prelude has a function without
// one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "compiler/base/dtype.h"

namespace wl::testing {

// A probe of an expression of type R in x, y and z, which are of type V. The expression is computed once with vectors
// as V and R, and once with scalars.
struct ValueProbe {
  const char* name;
  DType from, to;  // dtypes of the operands (V) and of the result (R)
  const char* expression;
  double (*expected)(double x, double y, double z);
  // The largest distance of an f32 result from the exact one, in units in the last place, as in
  // compiler/target/prelude/ACCURACY.md. Results of other types must be correctly rounded.
  double ulps = 0.5;
  // Whether the expression divides. The emulator's division (v_div_scale) differs from a GPU's where an operand or the
  // result is near the ends of the exponent range, so those elements are not compared.
  bool divides = false;
};
std::span<const ValueProbe> value_probes();

// Functions of the HIP prelude that no probe executes. The first three find their tables by the instruction s_getpc,
// which the emulator does not know. The others are for swizzled buffers and for blocks that lanes exchange, which no
// kernel for AMD uses yet.
inline constexpr const char* kNotExecuted[] = {"wl_sin",    "wl_cos",  "wl_tan",          "wl_swizzle",
                                               "wl_panels", "wl_pack", "wl_to_row_along", "wl_to_row_across"};

// The statements that each of kProbeThreads threads executes. They may use `thread`, `at` (8 * thread), `p`
// (kProbeValues f32 in global memory, where p[i] is i) and `s` (as many f32 in shared memory), and set up to eight f32
// from q on, which are -1 before.
struct MoveProbe {
  const char* name;
  const char* statements;
  double (*expected)(int thread, int i);
  int wave = 0;  // the only wave size, in threads, with which the probe runs; 0: any
};
inline constexpr int kProbeThreads = 128, kProbeValues = 8 * kProbeThreads;
std::span<const MoveProbe> move_probes();

// A kernel of four blocks that count how many of them have ended. The last block reads what all four stored, and sets
// p[0].
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
