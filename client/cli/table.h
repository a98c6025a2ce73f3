// Aligned columns for terminals, and whether to use colour.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wl {

struct TableColumn {
  std::string title;
  bool right = false;  // numbers align at the right
};

class Table {
 public:
  Table(std::vector<TableColumn> columns, bool colour) : columns_(std::move(columns)), colour_(colour) {}
  void add(std::vector<std::string> cells);
  void rule();  // a line across
  std::string text() const;

 private:
  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
  bool colour_;
};

inline constexpr const char* kBold = "\x1b[1m";
inline constexpr const char* kDim = "\x1b[2m";
inline constexpr const char* kGreen = "\x1b[32m";
inline constexpr const char* kRed = "\x1b[31m";
inline constexpr const char* kPlain = "\x1b[0m";

// Whether the descriptor is a terminal that wants colour: NO_COLOR (no-color.org) and TERM=dumb are respected.
bool wants_colour(int fd);

// Characters that the text takes on a terminal: UTF-8 sequences count once.
size_t width_of(std::string_view text);

}  // namespace wl
