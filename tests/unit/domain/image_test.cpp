// Which operands are windows over an image, and how the copy of the image is laid out.
#include "compiler/domain/image.h"

#include <gtest/gtest.h>

#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

// Returns the domain of a convolution from 4 to 8 channels along two equal axes of the image.
Domain domain_of(int64_t extent, int64_t taps, int64_t stride, int64_t dilation, int64_t padding, double outside = 0) {
  const int64_t padded = extent + 2 * padding, out = (padded - (taps - 1) * dilation - 1) / stride + 1;
  const std::string window = cat(taps, ",", stride, ",", dilation), pad = cat("[0,", padding, ",", padding, "]");
  const Graph graph = graph_of(
      cat("graph {\n%0 = input \"x\" : f32[4,", extent, ",", extent, "]\n%1 = input \"w\" : f32[8,4,", taps, ",", taps,
          "]\n%2 = pad %0 low=", pad, " high=", pad, " value=", outside, " : f32[4,", padded, ",", padded,
          "]\n%3 = window %2 axes=[1,2] params=[", window, ",", window, "] : f32[4,", out, ",", out, ",", taps, ",",
          taps, "]\n%4 = contract %3 %1 \"kmoli,nkli->nmo\" : f32[8,", out, ",", out, "]\noutput \"y\" %4\n}\n"));
  const absl::StatusOr<Domain> domain = analyze(graph, test_machine());
  EXPECT_TRUE(domain.ok()) << domain.status();
  return *domain;
}

std::optional<Image> convolution(int64_t extent, int64_t taps, int64_t stride, int64_t dilation, int64_t padding,
                                 bool along_rows = true) {
  return column_image(domain_of(extent, taps, stride, dilation, padding), along_rows);
}

std::optional<Guard> zeros(const Domain& domain) {
  return zeros_around(domain, *column_image(domain, true));
}

std::string text(const Slide& slide) {
  return cat(slide.taps, " taps in ", slide.planes, " planes of ", slide.positions, " by ", slide.step);
}

std::string both(const std::optional<Image>& image) {
  if (!image) return "none";
  return text(image->height) == text(image->width) ? text(image->width)
                                                   : cat(text(image->height), "; ", text(image->width));
}

const std::vector<Guard>& first_guards(const Image& image) {
  return image.domain.operands[image.domain.contract][0].pieces.at(0).access.guards;
}

TEST(Image, PlanesFollowFromStrideAndDilationInLowestTerms) {
  EXPECT_EQ(both(convolution(14, 3, 1, 1, 1)), "3 taps in 1 planes of 16 by 1");
  EXPECT_EQ(both(convolution(14, 3, 1, 2, 2)), "3 taps in 1 planes of 18 by 2");
  EXPECT_EQ(both(convolution(28, 3, 2, 1, 1)), "3 taps in 2 planes of 15 by 1");
  EXPECT_EQ(both(convolution(28, 3, 2, 2, 2)), "3 taps in 1 planes of 16 by 1");
  EXPECT_EQ(both(convolution(30, 4, 3, 2, 0)), "4 taps in 3 planes of 10 by 2");
  EXPECT_EQ(both(convolution(224, 7, 2, 1, 3)), "7 taps in 2 planes of 115 by 1");
}

TEST(Image, AnEmptyAxisHasNoTaps) {
  Domain domain = domain_of(14, 3, 1, 1, 1);
  for (const AtomId atom : domain.reduced) domain.atoms[atom].extent = 0;
  EXPECT_EQ(both(column_image(domain, true)), "none");
}

TEST(Image, RowsHaveACopyForEachTapAlongThem) {
  EXPECT_EQ(both(convolution(14, 3, 1, 1, 1, false)), "3 taps in 1 planes of 16 by 1; 1 taps in 1 planes of 14 by 0");
}

TEST(Image, ThereIsNoneWhereNoTapMeetsAnElementAgain) {
  EXPECT_EQ(both(convolution(28, 1, 1, 1, 0)), "none");
  EXPECT_EQ(both(convolution(28, 1, 2, 1, 0)), "none");
  EXPECT_EQ(both(convolution(28, 2, 2, 1, 0)), "none");
  const Graph product = graph_of(R"(graph {
    %0 = input "a" : f32[24,32]
    %1 = input "b" : f32[32,40]
    %2 = contract %0 %1 "mk,kn->mn" : f32[24,40]
    output "y" %2
  })");
  EXPECT_FALSE(column_image(analyze(product, test_machine()).value(), true).has_value());
}

TEST(Image, KnowsWhereItIsZeroForWholeRows) {
  const Domain domain = domain_of(14, 3, 2, 2, 2);
  const Slide height = column_image(domain, true)->height;
  const std::optional<Guard> guard = zeros(domain);
  ASSERT_TRUE(guard.has_value());
  EXPECT_EQ(guard->offset, -2);
  EXPECT_EQ(guard->extent, 14);
  EXPECT_EQ(guard->strides[static_cast<size_t>(height.output)], 2);
  EXPECT_EQ(guard->strides[static_cast<size_t>(height.tap)], 2);
  EXPECT_FALSE(zeros(domain_of(14, 3, 1, 1, 0)).has_value()) << "no padding";
  EXPECT_FALSE(zeros(domain_of(14, 3, 1, 1, 1, 0.5)).has_value()) << "it is not zero outside";
}

// Returns a convolution in which the windows of the image are the operand of rows, with channels last or first.
Graph on_the_rows(bool channels_last) {
  const std::string shape = channels_last ? "[14,14,4]" : "[4,14,14]",
                    padded = channels_last ? "[16,16,4]" : "[4,16,16]";
  const std::string pad = channels_last ? "[1,1,0]" : "[0,1,1]", axes = channels_last ? "[0,1]" : "[1,2]";
  const std::string windows = channels_last ? "[14,14,4,3,3]" : "[4,14,14,3,3]", in = channels_last ? "mokli" : "kmoli";
  return graph_of(cat("graph {\n%0 = input \"x\" : f32", shape,
                      "\n%1 = input \"w\" : f32[4,3,3,32]\n%2 = pad %0 low=", pad, " high=", pad, " value=0 : f32",
                      padded, "\n%3 = window %2 axes=", axes, " params=[3,1,1,3,1,1] : f32", windows,
                      "\n%4 = contract %3 %1 \"", in, ",klin->mon\" : f32[14,14,32]\noutput \"y\" %4\n}\n"));
}

TEST(Image, OnTheRowsKnowsWhetherItsChannelsAreNeighbours) {
  for (const bool channels_last : {false, true}) {
    const Domain domain = analyze(on_the_rows(channels_last), test_machine()).value();
    EXPECT_FALSE(column_image(domain, true).has_value());
    const std::optional<Image> image = row_image(domain, true);
    EXPECT_EQ(both(image), "3 taps in 1 planes of 16 by 1");
    ASSERT_TRUE(image.has_value());
    EXPECT_EQ(image->operand, 0);
    EXPECT_EQ(image->channel >= 0, channels_last);
    EXPECT_TRUE(zeros_around(domain, *image).has_value());
    if (!channels_last) continue;
    EXPECT_EQ(domain.atoms[static_cast<size_t>(image->channel)].extent, 4);
  }
}

TEST(Image, APlaneThatEndsEarlierIsGuardedOnce) {
  // If the image is padded, the guards for the padding also cover the plane that ends earlier.
  EXPECT_EQ(first_guards(*convolution(28, 3, 2, 1, 1)).size(), 2u);
  const std::vector<Guard> guards = first_guards(*convolution(29, 3, 2, 1, 0));
  ASSERT_EQ(guards.size(), 2u);
  for (const Guard& guard : guards) EXPECT_EQ(guard.extent, 29);
  // With an even extent and stride 2, all planes have the same length and need no guard.
  EXPECT_TRUE(convolution(28, 4, 2, 1, 0)->domain.operands.back()[0].pieces.empty());
}

}  // namespace
}  // namespace wl
