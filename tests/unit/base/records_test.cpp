#include "compiler/base/records.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "compiler/base/code.h"
#include "compiler/base/job.h"
#include "compiler/base/sha256.h"

namespace wl {
namespace {

TEST(Sha256, PublishedVectors) {  // the vectors of FIPS 180-4
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, BytesOfHexadecimalDigits) {
  EXPECT_EQ(bytes_of_hex("00fFA9"), std::string("\0\xff\xa9", 3));
  EXPECT_EQ(bytes_of_hex("7"), "");
  EXPECT_EQ(bytes_of_hex("4g415"), "@A");
}

TEST(Encoder, FieldsCannotRunIntoEachOther) {
  std::set<std::string> hashes;
  hashes.insert(Encoder("k", 1).text("ab").text("c").hash());
  hashes.insert(Encoder("k", 1).text("a").text("bc").hash());
  hashes.insert(Encoder("k", 1).text("abc").hash());
  hashes.insert(Encoder("k", 1).text("abc").text("").hash());
  hashes.insert(Encoder("k", 2).text("abc").hash());
  hashes.insert(Encoder("l", 1).text("abc").hash());
  hashes.insert(Encoder("k", 1).integer(0).hash());
  hashes.insert(Encoder("k", 1).real(0).hash());
  hashes.insert(Encoder("k", 1).real(-0.0).hash());
  EXPECT_EQ(hashes.size(), 9u);
}

TEST(Records, MedianOf) {
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(median_of({5}), 5);
  EXPECT_EQ(median_of({9, 1, 4}), 4);
  EXPECT_EQ(median_of({9, 1, 4, 5}), 4.5);
  EXPECT_EQ(undisturbed_ns({}), 0);
  EXPECT_EQ(undisturbed_ns({9}), 9);
  EXPECT_EQ(undisturbed_ns({9, 1, 4}), 4) << "a single sample may be false";
  EXPECT_EQ(undisturbed_ns({4, 9, 4}), 4);
}

TEST(Records, SizesOfBuffers) {
  BufferSpec spec;
  spec.dtype = DType::f16;
  EXPECT_EQ(spec.elements(), 1);  // a scalar has one element
  spec.shape = {3, 0, 5};
  EXPECT_EQ(spec.bytes(), 0);
  spec.shape = {3, 7};
  EXPECT_EQ(spec.bytes(), 42);
}

TEST(Records, FingerprintTellsMachinesApart) {
  Device a, b;
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  b.threads = 2;
  EXPECT_NE(a.fingerprint(), b.fingerprint());
  b = a;
  b.compiler_versions = "another";  // compiler versions belong to the environment, not to the device
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
}

TEST(Records, NamesForPeopleHaveNoEscapes) {
  EXPECT_EQ(shown_name("spiffe:%2F%2Flab%2Ftwo/gpu0"), "spiffe://lab/two/gpu0");
  EXPECT_EQ(shown_name("a%252Fb%23c/w"), "a%2Fb#c/w") << "an escape that was in the name stays";
  EXPECT_EQ(shown_name("lab/one"), "lab/one");
}

TEST(DType, NamesRoundTrip) {
  for (int row = 0; row < kDTypeCount; ++row) {
    const auto dtype = static_cast<DType>(row);
    EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
    EXPECT_GT(size_of(dtype), 0);
    EXPECT_EQ(is_float(dtype), info(dtype).unit_roundoff > 0);
  }
  EXPECT_FALSE(dtype_named("f128").has_value());
}

TEST(Code, TextGoesBothWays) {
  const CodeFacts code{66, 8, 16, 128, 4096, 16, 4, 16, 2, true, 0.4375};
  const std::string text = "registers=66 spill=8 stack=16 shared=128+4096 load=4..16 store=2..16 cas=1 occupancy=0.438";
  EXPECT_EQ(code_text(code), text);
  const auto back = parse_code(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(code_text(*back), text);
  EXPECT_EQ(back->narrowest_store, 2);
  EXPECT_EQ(back->dynamic_shared, 4096);
  for (size_t n = 0; n <= text.rfind('='); ++n) EXPECT_FALSE(parse_code(text.substr(0, n)).ok()) << n;
  EXPECT_FALSE(parse_code(text + " ").ok());
}

}  // namespace
}  // namespace wl
