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

constexpr int kWidth = 150, kHeight = 34, kGap = 24, kRow = 64, kMargin = 20;
// The distance in pixels between the lanes in which lines run to the right of a column of boxes, and the number of
// lanes.
constexpr int kLane = 6, kLanes = 3;

struct Box {
  int column = 0, row = 0;
  int x() const { return kMargin + column * (kWidth + kGap); }
  int y() const { return kMargin + row * kRow; }
};

// The hues of consecutive groups differ by the golden angle, so that neighbours are easy to tell apart.
std::string colour(size_t group) {
  return absl::StrFormat("hsl(%d,70%%,80%%)", static_cast<int>(group * 137 % 360));
}

// Returns the path of a line from the bottom of one box to the top of another. A line that passes other rows goes down
// in a lane beside the boxes, to the right of the column in which the line starts.
std::string line_between(const Box& from, const Box& to, int lane) {
  const int x = from.x() + kWidth / 2, below = from.y() + kHeight, end = to.x() + kWidth / 2;
  if (to.row == from.row + 1) return absl::StrFormat("M%d %d L%d %d", x, below, end, to.y());
  const int beside = from.x() + kWidth + kLane * (1 + lane % kLanes), bend = (kRow - kHeight) / 2;
  return absl::StrFormat("M%d %d V%d H%d V%d H%d V%d", x, below, below + bend - kLane, beside, to.y() - bend + kLane,
                         end, to.y());
}

}  // namespace

std::string themed(std::string picture) {
  constexpr std::string_view kStyle =
      "<style>@media(prefers-color-scheme:dark){.wl-in{stroke:#bbb}.wl-between{stroke:#f88}.wl-box{stroke:#ddd}}"
      "</style>\n";
  picture.insert(picture.find('\n') + 1, kStyle);
  return picture;
}

std::string picture_of(const CoverValues& values, const Cover& cover) {
  std::map<NodeId, std::vector<size_t>> groups;
  for (size_t g = 0; g < cover.groups.size(); ++g)
    for (NodeId op : cover.groups[g].ops)
      if (values.anchor_behind(op) == op) groups[op].push_back(g);
  std::map<NodeId, int> depth;
  std::map<NodeId, Box> boxes;
  std::vector<int> filled;  // number of boxes so far in each row of the picture
  for (NodeId op : values.anchors()) {
    int row = 0;
    for (NodeId source : values.sources(op)) row = std::max(row, depth[source] + 1);
    depth[op] = row;
    if (filled.size() <= static_cast<size_t>(row)) filled.resize(static_cast<size_t>(row) + 1, 0);
    boxes[op] = {filled[row]++, row};
  }
  const int columns = filled.empty() ? 0 : *std::max_element(filled.begin(), filled.end());
  std::string out = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n",
      2 * kMargin + columns * (kWidth + kGap), 2 * kMargin + static_cast<int>(filled.size()) * kRow);
  std::map<int, int> lanes;  // of each column of boxes: the number of lanes taken beside it
  for (NodeId op : values.anchors())
    for (NodeId source : values.sources(op)) {
      const Box& from = boxes[source];
      const int lane = boxes[op].row > from.row + 1 ? lanes[from.column]++ : 0;
      const bool inside = groups[source] == groups[op];
      absl::StrAppendFormat(&out, "<path class=\"%s\" fill=\"none\" stroke=\"%s\" d=\"%s\"/>\n",
                            inside ? "wl-in" : "wl-between", inside ? "#555" : "#c33",
                            line_between(from, boxes[op], lane));
    }
  for (NodeId op : values.anchors()) {
    const Box& box = boxes[op];
    const Node& node = values.graph().nodes[op];
    const std::vector<size_t>& mine = groups[op];
    absl::StrAppendFormat(
        &out,
        "<rect class=\"wl-box\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" stroke=\"#333\"/>\n",
        box.x(), box.y(), kWidth, kHeight, colour(mine.empty() ? 0 : mine[0]));
    absl::StrAppendFormat(&out, "<text x=\"%d\" y=\"%d\">%%%d %s</text>\n<text x=\"%d\" y=\"%d\">%s</text>\n",
                          box.x() + 6, box.y() + 14, op, std::string(name_of(node.op)), box.x() + 6, box.y() + 28,
                          cat("g", absl::StrJoin(mine, " g"), " ", type_text(node.dtype, node.shape)));
  }
  return out + "</svg>\n";
}

}  // namespace wl
