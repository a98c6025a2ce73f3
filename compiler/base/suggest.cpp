#include "compiler/base/suggest.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_split.h"
#include "compiler/base/status.h"

namespace wl {

// Computes the optimal string alignment distance by dynamic programming. Row i has the distances from the first i
// letters of `a` to every prefix of `b`; only the current row and the two rows before it are kept.
int edit_distance(std::string_view a, std::string_view b) {
  std::array<std::vector<int>, 3> rows;
  for (std::vector<int>& row : rows) row.resize(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<int>&now = rows[i % 3], &before = rows[(i + 2) % 3], &two_before = rows[(i + 1) % 3];
    now[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({before[j] + 1, now[j - 1] + 1, before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], two_before[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

namespace {

int farthest(std::string_view word) {
  return std::max(1, static_cast<int>(word.size()) / 3);
}

bool are_near(std::string_view word, std::string_view name) {
  const int distance = edit_distance(word, name);
  return distance == 0 || (distance <= farthest(word) && distance < static_cast<int>(name.size()));
}

bool have_near_words(std::string_view a, std::string_view b) {
  const std::vector<absl::string_view> from = absl::StrSplit(absl::string_view(a.data(), a.size()), '-');
  const std::vector<absl::string_view> to = absl::StrSplit(absl::string_view(b.data(), b.size()), '-');
  return from.size() != to.size() || std::equal(from.begin(), from.end(), to.begin(), [](auto word, auto name) {
           return are_near({word.data(), word.size()}, {name.data(), name.size()});
         });
}

}  // namespace

std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  // Number of letters of the longest names that are compared; nobody types longer names by hand.
  constexpr size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return "";
  int least = farthest(word) + 1;
  const std::string* nearest = nullptr;
  for (const std::string& name : names) {
    if (name.size() > kLongest || name == word) continue;
    const int distance = edit_distance(word, name);
    if (distance >= least || distance >= static_cast<int>(name.size()) || !have_near_words(word, name)) continue;
    least = distance;
    nearest = &name;
  }
  return nearest == nullptr ? "" : cat(" (did you mean ", *nearest, "?)");
}

}  // namespace wl
