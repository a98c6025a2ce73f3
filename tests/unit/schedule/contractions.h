// Random groups around one contraction: with any order of axes, with batches, and with elementwise work on operands and
// result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/splitmix.h"
#include "compiler/base/status.h"

namespace wl::testing {

class ContractionText {
 public:
  // `most`: about the largest number of multiplications of the contraction. `dtype`: the operands' dtype; "": any.
  ContractionText(uint64_t seed, int64_t most, const char* dtype = "") : state_(seed * kGolden + 1) {
    static constexpr int64_t kExtents[] = {1, 2, 3, 5, 8, 16, 17, 24, 33, 40, 64, 70, 128, 131};
    int64_t products = 1;
    const auto axes = [&](const std::string& letters, uint64_t least, uint64_t count) {
      std::string taken = letters.substr(0, least + draw(count));
      for (char letter : taken) {
        int64_t extent = kExtents[draw(std::size(kExtents))];
        while (products * extent > most) extent = std::max<int64_t>(1, extent / 3);
        products *= extent;
        extents_[letter - 'a'] = extent;
      }
      return taken;
    };
    const std::string m = axes("mp", 1, draw(4) == 0 ? 2 : 1), n = axes("nq", 1, draw(4) == 0 ? 2 : 1),
                      k = axes("kl", 1, draw(3) == 0 ? 2 : 1), batch = axes("bc", 0, draw(2) == 0 ? 3 : 1);
    dtype_ = draw(4) == 0 ? (draw(2) == 0 ? "f16" : "bf16") : draw(12) == 0 ? "f64" : "f32";
    if (*dtype != '\0') dtype_ = dtype;
    const std::string a = shuffled(batch + m + k), b = shuffled(batch + n + k);
    const std::string out = draw(3) == 0 ? shuffled(batch + m + n) : batch + m + n;
    const int left = prologue(input("a", a), a), right = prologue(input("b", b), b);
    if ((dtype_ == "f16" || dtype_ == "bf16") && draw(3) == 0) dtype_ = "f32";  // narrow floats with an f32 result
    int value = add(cat("contract %", left, " %", right, " \"", a, ",", b, "->", out, "\""), out);
    if (draw(2) == 0) {  // adds a bias to the result
      const char along = out[draw(out.size())];
      const int bias = input("bias", std::string(1, along));
      const int spread = add(cat("broadcast %", bias, " dims=[", out.find(along), "]"), out);
      value = add(cat("add %", value, " %", spread), out);
    }
    if (draw(2) == 0) value = add(cat(draw(2) == 0 ? "erf" : "tanh", " %", value), out);
    if (draw(3) == 0) value = add(cat("add %", value, " %", input("residual", out)), out);
    text_ = cat("graph {\n", text_, "  output \"y\" %", value, "\n}");
  }
  const std::string& text() const { return text_; }

 private:
  uint64_t draw(uint64_t n) { return split_mix(state_) % n; }
  std::string shuffled(std::string letters) {
    for (size_t i = letters.size(); i > 1; --i) std::swap(letters[i - 1], letters[draw(i)]);
    return letters;
  }
  std::string type(const std::string& letters) const {
    std::string out = cat(dtype_, "[");
    for (size_t i = 0; i < letters.size(); ++i) append(&out, i == 0 ? "" : ",", extents_[letters[i] - 'a']);
    return out + "]";
  }
  int add(const std::string& value, const std::string& letters) {
    append(&text_, "  %", next_, " = ", value, " : ", type(letters), "\n");
    return next_++;
  }
  int input(const std::string& name, const std::string& letters) {
    append(&text_, "  %", next_, " = input \"", name, "\" : ", type(letters), " normal(0,1)\n");
    return next_++;
  }
  int prologue(int value, const std::string& letters) {
    if (draw(4) != 0) return value;
    return add(cat(draw(2) == 0 ? "abs" : "tanh", " %", value), letters);
  }

  uint64_t state_;
  int64_t extents_[26] = {};
  std::string dtype_, text_;
  int next_ = 0;
};

}  // namespace wl::testing
