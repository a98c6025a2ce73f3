#include "worker/drivers/gpu/code_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/drivers/gpu/cubin.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

constexpr CodeLimits kHopper = {32, 1024, 2048, 32, 255, 65536, 227 * 1024, 228 * 1024};

CodeFacts good() {
  CodeFacts code;
  code.registers = 32;
  code.widest_load = code.narrowest_load = code.widest_store = code.narrowest_store = 16;
  return code;
}

Source source_of(int threads) {
  Source source;
  source.threads = threads;
  source.load_bytes = source.store_bytes = 16;
  return source;
}

TEST(Occupancy, IsBoundByWhatRunsOutFirst) {
  CodeFacts code = good();
  EXPECT_EQ(occupancy_of(code, kHopper, 256), 1);
  // With blocks of one warp, the limit of blocks per multiprocessor allows half of the warps that it could hold.
  EXPECT_EQ(occupancy_of(code, kHopper, 32), 0.5);
  EXPECT_EQ(occupancy_of(code, kHopper, 33), 1);  // 33 threads take two whole warps
  code.registers = 64;
  EXPECT_EQ(occupancy_of(code, kHopper, 256), 0.5);
  code.registers = 65;  // registers are allocated in eights: 65 take the space of 72
  EXPECT_EQ(occupancy_of(code, kHopper, 128), 7 * 128 / 2048.0);
  code = good();
  code.dynamic_shared = 100 * 1024;
  EXPECT_EQ(occupancy_of(code, kHopper, 256), 0.25);
  code.dynamic_shared = 228 * 1024;
  EXPECT_EQ(occupancy_of(code, kHopper, 256), 0);
  code = good();
  code.registers = 255;
  EXPECT_EQ(occupancy_of(code, kHopper, 1024), 0);
  EXPECT_EQ(occupancy_of(good(), kHopper, 1025), 0);
}

TEST(Judgement, SaysWhy) {
  EXPECT_EQ(reject_reason(good(), kHopper, source_of(256)), "");
  CodeFacts code = good();
  code.spill_bytes = 32;
  EXPECT_EQ(reject_reason(code, kHopper, source_of(256)), "");
  code.spill_bytes = 40;
  EXPECT_THAT(reject_reason(code, kHopper, source_of(256)), HasSubstr("spills 40 bytes"));
  code = good();
  code.compare_and_swap = true;
  EXPECT_THAT(reject_reason(code, kHopper, source_of(256)), HasSubstr("compare-and-swap"));
  code = good();
  code.widest_load = 4;
  EXPECT_THAT(reject_reason(code, kHopper, source_of(256)), HasSubstr("loads of 16 bytes, the code's widest have 4"));
  code = good();
  code.widest_store = 8;
  EXPECT_THAT(reject_reason(code, kHopper, source_of(256)), HasSubstr("stores of 16 bytes"));
  code.widest_store = 0;  // 0: the code's widest store is unknown, which is no reason to reject the kernel
  EXPECT_EQ(reject_reason(code, kHopper, source_of(256)), "");
  EXPECT_THAT(reject_reason(good(), kHopper, source_of(2048)), HasSubstr("2048 threads; the most are 1024"));
  code = good();
  code.dynamic_shared = 300 * 1024;
  EXPECT_THAT(reject_reason(code, kHopper, source_of(256)), HasSubstr("shared memory"));
  code = good();
  code.registers = 100;
  EXPECT_THAT(reject_reason(code, kHopper, source_of(1024)), HasSubstr("not one block of 1024 threads"));
  // If the device's limits are unknown, a kernel cannot be rejected for exceeding them.
  EXPECT_EQ(reject_reason(code, CodeLimits{}, source_of(1024)), "");
}

TEST(Judgement, RanksWidthThenOccupancy) {
  CodeFacts wide = good(), narrow = good(), slow = good();
  wide.occupancy = 0.5;
  narrow.occupancy = 1;
  narrow.widest_load = 4;
  slow.occupancy = 0.125;
  EXPECT_GT(promise_of(wide), promise_of(narrow));
  EXPECT_GT(promise_of(wide), promise_of(slow));
  CodeFacts more = wide;
  more.occupancy = 1;
  EXPECT_EQ(promise_of(wide), promise_of(more));
}

TEST(Cubin, AnyBytesAreHarmless) {
  CodeFacts code;
  EXPECT_FALSE(read_cubin("", "k", code).ok());
  std::string bytes(4096, '\0');
  const std::string head =
      "\x7f"
      "ELF\x02\x01\x01";
  bytes.replace(0, head.size(), head);
  bytes[18] = static_cast<char>(190);
  for (size_t at = 24; at < 64; ++at) {
    for (int value : {0, 1, 0x40, 0x7f, 0xff}) {
      std::string other = bytes;
      other[at] = static_cast<char>(value);
      other[60] = 9;
      EXPECT_FALSE(read_cubin(other, "k", code).ok());
    }
  }
}

}  // namespace
}  // namespace wl
