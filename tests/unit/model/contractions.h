// Small contractions and convolutions, and kernels for schedules that are drawn from their spaces.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/lower/lower.h"

namespace wl::testing {

// A product whose extents are multiples of the tiles' extents, so the reuse analysis counts elements and cache lines
// exactly.
inline constexpr const char* kEven = R"(graph {
  %0 = input "a" : f32[48,64] normal(0,1)
  %1 = input "b" : f32[64,192] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[48,192]
  output "y" %2
})";
inline constexpr const char* kTransposed = R"(graph {
  %0 = input "a" : f32[2,24,32] normal(0,1)
  %1 = input "b" : f32[2,192,32] normal(0,1)
  %2 = contract %0 %1 "bmk,bnk->bmn" : f32[2,24,192]
  output "y" %2
})";
// A product of which no extent is a multiple of a tile's extent.
inline constexpr const char* kOdd = R"(graph {
  %0 = input "a" : f32[37,70] normal(0,1)
  %1 = input "b" : f32[70,101] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[37,101]
  output "y" %2
})";
inline constexpr const char* kConvolution = R"(graph {
  %0 = input "x" : f32[8,14,14] normal(0,1)
  %1 = input "w" : f32[16,8,3,3] normal(0,1)
  %2 = pad %0 low=[0,1,1] high=[0,1,1] value=0 : f32[8,16,16]
  %3 = reshape %2 : f32[1,8,16,16]
  %4 = window %3 axes=[2,3] params=[3,1,1,3,1,1] : f32[1,8,14,14,3,3]
  %5 = reshape %4 : f32[8,14,14,3,3]
  %6 = contract %5 %1 "kmoli,nkli->nmo" : f32[16,14,14]
  output "y" %6
})";

struct Scheduled {
  std::string plan;
  Kernel kernel;
};
// Returns the plans and kernels of `count` uniformly drawn legal schedules, for an AVX-512 machine with this number of
// threads.
inline std::vector<Scheduled> scheduled(const char* text, int threads, int count, uint64_t seed) {
  const Graph graph = parse(text).value();
  Machine machine;
  machine.target = target_named("cpu:avx512").value();
  machine.threads = threads;
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  std::vector<Point> points;
  space.enumerate([&](const Point& point) {
    points.push_back(point);
    return true;
  });
  std::mt19937_64 random(seed);
  std::vector<Scheduled> out;
  for (int i = 0; i < count; ++i) {
    const Point& point = points[random() % points.size()];
    out.push_back({space.text(point), lower(graph, domain, space.schedule(point), machine).value()});
  }
  return out;
}

}  // namespace wl::testing
