// Compares the covers of models (which ops share a kernel) by modelled time: the planned cover, the greedy one, and the
// one with a kernel per op. No kernel is run.
//
//   cover [--target NAME]... [--half] [--library N] [--random OPS] MODEL.onnx...
//   One JSON object per file and target on stdout:
//   {"file": ..., "target": ..., "ops": ..., "candidates": ..., "columns": ..., "forms": ..., "rows": ..., "cuts": ...,
//    "regions": ..., "distinct": ..., "pool_s": ..., "solve_s": ..., "gap": relative,
//    "one_per_op" | "calls" | "library" | "greedy" | "planned": {"kernels": ..., "bytes": ..., "micros": modelled},
//    "packed": {"kernels": ..., "apart": ..., "micros": modelled}}
//
// --half converts every f32 value of the models to bf16. "candidates" to "gap" describe the pool of candidate kernels
// and the integer program that chooses the planned cover (compiler/cover/planned). "calls" is the cover of compilers
// that call libraries: greedy fusion in which every contraction is a kernel of its own, priced as a kernel of this
// compiler. "library" is the same cover with the contractions of 16-bit floats N times as fast (--library, by default
// 1), as a library with faster kernels would make it. "packed" is about packed kernels, each of which computes several
// independent groups: "kernels" is the number of packed kernels in the planned cover; "apart" and "micros" are the
// number of kernels and the modelled time of a planned cover without packed kernels.
#include "compiler/cover/cover.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <limits>
#include <random>
#include <span>
#include <sstream>
#include <string>

#include "compiler/cover/planned/planned.h"
#include "compiler/cover/stitching.h"
#include "compiler/domain/stitch.h"
#include "compiler/import/import.h"
#include "compiler/ir/build.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "compiler/ir/weights/fold_weights.h"

namespace wl {
namespace {

// Returns the CPU time of this process in seconds, which other load on the machine hardly affects.
double now_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

Machine machine_named(const std::string& target) {
  Machine machine;
  machine.target = target_named(target).value();
  machine.threads = 2;
  machine.l1_bytes = 48 << 10;
  machine.l3_bytes = 32 << 20;
  return machine;
}

bool multiplies_half(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.op == Op::contract && is_float(node.dtype) && size_of(node.dtype) == 2;
  });
}

// Returns a cover's "kernels", "bytes" and "micros" as JSON. The modelled rate of contractions of 16-bit floats is
// multiplied by `library`.
std::string figures(const Graph& graph, const Cover& cover, const Machine& machine, double library = 1) {
  const Rates rates = rates_of(machine);
  Rates of_library = rates;
  of_library.contract_flops_per_ns *= library;
  int64_t bytes = 0;
  double micros = 0;
  for (const Group& group : cover.groups) {
    const Graph part = extract(graph, group);
    const absl::StatusOr<Domain> domain = analyze_group(part, machine);
    const Cost cost = cost_of(part, domain.value(), machine, multiplies_half(part) ? of_library : rates);
    bytes += cost.bytes;
    micros += cost.micros;
  }
  return cat("{\"kernels\": ", cover.groups.size(), ", \"bytes\": ", bytes, ", \"micros\": ", micros, "}");
}

// Returns the JSON object "packed": the number of packed kernels of the planned cover, and the number of kernels and
// the modelled time of a planned cover without packed kernels.
absl::StatusOr<std::string> packed_figures(const ColumnPool& pool, const PlannedCover& planned) {
  std::vector<double> apart = form_times(pool, {});
  for (size_t f = 0; f < apart.size(); ++f)
    if (pool.forms[f].cls == LoopClass::kPacked) apart[f] = std::numeric_limits<double>::infinity();
  WL_ASSIGN_OR_RETURN(const PlannedCover without, solve_cover(pool, apart));
  const auto packed = std::count_if(planned.columns.begin(), planned.columns.end(), [&](int g) {
    return g >= 0 && pool.forms[pool.columns[g].form].cls == LoopClass::kPacked;
  });
  return cat("{\"kernels\": ", packed, ", \"apart\": ", without.cover.groups.size(), ", \"micros\": ", without.total,
             "}");
}

absl::StatusOr<Graph> read_model(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(cat("cannot read ", path));
  std::stringstream bytes;
  bytes << file.rdbuf();
  WL_ASSIGN_OR_RETURN(const Imported imported, import_onnx(bytes.str()));
  WL_ASSIGN_OR_RETURN(const auto folded, fold_weights(imported.graph, imported.weights));
  return simplify(folded.graph);
}

absl::StatusOr<Graph> in_half(Graph graph) {
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    if (graph.nodes[id].dtype != DType::f32) continue;
    graph.nodes[id].dtype = DType::bf16;
    WL_RETURN_IF_ERROR(infer(std::span(graph.nodes).first(id), graph.nodes[id]));
  }
  return simplify(graph);
}

// Returns a graph of elementwise ops, row reductions subtracted from their operands, and matrix products. The operands
// of each op are drawn from the latest twelve values.
Graph random_model(int ops, uint64_t seed) {
  std::mt19937_64 random(seed);
  Builder b;
  constexpr int64_t kRows = 256, kColumns = 512;
  std::vector<NodeId> values = {b.input("x", DType::f32, {kRows, kColumns})};
  std::vector<char> used = {0};
  const auto pick = [&] {
    const size_t at = values.size() - 1 - std::min<size_t>(values.size() - 1, random() % 12);
    used[at] = 1;
    return values[at];
  };
  for (int made = 0; made < ops;) {
    const uint64_t kind = random() % 16;
    NodeId value = -1;
    if (kind < 7) {
      value = b.elementwise(kind % 2 == 0 ? Op::add : Op::mul, {pick(), pick()});
      made += 1;
    } else if (kind < 12) {
      value = b.elementwise(kind % 2 == 0 ? Op::exp : Op::tanh, {pick()});
      made += 1;
    } else if (kind < 15) {
      const NodeId from = pick();
      value = b.sub(from, b.reduce_keep(Op::reduce_sum, from, {1}));
      made += 2;
    } else {
      value = b.contract(pick(), b.input(cat("w", made), DType::f32, {kColumns, kColumns}), "mk,kn->mn");
      made += 1;
    }
    values.push_back(value);
    used.push_back(0);
  }
  int outputs = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (used[i] == 0) b.output(cat("y", outputs++), values[i]);
  return b.finish().value();
}

absl::Status measure(const std::string& name, const Graph& graph, const std::string& target, double library) {
  const Machine machine = machine_named(target);
  const double begin = now_s();
  WL_ASSIGN_OR_RETURN(const ColumnPool pool, candidate_pool(graph, machine));
  const double pooled = now_s();
  WL_ASSIGN_OR_RETURN(const PlannedCover planned, solve_cover(pool, form_times(pool, {})));
  const double solved = now_s();
  WL_ASSIGN_OR_RETURN(const std::string packed, packed_figures(pool, planned));
  WL_ASSIGN_OR_RETURN(const Cover greedy, cover_greedy(graph, machine));
  WL_ASSIGN_OR_RETURN(const Cover calls, cover_greedy(graph, machine, {.contractions_alone = true}));
  WL_ASSIGN_OR_RETURN(const Cover single, cover_one_per_op(graph, machine));
  std::cout << cat("{\"file\": \"", name, "\", \"target\": \"", target, "\", \"ops\": ", pool.values.anchors().size(),
                   ", \"candidates\": ", pool.considered, ", \"columns\": ", pool.columns.size(),
                   ", \"forms\": ", pool.forms.size(), ", \"rows\": ", planned.rows, ", \"cuts\": ", planned.cuts,
                   ", \"regions\": ", planned.regions, ", \"distinct\": ", planned.distinct_regions,
                   ", \"pool_s\": ", pooled - begin, ", \"solve_s\": ", solved - pooled,
                   ", \"gap\": ", planned.total / std::max(1e-9, planned.bound) - 1,
                   ", \"one_per_op\": ", figures(graph, single, machine),
                   ", \"calls\": ", figures(graph, calls, machine),
                   ", \"library\": ", figures(graph, calls, machine, library),
                   ", \"greedy\": ", figures(graph, greedy, machine),
                   ", \"planned\": ", figures(graph, planned.cover, machine), ", \"packed\": ", packed, "}")
            << std::endl;
  return absl::OkStatus();
}

absl::Status run(int argc, char** argv) {
  std::vector<std::string> targets, files;
  int random = 0;
  bool half = false;
  double library = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--target" && i + 1 < argc) {
      targets.emplace_back(argv[++i]);
    } else if (word == "--half") {
      half = true;
    } else if (word == "--library" && i + 1 < argc) {
      library = std::stod(argv[++i]);
    } else if (word == "--random" && i + 1 < argc) {
      random = std::stoi(argv[++i]);
    } else {
      files.push_back(word);
    }
  }
  if (targets.empty()) targets = {"cpu:avx512"};
  for (const std::string& target : targets) {
    WL_RETURN_IF_ERROR(target_named(target).status());
    for (const std::string& file : files) {
      WL_ASSIGN_OR_RETURN(Graph graph, read_model(file));
      if (half) {
        WL_ASSIGN_OR_RETURN(graph, in_half(std::move(graph)));
      }
      WL_RETURN_IF_ERROR(measure(file.substr(file.rfind('/') + 1), graph, target, library));
    }
    if (random > 0) WL_RETURN_IF_ERROR(measure(cat("random", random), random_model(random, 1), target, library));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  const absl::Status status = wl::run(argc, argv);
  if (!status.ok()) std::cerr << status << std::endl;
  return status.ok() ? 0 : 1;
}
