// Speed of the simulated GPU: a softmax of 4096 rows of 1024 with the default schedule, on one core. Prints one line of
// JSON for each simulator: {"target": ..., "compile_s": ..., "run_s": ...}.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "runtime/runtime.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl {
namespace {

constexpr const char* kSoftmax = R"(graph {
  %0 = input "x" : f32[4096,1024] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[4096]
  %2 = broadcast %1 dims=[0] : f32[4096,1024]
  %3 = sub %0 %2 : f32[4096,1024]
  %4 = exp %3 : f32[4096,1024]
  %5 = reduce_sum %4 axes=[1] : f32[4096]
  %6 = broadcast %5 dims=[0] : f32[4096,1024]
  %7 = div %4 %6 : f32[4096,1024]
  output "y" %7
})";
constexpr int kRuns = 5;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::Status measure(std::string_view target) {
  Machine machine;
  machine.target = target_named(target).value();
  WL_ASSIGN_OR_RETURN(const Graph graph, parse(kSoftmax));
  WL_ASSIGN_OR_RETURN(const Domain domain, analyze(graph, machine));
  WL_ASSIGN_OR_RETURN(const Space space, space_of(graph, domain, machine));
  WL_ASSIGN_OR_RETURN(const Kernel kernel, lower(graph, domain, space.schedule(space.seeds[0]), machine));
  WL_ASSIGN_OR_RETURN(const Source source, emit(kernel, machine));
  CompileOptions options;
  options.folder = cat(std::filesystem::temp_directory_path().string(), "/simulator_speed.", getpid());
  options.jobs = 1;
  std::filesystem::create_directories(options.folder);
  double compile_s = 1e9, run_s = 1e9;
  const int64_t bytes = graph.bytes(0);
  WL_ASSIGN_OR_RETURN(Buffer in, Buffer::create(bytes, 0));
  WL_ASSIGN_OR_RETURN(Buffer out, Buffer::create(bytes, 0));
  fill_range(graph.nodes[0].fill, DType::f32, 7, 0, 0, bytes / 4, in.data());
  Pool pool(1, false);
  WL_RETURN_IF_ERROR(pool.reserve_scratch(source.scratch_bytes));
  void* args[] = {in.data(), out.data()};
  for (int i = 0; i < kRuns; ++i) {
    double begin = now_s();
    WL_ASSIGN_OR_RETURN(const auto compiled, compile_cpu({{1, "", source}}, options));
    if (compiled[0].outcome != Outcome::kCorrect) return invalid(compiled[0].message);
    compile_s = std::min(compile_s, now_s() - begin);
    WL_ASSIGN_OR_RETURN(const SharedObject object, SharedObject::open(compiled[0].object));
    WL_ASSIGN_OR_RETURN(void* const symbol, object.symbol(source.entry));
    begin = now_s();
    pool.launch({reinterpret_cast<BlockFunction>(symbol), source.grid, 1, source.scratch_bytes}, args);
    run_s = std::min(run_s, now_s() - begin);
  }
  std::filesystem::remove_all(options.folder);
  std::printf("{\"target\": \"%s\", \"compile_s\": %.3f, \"run_s\": %.3f}\n", std::string(target).c_str(), compile_s,
              run_s);
  return absl::OkStatus();
}

}  // namespace
}  // namespace wl

int main() {
  for (const char* target : {"sim:cuda", "sim:hip"})
    if (const absl::Status status = wl::measure(target); !status.ok()) {
      std::fprintf(stderr, "simulator_speed: %s\n", std::string(status.message()).c_str());
      return 1;
    }
}
