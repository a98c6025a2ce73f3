// Suggests the known name that was probably meant where somebody wrote an unknown name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wl {

// Returns the least number of edits that turn `a` into `b`. An edit changes, removes or inserts a letter, or swaps
// two neighbouring letters.
int edit_distance(std::string_view a, std::string_view b);

// Returns " (did you mean NAME?)" with the name nearest to `word` (the first one, if several are equally near), or ""
// if no name is near. A name is near if its edit distance to `word` is less than the length of the name and at most a
// third of the length of `word` (at most 1 if `word` has fewer than three letters). If both have equally many words
// between hyphens, each word of the name must also be near to the corresponding one of `word`: "--allow-fp8" is not
// near "--allow-tf32".
std::string suggestion(std::string_view word, const std::vector<std::string>& names);

// Returns suggestion() for `word` among the names of all rows in the table `rows` and the names in `more`.
template <typename Rows>
std::string suggestion_of(std::string_view word, const Rows& rows, std::vector<std::string> more = {}) {
  for (const auto& row : rows) more.emplace_back(row.name);
  return suggestion(word, more);
}

}  // namespace wl
