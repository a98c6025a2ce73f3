// Kernels that fail in various ways, as CUDA text for Warploom's prelude, each with the outcome required on a real GPU
// and on the fake driver (tests/fake_gpu). Where simulated lanes cannot fail in this way, a comment in the text tells
// the fake driver how to fail. All kernels have the arguments of add_batch(1024): two inputs and one output of 1024
// floats each.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "compiler/base/records.h"

namespace wl::testing {

struct Specimen {
  const char* name;
  const char* body;     // body of the kernel, with the arguments p0, p1, p2 and `i`, the index of the thread's element
  Outcome outcome;      // outcome that the trial must have
  const char* on_fake;  // text that the message must contain on the fake driver
  const char* fault = "";
  const char* before = "";
  int threads = 256;
  int64_t shared = 0;
};

inline void PrintTo(const Specimen& specimen, std::ostream* out) {
  *out << specimen.name;
}

#define WL_GOOD "wl_store<1>(p2 + i, wl_load<f32, 1>(p0 + i) + wl_load<f32, 1>(p1 + i));"

inline const std::vector<Specimen> kFaultZoo = {
    {"illegal_address", "p2[i + (1L << 40)] = 1;", Outcome::kRuntimeError, "illegal address", "illegal_address"},
    {"misaligned_access", "*(uint2*)((char*)p2 + 4 + 8 * (i / 2)) = uint2{1, 2};", Outcome::kRuntimeError,
     "misaligned address", "misaligned"},
    {"infinite_loop", "volatile int turn = 1; while (turn) {} " WL_GOOD, Outcome::kTimeout, "deadline", "hang"},
    {"block_too_large", WL_GOOD, Outcome::kRuntimeError, "2048 threads", "launch_too_large", "", 2048},
    {"shared_memory_too_large", WL_GOOD, Outcome::kRuntimeError, "opting in to 300000 bytes", "", "", 256, 300000},
    {"stack_overflow", "p2[i] = wl_deep(i + 100000000);", Outcome::kRuntimeError, "stack error", "stack_overflow",
     "__device__ __noinline__ float wl_deep(int n) { volatile float x[64]; x[n & 63] = n; "
     "return n == 0 ? 0 : wl_deep(n - 1) + x[(n + 1) & 63]; }"},
    {"trap", "asm volatile(\"trap;\"); p2[i] = 0;", Outcome::kRuntimeError, "the launch failed", "trap"},
    {"failed_assertion", "__assertfail(\"never\", \"zoo\", 1, \"f\", 1); p2[i] = 0;", Outcome::kRuntimeError,
     "an assertion failed", "assert",
     "extern \"C\" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);"},
    // Every thread needs more local memory than the driver can provide.
    {"out_of_memory", "volatile char x[500000]; for (int k = 0; k < 500000; k += 4096) x[k] = i; p2[i] = x[i & 4095];",
     Outcome::kRuntimeError, "out of memory", "out_of_memory"},
    {"write_past_the_end", WL_GOOD " if (i == 1023) p2[1025] = 1;", Outcome::kRuntimeError, "byte 4100 was written",
     "write_past_the_end"},
    {"write_to_an_input", WL_GOOD " if (i == 5) ((f32*)(const f32*)p0)[7] = 1;", Outcome::kRuntimeError,
     "(a, input) was written", "write_to_an_input"},
    {"element_never_written", "if (i != 77) " WL_GOOD, Outcome::kWrongResult, "1024 elements were never written"},
    {"wrong_value", WL_GOOD " if (i < 512) wl_store<1>(p2 + i, 3.0f);", Outcome::kWrongResult, "expected"},
};

// Makes a candidate for "cuda:sm_90a" or another CUDA target from a specimen.
Candidate gpu_candidate(int64_t trial, const std::string& target, const Specimen& specimen);
Specimen good_specimen();

}  // namespace wl::testing
