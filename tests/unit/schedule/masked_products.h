// Random products with conditions on coordinates: triangular, banded and masked factors and results.
#pragma once

#include <string>

#include "compiler/base/splitmix.h"
#include "compiler/base/status.h"

namespace wl::testing {

class MaskedProductText {
 public:
  // Draws a product in which at least one factor or the result has a mask. Sizes leave partial tiles. Some right
  // factors are in panels, as weights are, and have no mask. `dtype`: "" for any; `depth`: 0 for any.
  explicit MaskedProductText(uint64_t seed, const char* dtype = "", int64_t depth = 0) : state_(seed * kGolden + 5) {
    for (char letter : {'m', 'n', 'k'}) extent(letter) = 2 + below(69);
    if (below(3) == 0) extent('m') = extent('k') = extent('n');
    if (depth != 0) extent('k') = depth;
    extent('b') = 1 + below(3);
    extent('p') = 1 + below(2);
    extent('q') = below(2) == 0 ? 32 : 3 + below(60);
    dtype_ = *dtype != '\0' ? dtype : below(8) == 0 ? "f64" : below(8) == 0 ? "f16" : "f32";
    const bool panels = below(4) == 0, sideways = below(2) == 0;
    const std::string b = !panels && below(3) == 0 ? "b" : "", right = below(3) == 0 ? "" : b;
    const std::string left = b + (below(4) == 0 ? "km" : "mk");
    const std::string other = panels ? "pkq" : right + (below(4) == 0 ? "nk" : "kn");
    const std::string out = !panels ? b + "mn" : sideways ? "pqm" : "mpq";
    const int64_t which = 1 + below(7);  // bits: 1 masks the left factor, 2 the right factor, 4 the result
    const int a = masked(input("a", left), left, (which & 1) != 0 || (panels && which == 2));
    const int c = masked(input("c", other), other, (which & 2) != 0 && !panels);
    const int product = add(cat("contract %", a, " %", c, " \"", left, ",", other, "->", out, "\""), out);
    const int result = masked(product, out, (which & 4) != 0, below(3) == 0 ? "-1e9" : "0");
    text_ = cat("graph {\n", text_, "  output \"y\" %", result, "\n}");
  }
  const std::string& text() const { return text_; }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(split_mix(state_) % static_cast<uint64_t>(n)); }
  int64_t& extent(char letter) { return extents_[letter - 'a']; }
  std::string type(const std::string& dtype, const std::string& letters) {
    std::string out = dtype + "[";
    for (size_t i = 0; i < letters.size(); ++i) append(&out, i == 0 ? "" : ",", extent(letters[i]));
    return out + "]";
  }
  int add(const std::string& value, const std::string& letters, const std::string& dtype = "") {
    append(&text_, "  %", next_, " = ", value, " : ", type(dtype.empty() ? dtype_ : dtype, letters), "\n");
    return next_++;
  }
  int input(const std::string& name, const std::string& letters) { return add(cat("input \"", name, "\""), letters); }

  // Adds a node that compares two coordinates of an element, or a coordinate with a constant. Returns its number.
  int condition(const std::string& letters, const std::string& places) {
    const auto axis = [&](char letter) { return letters.find(letter); };
    const char first = places[below(2)], second = first == places[0] ? places[1] : places[0];
    int value = add(cat("iota axis=[", axis(first), "]"), letters, "i64");
    if (below(5) == 0) {
      const int twice = add("constant 2", letters, "i64");
      value = add(cat("mul %", value, " %", twice), letters, "i64");
    }
    if (below(6) != 0) {
      const int other = add(cat("iota axis=[", axis(second), "]"), letters, "i64");
      value = add(cat("sub %", value, " %", other), letters, "i64");
    }
    const int64_t reach = extent(first) / 2 + 1;
    const int number = add(cat("constant ", below(2 * reach) - reach / 2), letters, "i64");
    static constexpr const char* kOps[] = {"ge", "gt", "le", "lt", "ge", "le", "eq", "ne"};
    return add(cat(kOps[below(8)], " %", value, " %", number), letters, "b1");
  }

  int masked(int value, const std::string& letters, bool really, const std::string& otherwise = "0") {
    if (!really) return value;
    const std::string places = letters.substr(letters.size() - 2);
    int mask = condition(letters, places);
    if (below(3) == 0) {
      const int more = condition(letters, places);
      mask = add(cat(below(4) == 0 ? "logical_or %" : "logical_and %", mask, " %", more), letters, "b1");
    }
    if (below(4) == 0) mask = add(cat("logical_not %", mask), letters, "b1");
    if (below(3) == 0 && otherwise == "0") {
      const int factor = add(cat("cast %", mask), letters);
      return add(cat("mul %", value, " %", factor), letters);
    }
    const int constant = add("constant " + otherwise, letters);
    return add(below(2) == 0 ? cat("select %", mask, " %", value, " %", constant)
                             : cat("select %", mask, " %", constant, " %", value),
               letters);
  }

  uint64_t state_;
  int64_t extents_[26] = {};
  std::string dtype_, text_;
  int next_ = 0;
};

inline std::string random_masked_product(uint64_t seed) {
  return MaskedProductText(seed).text();
}

}  // namespace wl::testing
