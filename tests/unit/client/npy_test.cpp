#include "client/program/npy.h"

#include <gtest/gtest.h>

#include <random>

namespace wl {
namespace {

TEST(Npy, RoundTripsEveryDtypeAndRank) {
  for (int d = 0; d < kDTypeCount; ++d) {
    auto dtype = static_cast<DType>(d);
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {7}, {2, 3}, {0, 4}, {1, 2, 3, 4}}) {
      int64_t bytes = size_of(dtype);
      for (int64_t extent : shape) bytes *= extent;
      std::string data(static_cast<size_t>(bytes), '\0');
      for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 37);
      std::string file = npy_bytes(dtype, shape, data);
      EXPECT_EQ((file.size() - data.size()) % 64, 0u);
      auto array = parse_npy(file, "x.npy");
      ASSERT_TRUE(array.ok()) << array.status();
      EXPECT_EQ(array->dtype, dtype);
      EXPECT_EQ(array->shape, shape);
      EXPECT_EQ(array->bytes, data);
    }
  }
}

TEST(Npy, SaysWhatIsWrong) {
  std::string file = npy_bytes(DType::f32, {2}, std::string(8, 'x'));
  auto message = [](std::string bytes) { return std::string(parse_npy(bytes, "x.npy").status().message()); };
  EXPECT_EQ(message("PK"), "x.npy: not a .npy file");
  EXPECT_EQ(message(file.substr(0, file.size() - 1)), "x.npy: the shape needs 8 bytes of data, the file has 7");
  std::string complex = file;
  complex.replace(complex.find("<f4"), 3, "<c8");
  EXPECT_NE(message(complex).find("element type '<c8' is not known"), std::string::npos) << message(complex);
  std::string big = npy_bytes(DType::f32, {1, 2}, std::string(8, 'x'));
  big.replace(big.find("False"), 5, "True ");
  EXPECT_NE(message(big).find("Fortran order"), std::string::npos);
}

// Returns the bytes of numpy.savez_compressed(a=arange(3, dtype=int32), b=float64(2.5)).
std::string npz_sample();

TEST(Npy, DamagedBytesNeverCrash) {
  std::mt19937 rng(3);
  std::string npy = npy_bytes(DType::f32, {2, 3}, std::string(24, 'x'));
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = npy;
    for (unsigned k = 0; k < 1 + rng() % 4; ++k) bytes[rng() % bytes.size()] = static_cast<char>(rng());
    if (rng() % 4 == 0) bytes.resize(rng() % bytes.size());
    (void)parse_npy(bytes, "x");
    std::string zip = npz_sample();
    for (unsigned k = 0; k < 1 + rng() % 4; ++k) zip[rng() % zip.size()] = static_cast<char>(rng());
    if (rng() % 4 == 0) zip.resize(rng() % zip.size());
    (void)parse_npz(zip, "x");
  }
}

std::string number(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value);
  return out;
}

// Returns a zip file with one local entry, which holds `data`, and a directory of `count` entries that all point to it.
std::string same_bytes_again(const std::string& data, int count, uint64_t size, int method) {
  std::string out = "PK\x03\x04" + number(0, 14) + number(data.size(), 4) + number(size, 4) + number(0, 4) + data;
  const size_t directory = out.size();
  for (int i = 0; i < count; ++i) {
    out += "PK\x01\x02" + number(0, 6) + number(static_cast<uint64_t>(method), 2) + number(0, 8) +
           number(data.size(), 4) + number(size, 4) + number(5, 2) + number(0, 12) + number(0, 4) + "a" +
           number(static_cast<uint64_t>('0' + i % 10), 1) + number(static_cast<uint64_t>('0' + i / 10), 1) + "xy";
  }
  out += "PK\x05\x06" + number(0, 6) + number(static_cast<uint64_t>(count), 2) + number(out.size() - directory, 4) +
         number(directory, 4) + number(0, 2);
  return out;
}

// Entries may not share bytes; otherwise a small file could unpack to any size (a zip bomb).
TEST(Npz, EntriesOverTheSameBytesAreRefused) {
  const std::string npy = npy_bytes(DType::f32, {2}, std::string(8, 'x'));
  const auto message = [](const std::string& bytes) { return std::string(parse_npz(bytes, "x").status().message()); };
  EXPECT_EQ(message(same_bytes_again(npy, 1, npy.size(), 0)), "");
  EXPECT_NE(message(same_bytes_again(npy, 2, npy.size(), 0)).find("overlap"), std::string::npos);
  EXPECT_EQ(message(same_bytes_again(npy, 1, npy.size() + 1, 0)),
            "x: the zip entry a00xy says two sizes of the same bytes");
  // 200 entries of 2 GiB each: their sum is refused, although each size is possible by itself.
  const std::string many = message(same_bytes_again(std::string(4 << 20, 'x'), 200, 0x7fffffff, 8));
  EXPECT_NE(many.find("what its zip entries unpack to: has 429496729400 bytes, more than"), std::string::npos) << many;
}

TEST(Npz, ReadsDeflatedArrays) {
  auto arrays = parse_npz(npz_sample(), "w.npz");
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ(arrays->at("a").dtype, DType::i32);
  EXPECT_EQ(arrays->at("a").bytes, std::string("\0\0\0\0\1\0\0\0\2\0\0\0", 12));
  EXPECT_EQ(arrays->at("b").dtype, DType::f64);
  EXPECT_TRUE(arrays->at("b").shape.empty());
}

std::string npz_sample() {
  static constexpr char kBytes[] =
      "\120\113\003\004\024\000\000\000\010\000\000\000\041\000\002\354\275\251\114\000"
      "\000\000\214\000\000\000\005\000\024\000\141\056\156\160\171\001\000\020\000\214"
      "\000\000\000\000\000\000\000\114\000\000\000\000\000\000\000\233\354\027\352\033"
      "\020\311\310\120\306\120\255\236\222\132\234\134\244\156\245\240\156\223\151\242"
      "\256\243\240\236\226\137\124\122\224\230\027\237\137\224\222\012\022\167\113\314"
      "\051\116\005\212\027\147\044\026\244\002\371\032\306\072\232\072\012\265\012\024"
      "\000\056\006\040\140\004\142\046\040\006\000\120\113\003\004\024\000\000\000\010"
      "\000\000\000\041\000\065\264\072\223\107\000\000\000\210\000\000\000\005\000\024"
      "\000\142\056\156\160\171\001\000\020\000\210\000\000\000\000\000\000\000\107\000"
      "\000\000\000\000\000\000\233\354\027\352\033\020\311\310\120\306\120\255\236\222"
      "\132\234\134\244\156\245\240\156\223\146\241\256\243\240\236\226\137\124\122\224"
      "\230\027\237\137\224\222\012\022\167\113\314\051\116\005\212\027\147\044\026\244"
      "\002\371\032\232\072\012\265\012\024\001\056\006\060\140\161\000\000\120\113\001"
      "\002\024\003\024\000\000\000\010\000\000\000\041\000\002\354\275\251\114\000\000"
      "\000\214\000\000\000\005\000\000\000\000\000\000\000\000\000\000\000\200\001\000"
      "\000\000\000\141\056\156\160\171\120\113\001\002\024\003\024\000\000\000\010\000"
      "\000\000\041\000\065\264\072\223\107\000\000\000\210\000\000\000\005\000\000\000"
      "\000\000\000\000\000\000\000\000\200\001\203\000\000\000\142\056\156\160\171\120"
      "\113\005\006\000\000\000\000\002\000\002\000\146\000\000\000\001\001\000\000\000"
      "\000";
  return std::string(kBytes, sizeof kBytes - 1);
}
}  // namespace
}  // namespace wl
