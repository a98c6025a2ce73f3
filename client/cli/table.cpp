#include "client/cli/table.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace wl {

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::rule() {
  rows_.emplace_back();
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(width_of(columns_[c].title));
    for (const auto& row : rows_) {
      if (!row.empty()) widths[c] = std::max(widths[c], width_of(row[c]));
    }
  }
  std::string out;
  auto line = [&](const std::vector<std::string>& cells, const char* style) {
    std::string text;
    for (size_t c = 0; c < cells.size(); ++c) {
      std::string space(widths[c] - width_of(cells[c]), ' ');
      if (c > 0) text += "  ";
      text += columns_[c].right ? space + cells[c] : cells[c] + space;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += (colour_ ? style : "") + text + (colour_ && *style ? kPlain : "") + "\n";
  };
  std::vector<std::string> titles;
  for (const TableColumn& column : columns_) titles.push_back(column.title);
  line(titles, kBold);
  size_t total = 2 * (columns_.size() - 1);
  for (size_t width : widths) total += width;
  for (const auto& row : rows_) {
    if (row.empty()) {
      out += (colour_ ? kDim : "") + std::string(total, '-') + (colour_ ? kPlain : "") + "\n";
    } else {
      line(row, "");
    }
  }
  return out;
}

bool wants_colour(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  return isatty(fd) && (term == nullptr || std::strcmp(term, "dumb") != 0);
}

size_t width_of(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace wl
