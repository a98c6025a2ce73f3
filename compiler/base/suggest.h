// What somebody may have meant who wrote a name that there is none of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wl {

// How many letters have to be changed, left out, put in or swapped with a neighbour to make one text of the other.
int edit_distance(std::string_view a, std::string_view b);

// " (did you mean NAME?)" with the name that is nearest to `word`, the first of several; "" when none is near: at most
// a third of the letters of `word`, and at least one, may be wrong.
std::string suggestion(std::string_view word, const std::vector<std::string>& names);

// The same for a table whose rows have a name.
template <typename Rows>
std::string suggestion_of(std::string_view word, const Rows& rows, std::vector<std::string> more = {}) {
  for (const auto& row : rows) more.emplace_back(row.name);
  return suggestion(word, more);
}

}  // namespace wl
