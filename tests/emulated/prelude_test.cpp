// Every function of the HIP prelude as AMD machine code on the emulator: values against the host's, with the accuracy
// that compiler/target/prelude/ACCURACY.md promises, and moves of threads, lanes and blocks.
#include "compiler/target/prelude/prelude.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <regex>
#include <set>

#include "compiler/base/fill.h"
#include "compiler/base/splitmix.h"
#include "compiler/target/matrix.h"
#include "tests/emulated/device.h"
#include "tests/emulated/prelude_probes.h"

namespace wl {
namespace {

using testing::EmulatedDevice;
using testing::kProbeThreads;
using testing::kProbeValues;
using testing::MoveProbe;
using testing::ValueProbe;

constexpr int kVector = 4;
// The number of elements of each input. An output holds the results that were computed by vectors, then those that
// were computed by scalars.
constexpr int kValues = kProbeThreads * kVector;

Source source_of(const EmulatedDevice& device, std::string text) {
  Source source;
  source.target = device.target();
  source.prelude = prelude_text(*target_named(device.target()).value(), kVector);
  source.text = std::move(text);
  source.entry = "wl_probe";
  source.threads = kProbeThreads;
  return source;
}

// Returns the type of a dtype's elements in memory: for small floats and b1, an unsigned integer.
std::string memory_name(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
      return "u16";
    case DType::b1:
    case DType::f8e4m3fn:
    case DType::f8e5m2:
      return "u8";
    default:
      return std::string(info(dtype).name);
  }
}

std::string text_of(const ValueProbe& probe) {
  const std::string from = memory_name(probe.from), to = memory_name(probe.to);
  std::string text = cat("WL_KERNEL(wl_probe, 1, ", kProbeThreads);
  for (int p = 0; p < 3; ++p) append(&text, ", WL_IN(", from, ", p", p, ", ", kValues, ")");
  append(&text, ", WL_OUT(", to, ", r, ", 2 * kValues, ")) {\n  WL_ENTER;\n  const int at = ", kVector,
         " * thread;\n  {\n    typedef ", from, "v V;\n    typedef ", to, "v R;\n");
  for (int p = 0; p < 3; ++p)
    append(&text, "    const V ", std::string(1, "xyz"[p]), " = wl_load<V, 1>(p", p, " + at);\n");
  append(&text, "    (void)x, (void)y, (void)z;\n    wl_store<1>(r + at, (R)(", probe.expression, "));\n  }\n");
  append(&text, "  WL_SERIAL for (int i = at; i < at + ", kVector, "; ++i) {\n    typedef ", from, " V;\n    typedef ",
         to, " R;\n    const V x = p0[i], y = p1[i], z = p2[i];\n    (void)x, (void)y, (void)z;\n    r[", kValues,
         " + i] = (R)(", probe.expression, ");\n  }\n}\n");
  return text;
}

// Returns element i of an input: by turns a special value, a value of a usual range, one of any magnitude, and one
// with random bits.
double value_at(DType dtype, uint64_t seed, int i) {
  static const double kSpecial[] = {0,    -0.0,      1,         -1,   2,     -2,     0.5,   -0.5,  2.5,  -7.25,
                                    17,   INFINITY,  -INFINITY, NAN,  1e-40, -1e-40, 1e38,  -1e38, 88.7, -103.5,
                                    1000, 16777217., 104,       -104, 3e-39, 6.1e-5, 65519, 448,   240,  -57344};
  uint64_t state = seed * 1'000'003 + static_cast<uint64_t>(i);
  const uint64_t drawn = split_mix(state);
  const auto special = static_cast<int>(std::size(kSpecial));
  const double unit = static_cast<double>(drawn >> 11) * 0x1p-53;
  if (!is_float(dtype)) {
    static const double kWhole[] = {0, 1, -1, 2, -7, 31, 32, 33, 1000, -999};
    return i % 2 == 0 ? kWhole[drawn % std::size(kWhole)] : std::floor((2 * unit - 1) * 30000);
  }
  if (i % 4 == 0) return kSpecial[drawn % static_cast<uint64_t>(special)];
  if (i % 4 == 1) return (2 * unit - 1) * 8;
  if (i % 4 == 2) return (drawn & 1 ? 1 : -1) * std::exp2((2 * unit - 1) * 20);
  float any;
  const auto bits = static_cast<uint32_t>(drawn);
  std::memcpy(&any, &bits, sizeof any);
  return any;
}

double ulp_of(double rounded) {
  int exponent = 0;
  (void)std::frexp(rounded, &exponent);
  return std::ldexp(1, std::max(exponent - 24, -149));
}

// Returns "" if `got` is as close to `want` as the probe demands, else a description of the error.
std::string compare(const ValueProbe& probe, double got, double want) {
  char element[8] = {};
  store_element(probe.to, element, 0, want);
  const double rounded = load_element(probe.to, element, 0);
  if (got == rounded || (std::isnan(got) && std::isnan(rounded))) return "";
  if (probe.to == DType::f32 && std::isfinite(got) && std::isfinite(rounded) &&
      std::fabs(got - want) <= (probe.ulps + 1e-6) * ulp_of(rounded))
    return "";
  return cat("got ", got, ", expected ", want, ", ", probe.ulps, " units in the last place");
}

// Returns whether the exponent of x is near the smallest or the largest one of an f32.
bool extreme(double x) {
  return std::isfinite(x) && x != 0 && (std::fabs(x) < 0x1p-60 || std::fabs(x) > 0x1p60);
}

class EmulatedPrelude : public ::testing::Test {
 protected:
  void SetUp() override {
    if (EmulatedDevice::get() == nullptr) GTEST_SKIP() << "not started with the emulator (tests/emulated/emulator.py)";
  }
};

std::string check_values(EmulatedDevice& device, const ValueProbe& probe) {
  const Source source = source_of(device, text_of(probe));
  const auto code = device.compile(source);
  if (!code.ok()) return cat(code.status().ToString(), "\n", source.text);
  const auto bytes = static_cast<size_t>(kValues * size_of(probe.from));
  std::vector<EmulatedDevice::Argument> arguments(4);
  for (size_t p = 0; p < 3; ++p) {
    arguments[p].bytes.resize(bytes);
    for (int i = 0; i < kValues; ++i)
      store_element(probe.from, arguments[p].bytes.data(), static_cast<uint64_t>(i), value_at(probe.from, p, i));
  }
  arguments[3] = {std::string(static_cast<size_t>(2 * kValues * size_of(probe.to)), '\x5a'), true};
  if (const absl::Status status = device.run(source, *code, arguments); !status.ok())
    return std::string(status.ToString());
  const auto in = [&](size_t p, int i) {
    return load_element(probe.from, arguments[p].bytes.data(), static_cast<uint64_t>(i));
  };
  for (int i = 0; i < 2 * kValues; ++i) {
    const double x = in(0, i % kValues), y = in(1, i % kValues), z = in(2, i % kValues);
    const double got = load_element(probe.to, arguments[3].bytes.data(), static_cast<uint64_t>(i));
    const double want = probe.expected(x, y, z);
    if (probe.divides && (extreme(x) || extreme(y) || extreme(z) || extreme(want))) continue;
    const std::string wrong = compare(probe, got, want);
    if (!wrong.empty())
      return cat(i < kValues ? "of vectors" : "of scalars", ", x = ", x, ", y = ", y, ", z = ", z, ": ", wrong);
  }
  return "";
}

TEST_F(EmulatedPrelude, ValuesAreAsAccurateAsPromised) {
  for (const ValueProbe& probe : testing::value_probes())
    EXPECT_EQ(check_values(*EmulatedDevice::get(), probe), "") << probe.name;
}

TEST_F(EmulatedPrelude, MovesAreMade) {
  EmulatedDevice& device = *EmulatedDevice::get();
  const int wave = target_named(device.target()).value()->gpu.wave;
  std::string values(4 * kProbeValues, '\0'), nothing(4 * kProbeValues, '\0');
  for (int i = 0; i < kProbeValues; ++i) {
    store_element(DType::f32, values.data(), static_cast<uint64_t>(i), i);
    store_element(DType::f32, nothing.data(), static_cast<uint64_t>(i), -1);
  }
  for (const MoveProbe& probe : testing::move_probes()) {
    SCOPED_TRACE(probe.name);
    if (probe.wave != 0 && probe.wave != wave) continue;
    Source source = source_of(
        device,
        cat("WL_KERNEL(wl_probe, 1, ", kProbeThreads, ", WL_IN(f32, p, ", kProbeValues, "), WL_OUT(f32, r, ",
            kProbeValues,
            ")) {\n  WL_ENTER;\n  const int at = 8 * thread;\n  f32* const q = r + at;\n  WL_SHARED(f32, s, 0, ",
            kProbeValues, ");\n  (void)s;\n  ", probe.statements, "\n}\n"));
    source.scratch_bytes = 4 * kProbeValues;
    const auto code = device.compile(source);
    ASSERT_TRUE(code.ok()) << code.status() << source.text;
    std::vector<EmulatedDevice::Argument> arguments = {{values}, {nothing, true}};
    const absl::Status status = device.run(source, *code, arguments);
    ASSERT_TRUE(status.ok()) << status;
    for (int e = 0; e < kProbeValues; ++e)
      ASSERT_EQ(load_element(DType::f32, arguments[1].bytes.data(), static_cast<uint64_t>(e)),
                probe.expected(e / 8, e % 8))
          << "thread " << e / 8 << ", element " << e % 8;
  }
}

TEST_F(EmulatedPrelude, TheLastBlockIsTold) {
  EmulatedDevice& device = *EmulatedDevice::get();
  Source source = source_of(device, testing::kCountingProbe);
  source.grid = 4;
  source.scratch_bytes = 4;
  source.work_bytes = kCounterBytes + 16;
  const auto code = device.compile(source);
  ASSERT_TRUE(code.ok()) << code.status();
  std::vector<EmulatedDevice::Argument> arguments = {{std::string(4, '\0'), true}};
  const absl::Status status = device.run(source, *code, arguments);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(load_element(DType::f32, arguments[0].bytes.data(), 0), testing::kCountingResult);
}

// Every function of the prelude is named by a probe or called by another function.
TEST(EmulatedPreludeText, HasAProbeForEveryFunction) {
  const std::string prelude(hip_prelude());
  std::string probes = testing::kCountingProbe;
  for (const ValueProbe& probe : testing::value_probes()) append(&probes, probe.expression, "\n");
  for (const MoveProbe& probe : testing::move_probes()) append(&probes, probe.statements, "\n");
  for (const char* function : testing::kNotExecuted) append(&probes, function, "\n");
  // These functions need no probe, because the matrix products in groups_test.cpp execute them.
  append(&probes, "wl_word\n");
  for (const MatrixInfo& row : matrices()) append(&probes, "wl_mma_", row.name, "\n");
  std::map<std::string, int> defined, named;
  // Forms of a definition: "WL_FN V wl_abs(", "WL_LIFT1(wl_abs)", "WL_LOADS(wl_load, wl_load_n, wl_read)". The last
  // form calls its last argument.
  const std::regex definitions[] = {
      std::regex("WL_FN [^(\\n]*?(wl_[a-z0-9_]+)\\("),
      std::regex("^WL_[A-Z0-9_]+\\((wl_[a-z0-9_]+)", std::regex::multiline),
      std::regex("^WL_[A-Z0-9_]+\\(wl_[a-z0-9_]+, (wl_[a-z0-9_]+), wl_", std::regex::multiline)};
  const std::regex name("\\bwl_[a-z0-9_]+\\b");
  const std::sregex_iterator end;
  for (const std::regex& definition : definitions)
    for (std::sregex_iterator at(prelude.begin(), prelude.end(), definition); at != end; ++at) ++defined[at->str(1)];
  for (std::sregex_iterator at(prelude.begin(), prelude.end(), name); at != end; ++at) ++named[at->str()];
  EXPECT_GE(defined.size(), 100u);
  for (const auto& [function, count] : defined) {
    if (std::regex_search(probes, std::regex(cat("\\b", function, "\\b")))) continue;
    EXPECT_GT(named[function], count) << function << " is neither probed nor called by another function";
  }
}

}  // namespace
}  // namespace wl
