#include "tests/simulated/reduced.h"

#include <cctype>
#include <regex>
#include <set>

#include "absl/strings/str_replace.h"
#include "compiler/emit/emit.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/lower/lower.h"
#include "runtime/runtime.h"
#include "tests/simulated/shrink.h"
#include "tests/unit/emit/compiled.h"

namespace wl::testing {
namespace {

absl::StatusOr<Kernel> lowered(const Graph& group, const std::string& plan, const Machine& machine) {
  WL_ASSIGN_OR_RETURN(const Domain domain, analyze(group, machine));
  WL_ASSIGN_OR_RETURN(const Space space, space_of(group, domain, machine));
  WL_ASSIGN_OR_RETURN(const Point point, space.parse(plan));
  return lower(group, domain, space.schedule(point), machine);
}

}  // namespace

std::string skeleton(const Kernel& kernel, const Machine& machine) {
  // The register part of a tile's layout, such as "r0 r1 3r", becomes "r", since the tile's instructions do not
  // depend on it.
  static const std::regex kRepeats("r\\d+( r\\d+| \\d+r)*");
  const std::string text = std::regex_replace(print(kernel), kRepeats, "r");
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    const std::string number = text.substr(i, end - i);
    if (number.empty())
      out += text[i++];
    else
      out += number == "0" || number == "1" ? number : "#";
    i = std::max(i, end);
  }
  // The result also lists the called functions, because tails and vector widths decide which functions a text calls.
  static const std::regex kCall("\\bwl_[a-z0-9_]+(<[0-9]+>)?");
  const Source source = emit(kernel, machine).value();
  const std::sregex_iterator first(source.text.begin(), source.text.end(), kCall), last;
  std::set<std::string> calls;
  for (auto call = first; call != last; ++call)
    if (call->str() != source.entry) calls.insert(call->str());
  for (const std::string& call : calls) append(&out, call, "\n");
  return out;
}

Machine simulator_of(const Machine& gpu) {
  return machine_named(gpu.target->gpu.wave == 64 ? "sim:hip" : "sim:cuda");
}

absl::StatusOr<Source> simulated(Kernel kernel, const Machine& machine) {
  if (!machine.target->is_gpu()) return emit(kernel, machine);
  kernel.compiler = "gcc";
  return emit(kernel, simulator_of(machine));
}

std::string run_simulated(const std::string& path, const Source& source, const std::vector<void*>& args) {
  const auto object = SharedObject::open(path);
  if (!object.ok()) return object.status().ToString();
  const auto find = [&](const char* suffix) { return object->symbol(source.entry + suffix).value(); };
  *static_cast<int*>(find("_quiet")) = 1;
  const auto report = reinterpret_cast<const char* (*)()>(find("_report"));
  const auto run = reinterpret_cast<BlockFunction>(find(""));
  auto scratch = Buffer::create(std::max<int64_t>(4096, source.scratch_bytes), 0);
  for (long block = 0; block < source.passes * source.grid; ++block) run(block, args.data(), scratch->data());
  return report();
}

absl::StatusOr<Reduced> reduce(const Graph& group, const std::string& plan, const Machine& machine) {
  WL_ASSIGN_OR_RETURN(const Kernel whole, lowered(group, plan, machine));
  const std::string wanted = skeleton(whole, machine);
  Reduced out;
  out.plan = plan;
  out.graph = shrink(group, [&](const Graph& smaller) {
    const auto kernel = lowered(smaller, plan, machine);
    return kernel.ok() && skeleton(*kernel, machine) == wanted;
  });
  WL_ASSIGN_OR_RETURN(const Kernel kernel, lowered(out.graph, plan, machine));
  WL_ASSIGN_OR_RETURN(const Source own, emit(kernel, machine));
  WL_ASSIGN_OR_RETURN(out.source, simulated(kernel, machine));
  if (absl::StrReplaceAll(own.text, {{own.entry, ""}}) !=
      absl::StrReplaceAll(out.source.text, {{out.source.entry, ""}}))
    return invalid(machine.target->name, " does not run the simulator's text:\n", own.text, out.source.text);
  return out;
}

}  // namespace wl::testing
