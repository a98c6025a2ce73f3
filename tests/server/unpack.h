// Unpacks a gzip file that an older Warploom wrote, from tests/data/made_before.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <string>

namespace wl {

inline void unpack(const std::string& from, const std::string& to) {
  const gzFile in = gzopen(from.c_str(), "rb");
  ASSERT_NE(in, nullptr) << from;
  std::ofstream out(to, std::ios::binary);
  std::string bytes(1 << 16, 0);
  int n = 0;
  while ((n = gzread(in, bytes.data(), static_cast<unsigned>(bytes.size()))) > 0) out.write(bytes.data(), n);
  EXPECT_EQ(gzclose(in), Z_OK);
}

}  // namespace wl
