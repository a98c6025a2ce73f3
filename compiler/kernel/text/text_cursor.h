// Reads one line of kernel text from left to right. Every reader leaves the cursor where it stopped, and none reads
// beyond the end of the line, whatever its bytes.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "compiler/base/status.h"

namespace wl {

class TextCursor {
 public:
  explicit TextCursor(std::string_view line) : line_(line) {}

  bool at_end() {
    skip_space();
    return line_.empty();
  }
  // If the line continues with the token (a whole word or punctuation), skips it and returns true; else returns false.
  bool take(std::string_view token) {
    skip_space();
    if (line_.substr(0, token.size()) != token) return false;
    if (is_word(token.back()) && line_.size() > token.size() && is_word(line_[token.size()])) return false;
    line_.remove_prefix(token.size());
    return true;
  }
  // Reads a word; returns "" if no word follows.
  std::string_view word() {
    skip_space();
    size_t n = 0;
    while (n < line_.size() && is_word(line_[n])) ++n;
    const std::string_view result = line_.substr(0, n);
    line_.remove_prefix(n);
    return result;
  }
  char peek() {
    skip_space();
    return line_.empty() ? '\0' : line_[0];
  }
  // rest: the part of the line that has not been read. skip: skips the first n characters of that part.
  std::string_view rest() const { return line_; }
  void skip(size_t n) { line_.remove_prefix(n); }

  absl::Status expect(std::string_view token) {
    return take(token) ? absl::OkStatus() : expected(cat("'", token, "'"));
  }
  absl::Status integer(int64_t& value, int64_t low, int64_t high) {
    skip_space();
    const auto [end, status] = std::from_chars(line_.data(), line_.data() + line_.size(), value);
    if (status != std::errc() || value < low || value > high)
      return expected(cat("an integer from ", low, " to ", high));
    line_.remove_prefix(static_cast<size_t>(end - line_.data()));
    return absl::OkStatus();
  }
  absl::Status number(int& value, int low, int high) {
    int64_t wide = 0;
    WL_RETURN_IF_ERROR(integer(wide, low, high));
    value = static_cast<int>(wide);
    return absl::OkStatus();
  }
  absl::Status real(double& value) {
    skip_space();
    const auto [end, status] = std::from_chars(line_.data(), line_.data() + line_.size(), value);
    if (status != std::errc()) return expected("a number");
    if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
    line_.remove_prefix(static_cast<size_t>(end - line_.data()));
    return absl::OkStatus();
  }
  // Reads a list such as "[1,2,3]".
  absl::Status list(std::vector<int64_t>& values, int64_t low, int64_t high) {
    WL_RETURN_IF_ERROR(expect("["));
    if (take("]")) return absl::OkStatus();
    do {
      WL_RETURN_IF_ERROR(integer(values.emplace_back(), low, high));
    } while (take(","));
    return expect("]");
  }
  absl::Status expected(std::string_view what) {
    skip_space();
    std::string found(line_.substr(0, 24));
    for (char& c : found)
      if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
    return invalid("expected ", what, ", found ", found.empty() ? "the end of the line" : cat("'", found, "'"));
  }

  static bool is_word(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

 private:
  void skip_space() {
    while (!line_.empty() && (line_[0] == ' ' || line_[0] == '\t' || line_[0] == '\r')) line_.remove_prefix(1);
  }
  std::string_view line_;
};

// The shortest text that reads back as the same number.
inline std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  char buffer[40];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

}  // namespace wl
