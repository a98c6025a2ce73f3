#include "compiler/cover/planned/regions.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace wl {
namespace {

constexpr int kWholeRegion = 400;  // regions with more ops than this are solved segment by segment
constexpr int kMaxNodes = 2000;    // largest number of nodes of the search tree of one region
// Number of columns that are considered for each op of a region with more than kWholeRegion ops.
constexpr size_t kKeptOfEach = 12;

using Key = std::vector<std::tuple<std::vector<int>, std::vector<int>, std::vector<int>, double>>;

// A region: some ops of a program, as a program of their own.
struct Region {
  CoverProgram program;
  std::vector<int> ops, columns;  // of each op and column of the region: its number in the whole program

  int local(int op) const {
    const auto at = std::lower_bound(ops.begin(), ops.end(), op);
    return at != ops.end() && *at == op ? static_cast<int>(at - ops.begin()) : -1;
  }
};

// Makes a region. `wanted`: for each op of the whole program, whether its value is needed outside the region.
Region region_of(const CoverProgram& whole, std::vector<int> ops, std::vector<int> columns,
                 const std::vector<char>& wanted) {
  Region region;
  region.ops = std::move(ops);
  region.program.ops = static_cast<int>(region.ops.size());
  for (int op : region.ops) {
    region.program.once.push_back(whole.once[op]);
    region.program.wanted.push_back(wanted[op]);
  }
  const auto mapped = [&](const std::vector<int>& list) {
    std::vector<int> out;
    for (int op : list)
      if (const int local = region.local(op); local >= 0) out.push_back(local);
    return out;
  };
  std::vector<std::pair<ProgramColumn, int>> sorted;
  for (int g : columns) {
    const ProgramColumn& column = whole.columns[g];
    sorted.push_back({{mapped(column.ops), mapped(column.stores), mapped(column.reads), column.micros}, g});
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.ops, a.first.stores, a.second) < std::tie(b.first.ops, b.first.stores, b.second);
  });
  for (auto& [column, g] : sorted) {
    region.program.columns.push_back(std::move(column));
    region.columns.push_back(g);
  }
  return region;
}

// Returns a key of a program. Programs with equal keys have the same solution.
Key key_of(const CoverProgram& program) {
  Key key;
  std::vector<int> flags;
  for (int op = 0; op < program.ops; ++op) flags.push_back(program.once[op] * 2 + program.wanted[op]);
  key.emplace_back(std::move(flags), std::vector<int>(), std::vector<int>(), 0);
  for (const ProgramColumn& column : program.columns)
    key.emplace_back(column.ops, column.stores, column.reads, column.micros);
  return key;
}

struct Union {
  explicit Union(int count) : parent(static_cast<size_t>(count)) { std::iota(parent.begin(), parent.end(), 0); }
  int root(int i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  }
  void join(int a, int b) { parent[root(a)] = root(b); }
  std::vector<int> parent;
};

class Solver {
 public:
  Solver(const CoverProgram& program, const std::vector<std::vector<int>>& starts, Work* work)
      : program_(program), starts_(starts), work_(work), joined_(program.ops) {
    for (const ProgramColumn& column : program.columns)
      for (int op : column.ops) joined_.join(op, column.ops[0]);
    for (const std::vector<int>& start : starts) {
      in_start_.emplace_back(program.columns.size(), 0);
      for (int g : start) in_start_.back()[g] = 1;
    }
  }

  RegionsAnswer run() {
    // The columns chosen for one region can run in some order, but columns of two regions may wait for each other's
    // values. Such regions are joined into one and solved again.
    for (int round = 0; round < 4; ++round) {
      RegionsAnswer answer = solve();
      std::vector<int> waiting;
      const std::vector<int> order = runnable_order(program_, answer.chosen, &waiting);
      if (waiting.empty()) {
        answer.chosen = order;
        answer.micros = micros_of(program_, order);
        return answer;
      }
      for (int g : waiting) joined_.join(program_.columns[g].ops[0], program_.columns[waiting[0]].ops[0]);
    }
    RegionsAnswer answer = solve();
    answer.chosen = runnable_order(program_, starts_[0]);
    answer.micros = micros_of(program_, answer.chosen);
    return answer;
  }

 private:
  RegionsAnswer solve() {
    const auto count = static_cast<size_t>(program_.ops);
    std::vector<std::vector<int>> ops(count), columns(count);
    std::vector<char> wanted = program_.wanted;
    for (int op = 0; op < program_.ops; ++op) ops[joined_.root(op)].push_back(op);
    for (size_t g = 0; g < program_.columns.size(); ++g) {
      const int root = joined_.root(program_.columns[g].ops[0]);
      columns[root].push_back(static_cast<int>(g));
      for (int value : program_.columns[g].reads)
        if (joined_.root(value) != root) wanted[value] = 1;
    }
    RegionsAnswer all;
    for (size_t root = 0; root < count; ++root) {
      if (ops[root].empty()) continue;
      const Region region = region_of(program_, ops[root], columns[root], wanted);
      const ProgramAnswer& answer = answer_of(region, all);
      for (int g : answer.chosen) all.chosen.push_back(region.columns[g]);
      all.micros += answer.micros;
      all.bound += answer.bound;
      ++all.regions;
    }
    return all;
  }

  std::vector<int> best_start(const Region& region) const {
    std::vector<int> best;
    for (const std::vector<char>& start : in_start_) {
      std::vector<int> mine;
      for (size_t i = 0; i < region.columns.size(); ++i)
        if (start[region.columns[i]] != 0) mine.push_back(static_cast<int>(i));
      if (!is_cover(region.program, mine)) continue;
      if (best.empty() || micros_of(region.program, mine) < micros_of(region.program, best)) best = std::move(mine);
    }
    return best;
  }

  const ProgramAnswer& answer_of(const Region& region, RegionsAnswer& all) {
    const auto [known, is_new] = answers_.try_emplace(key_of(region.program));
    if (!is_new) return known->second;
    std::vector<int> start = best_start(region);
    WL_CHECK(!start.empty(), "no cover to begin with for a region of ", region.ops.size(), " ops");
    ProgramAnswer& answer = known->second;
    if (region.program.ops <= kWholeRegion) {
      answer = solve_program(region.program, start, kMaxNodes, work_);
    } else {
      std::vector<int> worth;
      answer = price_program(region.program, start, kKeptOfEach, worth, work_);
      answer.chosen = improve_by_segments(region.program, worth, std::move(start), work_);
      answer.micros = micros_of(region.program, answer.chosen);
    }
    ++all.distinct;
    all.rows += answer.rows;
    all.cuts += answer.cuts;
    return answer;
  }

  const CoverProgram& program_;
  const std::vector<std::vector<int>>& starts_;
  Work* const work_;
  std::vector<std::vector<char>> in_start_;
  Union joined_;
  std::map<Key, ProgramAnswer> answers_;
};

}  // namespace

RegionsAnswer solve_regions(const CoverProgram& program, const std::vector<std::vector<int>>& starts, Work* work) {
  return Solver(program, starts, work).run();
}

std::vector<int> improve_by_segments(const CoverProgram& program, const std::vector<int>& usable,
                                     std::vector<int> chosen, Work* work) {
  constexpr size_t kSegment = 80;  // approximate number of ops in a segment
  constexpr int kSegmentNodes = 200;
  constexpr uint64_t kSegmentSteps = 100;
  std::vector<std::vector<int>> with(
      static_cast<size_t>(program.ops));  // of each op: the columns of which it is the first op
  for (int g : usable) with[program.columns[g].ops[0]].push_back(g);
  chosen = runnable_order(program, chosen);
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<int> result;
    // Of each op: whether a segment before the current one stores its value.
    std::vector<char> there(static_cast<size_t>(program.ops), 0);
    size_t begin = 0;
    while (begin < chosen.size()) {
      // In the second pass, the first segment is half as long, so that the segments have other borders than in the
      // first pass.
      const size_t size = pass == 1 && begin == 0 ? kSegment / 2 : kSegment;
      std::vector<int> ops;
      size_t end = begin;
      for (; end < chosen.size() && (end == begin || ops.size() < size); ++end)
        ops.insert(ops.end(), program.columns[chosen[end]].ops.begin(), program.columns[chosen[end]].ops.end());
      std::sort(ops.begin(), ops.end());
      ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
      const auto inside = [&](int op) { return std::binary_search(ops.begin(), ops.end(), op); };
      std::vector<char> wanted = program.wanted;
      for (size_t i = 0; i < chosen.size(); ++i)
        if (i < begin || i >= end)
          for (int value : program.columns[chosen[i]].reads) wanted[value] = 1;
      std::vector<int> columns;
      for (int op : ops)
        for (int g : with[op]) {
          const ProgramColumn& column = program.columns[g];
          const bool fits = std::all_of(column.ops.begin(), column.ops.end(), inside) &&
                            std::all_of(column.reads.begin(), column.reads.end(),
                                        [&](int value) { return inside(value) || there[value] != 0; });
          if (fits) columns.push_back(g);
        }
      const std::vector<int> mine(chosen.begin() + static_cast<std::ptrdiff_t>(begin),
                                  chosen.begin() + static_cast<std::ptrdiff_t>(end));
      const Region region = region_of(program, ops, columns, wanted);
      std::vector<int> start;
      for (size_t i = 0; i < region.columns.size(); ++i)
        if (std::find(mine.begin(), mine.end(), region.columns[i]) != mine.end()) start.push_back(static_cast<int>(i));
      std::vector<int> better = mine;
      if (go_on(work, kSegmentSteps) && is_cover(region.program, start)) {
        better.clear();
        for (int g : solve_program(region.program, start, kSegmentNodes, work).chosen)
          better.push_back(region.columns[g]);
      }
      for (int g : better) {
        result.push_back(g);
        for (int value : program.columns[g].stores) there[value] = 1;
      }
      begin = end;
    }
    if (micros_of(program, result) < micros_of(program, chosen)) chosen = std::move(result);
  }
  return runnable_order(program, chosen);
}

}  // namespace wl
