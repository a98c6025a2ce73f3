// How data moves, as schedules say: which loads are streaming.
#include "compiler/lower/moves.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/verify.h"
#include "compiler/plan/moves.h"
#include "tests/unit/lower/groups.h"

namespace wl {
namespace {

constexpr const char* kNorm = R"(graph {
  %0 = input "x" : f32[300,64] normal(0,1)
  %1 = input "r" : f32[300,64] normal(0,1)
  %2 = input "gamma" : f32[64] normal(0,1)
  %3 = add %0 %1 : f32[300,64]
  %4 = mul %3 %3 : f32[300,64]
  %5 = reduce_sum %4 axes=[1] : f32[300]
  %6 = rsqrt %5 : f32[300]
  %7 = broadcast %6 dims=[0] : f32[300,64]
  %8 = mul %3 %7 : f32[300,64]
  %9 = broadcast %2 dims=[1] : f32[300,64]
  %10 = mul %8 %9 : f32[300,64]
  output "y" %10
})";

struct Lowered {
  Graph graph;
  Domain domain;
  Kernel kernel;
};

Lowered lowered(const char* text, std::initializer_list<std::pair<const char*, int64_t>> choices) {
  const Machine machine = testing::machine_with("sim:cuda");
  Lowered out;
  out.graph = parse(text).value();
  out.domain = analyze(out.graph, machine).value();
  const Space space = space_of(out.graph, out.domain, machine).value();
  Schedule schedule = space.schedule(space.seeds[0]);
  for (const auto& [name, value] : choices) schedule.set(name, value);
  EXPECT_TRUE(space.legal(schedule));
  out.kernel = lower(out.graph, out.domain, schedule, machine).value();
  return out;
}

void each(const std::vector<Instr>& body, const std::function<void(const Instr&)>& visit) {
  for (const Instr& instr : body) {
    visit(instr);
    each(instr.body, visit);
  }
}

std::set<std::string> streamed(const Kernel& kernel) {
  std::set<std::string> names;
  each(kernel.body, [&](const Instr& instr) {
    if (instr.op == InstrOp::kLoad && instr.streaming) names.insert(kernel.buffers[instr.slice.buffer].name);
  });
  return names;
}

std::vector<std::string> once(const char* text) {
  const Graph graph = parse(text).value();
  const Domain domain = analyze(graph, testing::machine_with("sim:cuda")).value();
  std::vector<std::string> names;
  for (NodeId input : inputs_read_once(graph, domain)) names.push_back(graph.nodes[input].text);
  return names;
}

TEST(InputsReadOnce, AreThoseThatMoveAlongEveryLoop) {
  EXPECT_EQ(once(kNorm), (std::vector<std::string>{"x", "r"}));
  // Two views of one input, windows that overlap, and rows picked by an index.
  EXPECT_EQ(once(R"(graph {
  %0 = input "x" : f32[40,40] normal(0,1)
  %1 = transpose %0 perm=[1,0] : f32[40,40]
  %2 = add %0 %1 : f32[40,40]
  output "y" %2
})"),
            std::vector<std::string>());
  EXPECT_EQ(once(R"(graph {
  %0 = input "x" : f32[8,22,50] normal(0,1)
  %1 = window %0 axes=[1,2] params=[3,1,1,3,1,1] : f32[8,20,48,3,3]
  %2 = reduce_sum %1 axes=[3,4] : f32[8,20,48]
  output "y" %2
})"),
            std::vector<std::string>());
  EXPECT_EQ(once(R"(graph {
  %0 = input "x" : f32[16,100] normal(0,1)
  %1 = input "label" : i64[16,1] uniform(0,100)
  %2 = take_along %0 %1 axis=[1] : f32[16,1]
  output "y" %2
})"),
            (std::vector<std::string>{"label"}));
}

TEST(StreamingLoads, AreOfInputsThatTheKernelReadsOnce) {
  EXPECT_EQ(streamed(lowered(kNorm, {}).kernel), std::set<std::string>());
  const Lowered resident = lowered(kNorm, {{"load_past", 1}});
  EXPECT_EQ(streamed(resident.kernel), (std::set<std::string>{"x", "r"}));
  EXPECT_NE(print(resident.kernel).find("strides [0,1] streaming"), std::string::npos);
  EXPECT_EQ(parse_kernel(print(resident.kernel)).value(), resident.kernel);
  // A row that is read again in a later phase stays.
  Kernel again = lowered(kNorm, {{"resident", 0}}).kernel;
  stream_loads(again, resident.graph, resident.domain);
  EXPECT_EQ(streamed(again), std::set<std::string>());
}

TEST(StreamingLoads, OfAnythingElseAreRefused) {
  Kernel kernel = lowered(kNorm, {{"load_past", 1}}).kernel;
  for (KernelBuffer& buffer : kernel.buffers) buffer.output = true;
  EXPECT_TRUE(absl::IsInternal(verify(kernel)));
}

}  // namespace
}  // namespace wl
