// Aligned columns for terminals, and the decision whether to use colour.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wl {

struct TableColumn {
  std::string title;
  bool right = false;  // whether the column is aligned right, as numbers are
};

class Table {
 public:
  Table(std::vector<TableColumn> columns, bool colour) : columns_(std::move(columns)), colour_(colour) {}
  void add(std::vector<std::string> cells);
  void rule();  // adds a horizontal line to the table
  std::string text() const;

 private:
  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;  // rows of cells; an empty row is a horizontal line
  bool colour_;
};

inline constexpr const char* kBold = "\x1b[1m";
inline constexpr const char* kDim = "\x1b[2m";
inline constexpr const char* kGreen = "\x1b[32m";
inline constexpr const char* kRed = "\x1b[31m";
inline constexpr const char* kPlain = "\x1b[0m";

// Whether a file descriptor is a terminal that shows colour: not if NO_COLOR (no-color.org) is set or TERM is "dumb".
bool wants_colour(int fd);

// Returns the number of terminal columns of the text: a UTF-8 sequence counts once.
size_t width_of(std::string_view text);

}  // namespace wl
