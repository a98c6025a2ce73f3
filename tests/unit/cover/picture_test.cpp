// The picture of a cover: where its lines run, and which numbers of the explanation it has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler/cover/cover.h"
#include "compiler/cover/explain.h"
#include "compiler/import/import.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "tests/unit/domain/domain_testing.h"
#include "tests/unit/file_text.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

struct Corner {
  int x, y;
};
struct Box {
  int left, top, right, bottom;
  // Returns whether the line from `a` to `b` has points inside this box. The box's edges do not count as inside.
  bool is_crossed(Corner a, Corner b) const {
    constexpr int kSteps = 200;
    for (int i = 0; i <= kSteps; ++i) {
      const double x = a.x + (b.x - a.x) * i / double{kSteps}, y = a.y + (b.y - a.y) * i / double{kSteps};
      if (x > left && x < right && y > top && y < bottom) return true;
    }
    return false;
  }
};

std::vector<std::string> pieces(const std::string& text, char separator) {
  return absl::StrSplit(text, separator);
}

std::vector<Box> boxes_of(const std::string& picture) {
  std::vector<Box> boxes;
  for (const std::string& line : pieces(picture, '\n')) {
    int x = 0, y = 0, width = 0, height = 0;
    const char* format = "<rect class=\"wl-box\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"";
    if (std::sscanf(line.c_str(), format, &x, &y, &width, &height) == 4) boxes.push_back({x, y, x + width, y + height});
  }
  return boxes;
}

// Returns the corners of every line of a picture.
std::vector<std::vector<Corner>> lines_of(const std::string& picture) {
  std::vector<std::vector<Corner>> lines;
  for (const std::string& line : pieces(picture, '\n')) {
    const size_t path = line.find(" d=\"M");
    if (path == std::string::npos) continue;
    std::vector<Corner>& points = lines.emplace_back();
    for (const std::string& step : pieces(line.substr(path + 4, line.find('"', path + 4) - path - 4), ' ')) {
      // "M1", "2" and "L3", "4" are points; "V5" and "H6" change one coordinate.
      const bool letter = std::isalpha(static_cast<unsigned char>(step[0])) != 0;
      const int at = std::stoi(letter ? step.substr(1) : step);
      if (!letter)
        points.back().y = at;
      else if (step[0] == 'V')
        points.push_back({points.back().x, at});
      else if (step[0] == 'H')
        points.push_back({at, points.back().y});
      else
        points.push_back({at, 0});
    }
  }
  return lines;
}

Graph bert() {
  return simplify(import_onnx(testing::file_text(WARPLOOM_SOURCE_DIR "/tests/data/bert_base_layer_b1_s512.onnx"))
                      .value()
                      .graph)
      .value();
}

// Returns a graph whose picture has lines, from two columns, that skip one, two and three rows.
Graph residual() {
  return parse(R"(graph {
  %0 = input "x" : f32[64,64] normal(0,1)
  %1 = input "w" : f32[64,64] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[64,64]
  %3 = contract %1 %0 "mk,kn->mn" : f32[64,64]
  %4 = exp %2 : f32[64,64]
  %5 = contract %4 %3 "mk,kn->mn" : f32[64,64]
  %6 = add %5 %2 : f32[64,64]
  %7 = contract %6 %3 "mk,kn->mn" : f32[64,64]
  %8 = add %7 %6 : f32[64,64]
  %9 = add %8 %4 : f32[64,64]
  output "y" %9
})")
      .value();
}

TEST(Picture, LinesRunBesideBoxes) {
  for (const Graph& graph : {residual(), bert()}) {
    const Cover cover = cover_one_per_op(graph, test_machine()).value();
    const std::string picture = explain(graph, cover, test_machine()).value().picture;
    const std::vector<Box> boxes = boxes_of(picture);
    const auto lines = lines_of(picture);
    ASSERT_GT(boxes.size(), 7u) << picture;
    size_t bent = 0;
    for (const auto& line : lines) {
      ASSERT_GE(line.size(), 2u) << picture;
      bent += line.size() > 2 ? 1 : 0;
      for (size_t i = 1; i < line.size(); ++i)
        for (const Box& box : boxes)
          EXPECT_FALSE(box.is_crossed(line[i - 1], line[i]))
              << "a line to " << line.back().x << " " << line.back().y << " crosses the box at " << box.left << " "
              << box.top << "\n"
              << picture;
    }
    EXPECT_GE(bent, 3u) << "no value skips a row:\n" << picture;
  }
}

TEST(Picture, HasTheNumbersOfTheText) {
  const Graph graph = bert();
  for (const Cover& cover :
       {cover_one_per_op(graph, test_machine()).value(), cover_greedy(graph, test_machine()).value()}) {
    const CoverExplanation made = explain(graph, cover, test_machine()).value();
    size_t group = 0;
    for (const std::string& line : pieces(made.text, '\n')) {
      // "  fused: 1.573 MB in 12.3 us; as 3 kernels ..." or "  alone: 1.573 MB in 12.3 us"
      if (!line.starts_with("  fused: ") && !line.starts_with("  alone: ")) continue;
      const std::string price = line.substr(9, line.find(';') - 9);
      EXPECT_THAT(price, ::testing::ContainsRegex("^[0-9.]+ MB in [0-9.]+ us$"));
      EXPECT_THAT(made.picture, HasSubstr(cat(">g", group, ": ", price, "</text>")));
      ++group;
    }
    EXPECT_EQ(group, cover.groups.size()) << made.text;
  }
}

TEST(Picture, OfAFileFollowsTheThemeOfTheScreen) {
  const Graph graph = residual();
  const std::string drawn = explain(graph, cover_greedy(graph, test_machine()).value(), test_machine()).value().picture;
  const std::string file = themed(drawn);
  EXPECT_THAT(file, ::testing::StartsWith("<svg "));
  EXPECT_THAT(file, HasSubstr("@media screen and (prefers-color-scheme:dark)"));
  for (const char* kind : {"wl-picture", "wl-between", "wl-box"}) {
    EXPECT_THAT(drawn, HasSubstr(cat("class=\"", kind, "\"")));
    EXPECT_THAT(file, HasSubstr(cat(".", kind, "{")));
  }
}

}  // namespace
}  // namespace wl
