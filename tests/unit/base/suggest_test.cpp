#include "compiler/base/suggest.h"

#include <gtest/gtest.h>

namespace wl {
namespace {

TEST(Suggest, DistancesCountLettersAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("abc", "abc"), 0);
  EXPECT_EQ(edit_distance("btch", "batch"), 1);
  EXPECT_EQ(edit_distance("batchh", "batch"), 1);
  EXPECT_EQ(edit_distance("botch", "batch"), 1);
  EXPECT_EQ(edit_distance("triasl", "trials"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Suggest, NamesTheNearestOrNone) {
  const std::vector<std::string> commands = {"tune", "run", "top", "inspect", "targets"};
  EXPECT_EQ(suggestion("tun", commands), " (did you mean tune?)");
  EXPECT_EQ(suggestion("inpsect", commands), " (did you mean inspect?)");
  EXPECT_EQ(suggestion("rn", commands), " (did you mean run?)");
  EXPECT_EQ(suggestion("banana", {"cpu:avx2", "cuda:sm_90", "cpu"}), "");
  EXPECT_EQ(suggestion("cpu:avx521", {"cpu:avx2", "cpu:avx512", "cpu:avx512_vnni"}), " (did you mean cpu:avx512?)");
  EXPECT_EQ(suggestion("--triasl", {"--trace", "--trials"}), " (did you mean --trials?)");
  EXPECT_EQ(suggestion("--no-revrify", {"--no-reverify"}), " (did you mean --no-reverify?)");
  EXPECT_EQ(suggestion("--allow-fp8", {"--allow-tf32"}), "") << "another word with as many hyphens";
  EXPECT_EQ(suggestion("x", {"y"}), "") << "no letter of it is right";
  EXPECT_EQ(suggestion("", commands), "");
  EXPECT_EQ(suggestion(std::string(1 << 20, 't'), commands), "");
  struct Row {
    std::string_view name;
  };
  EXPECT_EQ(suggestion_of("portfolo", std::vector<Row>{{"random"}, {"portfolio"}}), " (did you mean portfolio?)");
}

}  // namespace
}  // namespace wl
