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

constexpr int kWidth = 150, kHeight = 34, kGap = 14, kRow = 64, kMargin = 20;

struct Box {
  int x = 0, y = 0;
};

// Consecutive groups get hues that are far apart: steps of the golden angle.
std::string colour(size_t group) {
  return absl::StrFormat("hsl(%d,70%%,80%%)", static_cast<int>(group * 137 % 360));
}

}  // namespace

std::string picture_of(const CoverValues& values, const Cover& cover) {
  std::map<NodeId, std::vector<size_t>> groups;
  for (size_t g = 0; g < cover.groups.size(); ++g)
    for (NodeId op : cover.groups[g].ops)
      if (values.anchor_behind(op) == op) groups[op].push_back(g);
  std::map<NodeId, int> depth;
  std::map<NodeId, Box> boxes;
  std::vector<int> filled;  // boxes in each row
  for (NodeId op : values.anchors()) {
    int row = 0;
    for (NodeId source : values.sources(op)) row = std::max(row, depth[source] + 1);
    depth[op] = row;
    if (filled.size() <= static_cast<size_t>(row)) filled.resize(static_cast<size_t>(row) + 1, 0);
    boxes[op] = {kMargin + filled[row]++ * (kWidth + kGap), kMargin + row * kRow};
  }
  const int columns = filled.empty() ? 0 : *std::max_element(filled.begin(), filled.end());
  std::string out = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n",
      2 * kMargin + columns * (kWidth + kGap), 2 * kMargin + static_cast<int>(filled.size()) * kRow);
  for (NodeId op : values.anchors())
    for (NodeId source : values.sources(op))
      absl::StrAppendFormat(&out, "<path d=\"M%d %d L%d %d\" stroke=\"%s\"/>\n", boxes[source].x + kWidth / 2,
                            boxes[source].y + kHeight, boxes[op].x + kWidth / 2, boxes[op].y,
                            groups[source] == groups[op] ? "#555" : "#c33");
  for (NodeId op : values.anchors()) {
    const Box& box = boxes[op];
    const Node& node = values.graph().nodes[op];
    const std::vector<size_t>& mine = groups[op];
    absl::StrAppendFormat(&out,
                          "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" stroke=\"#333\"/>\n",
                          box.x, box.y, kWidth, kHeight, colour(mine.empty() ? 0 : mine[0]));
    absl::StrAppendFormat(&out, "<text x=\"%d\" y=\"%d\">%%%d %s</text>\n<text x=\"%d\" y=\"%d\">%s</text>\n",
                          box.x + 6, box.y + 14, op, std::string(name_of(node.op)), box.x + 6, box.y + 28,
                          cat("g", absl::StrJoin(mine, " g"), " ", type_text(node.dtype, node.shape)));
  }
  return out + "</svg>\n";
}

}  // namespace wl
