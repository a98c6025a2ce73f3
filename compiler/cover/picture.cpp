#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/cover/cover.h"
#include "compiler/cover/explain.h"
#include "compiler/cover/values.h"

namespace wl {
namespace {

constexpr int kWidth = 176, kGap = 24, kMargin = 20;
constexpr int kLine = 14, kPad = 6;  // heights in pixels: a line of text, and a box (an op's rectangle) without lines
constexpr int kBetween = 30;         // pixels between two rows of boxes
// The distance in pixels between the lanes in which lines run to the right of a column of boxes, and the number of
// lanes.
constexpr int kLane = 6, kLanes = 3;

struct Row {
  int boxes = 0, lines = 2;  // number of boxes in the row, and of lines of text for which each box has room
  int top = 0;
  int bottom() const { return top + kPad + lines * kLine; }
};

struct Box {
  int column = 0, row = 0;
  int x() const { return kMargin + column * (kWidth + kGap); }
};

// The hues of consecutive groups differ by the golden angle, so that neighbours are easy to tell apart. Boxes are
// translucent, so their colours suit light and dark pages.
int hue(size_t group) {
  return static_cast<int>(group * 137 % 360);
}

class Picture {
 public:
  Picture(const CoverValues& values, const Cover& cover, const std::vector<std::string>& prices)
      : values_(values), prices_(prices) {
    for (size_t g = 0; g < cover.groups.size(); ++g) {
      bool first = true;
      for (NodeId op : cover.groups[g].ops) {
        if (values.anchor_behind(op) != op) continue;
        groups_[op].push_back(g);
        if (first) begun_[op].push_back(g);
        first = false;
      }
    }
    place();
  }

  std::string text() {
    int columns = 0;
    for (const Row& row : rows_) columns = std::max(columns, row.boxes);
    std::string out = absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"wl-picture\" width=\"%d\" height=\"%d\" fill=\"#1c2024\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n",
        2 * kMargin + columns * (kWidth + kGap), rows_.empty() ? 2 * kMargin : rows_.back().bottom() + kMargin);
    std::map<int, int> lanes;  // of each column of boxes: the number of lanes taken beside it
    for (NodeId op : values_.anchors())
      for (NodeId source : values_.sources(op)) {
        const Box& from = boxes_[source];
        const int lane = boxes_[op].row > from.row + 1 ? lanes[from.column]++ : 0;
        const bool inside = groups_[source] == groups_[op];
        absl::StrAppendFormat(&out, "<path class=\"%s\" fill=\"none\" stroke=\"%s\" d=\"%s\"/>\n",
                              inside ? "wl-in" : "wl-between", inside ? "#555" : "#c33",
                              line_between(from, boxes_[op], lane));
      }
    for (NodeId op : values_.anchors()) draw_box(op, &out);
    return out + "</svg>\n";
  }

 private:
  // Puts each op one row below the lowest of the ops that it reads.
  void place() {
    for (NodeId op : values_.anchors()) {
      int row = 0;
      for (NodeId source : values_.sources(op)) row = std::max(row, boxes_[source].row + 1);
      if (rows_.size() <= static_cast<size_t>(row)) rows_.resize(static_cast<size_t>(row) + 1);
      boxes_[op] = {rows_[row].boxes++, row};
      rows_[row].lines = std::max(rows_[row].lines, 2 + static_cast<int>(begun_[op].size()));
    }
    int top = kMargin;
    for (Row& row : rows_) {
      row.top = top;
      top = row.bottom() + kBetween;
    }
  }

  // Returns the path of a line from the bottom of one box to the top of another. A line that passes other rows goes
  // down in a lane beside the boxes, to the right of the column in which the line starts.
  std::string line_between(const Box& from, const Box& to, int lane) const {
    const int x = from.x() + kWidth / 2, below = rows_[from.row].bottom(), end = to.x() + kWidth / 2;
    const int above = rows_[to.row].top;
    if (to.row == from.row + 1) return absl::StrFormat("M%d %d L%d %d", x, below, end, above);
    const int beside = from.x() + kWidth + kLane * (1 + lane % kLanes), bend = kBetween / 2 - kLane;
    return absl::StrFormat("M%d %d V%d H%d V%d H%d V%d", x, below, below + bend, beside, above - bend, end, above);
  }

  void draw_box(NodeId op, std::string* out) {
    const Box& box = boxes_[op];
    const Row& row = rows_[box.row];
    const Node& node = values_.graph().nodes[op];
    const std::vector<size_t>& mine = groups_[op];
    absl::StrAppendFormat(out,
                          "<rect class=\"wl-box\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" "
                          "fill=\"hsl(%d,70%%,50%%)\" fill-opacity=\".35\" stroke=\"#333\"/>\n",
                          box.x(), row.top, kWidth, row.bottom() - row.top, hue(mine.empty() ? 0 : mine[0]));
    std::vector<std::string> lines = {cat("%", op, " ", name_of(node.op)),
                                      cat("g", absl::StrJoin(mine, " g"), " ", type_text(node.dtype, node.shape))};
    for (size_t g : begun_[op]) lines.push_back(cat("g", g, ": ", prices_[g]));
    int y = row.top;
    for (const std::string& line : lines)
      absl::StrAppendFormat(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", box.x() + 6, y += kLine, line);
  }

  const CoverValues& values_;
  const std::vector<std::string>& prices_;
  std::map<NodeId, std::vector<size_t>> groups_;  // of each op: the groups that compute it
  std::map<NodeId, std::vector<size_t>> begun_;   // of each op: the groups of which it is the first op (box)
  std::map<NodeId, Box> boxes_;
  std::vector<Row> rows_;
};

}  // namespace

std::string themed(std::string picture) {
  constexpr std::string_view kStyle =
      "<style>@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark}.wl-picture{fill:#e6eaee}"
      ".wl-in{stroke:#bbb}.wl-between{stroke:#f88}.wl-box{stroke:#999}}</style>\n";
  picture.insert(picture.find('\n') + 1, kStyle);
  return picture;
}

std::string picture_of(const CoverValues& values, const Cover& cover, const std::vector<std::string>& prices) {
  return Picture(values, cover, prices).text();
}

}  // namespace wl
