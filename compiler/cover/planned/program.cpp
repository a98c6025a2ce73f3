#include "compiler/cover/planned/program.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/cover/planned/integer_program.h"

namespace wl {
namespace {

constexpr int kMaxCutRounds = 100;

struct Cycle {
  std::vector<int> columns;
  std::set<int> values;  // the values that one column of the cycle stores and the next one reads
};

// Returns the shortest cycle through column `waiting[from]` among columns that wait for each other's values; empty:
// there is none.
Cycle shortest_cycle(const CoverProgram& program, const std::vector<int>& waiting, size_t from) {
  const auto passes = [&](size_t a, size_t b, std::set<int>* values) {
    bool any = false;
    for (int value : program.columns[waiting[b]].reads) {
      const std::vector<int>& stores = program.columns[waiting[a]].stores;
      if (!std::binary_search(stores.begin(), stores.end(), value)) continue;
      any = true;
      if (values != nullptr) values->insert(value);
    }
    return any;
  };
  std::vector<int> previous(waiting.size(), -1);
  std::vector<size_t> front = {from};
  while (!front.empty()) {
    std::vector<size_t> next;
    for (size_t a : front)
      for (size_t b = 0; b < waiting.size(); ++b) {
        if (previous[b] >= 0 || !passes(a, b, nullptr)) continue;
        previous[b] = static_cast<int>(a);
        next.push_back(b);
        if (b != from) continue;
        Cycle cycle;
        size_t at = from;
        do {
          const auto before = static_cast<size_t>(previous[at]);
          passes(before, at, &cycle.values);
          at = before;
          cycle.columns.push_back(waiting[at]);
        } while (at != from);
        return cycle;
      }
    front = std::move(next);
  }
  return {};
}

// Returns the columns outside of the cycle that break it if they are chosen too: set E of a loop row (program.h).
std::vector<int> ways_out(const CoverProgram& program, const Cycle& cycle) {
  std::vector<int> out;
  for (size_t g = 0; g < program.columns.size(); ++g) {
    const ProgramColumn& column = program.columns[g];
    const auto in = [&](const std::vector<int>& values) {
      return std::any_of(values.begin(), values.end(), [&](int value) { return cycle.values.contains(value); });
    };
    if (in(column.stores) && !in(column.reads)) out.push_back(static_cast<int>(g));
  }
  return out;
}

using Terms = std::vector<std::pair<int, double>>;

// A loop row (program.h), which forbids a cycle, over columns of the program.
struct LoopRow {
  Terms terms;
  double high = 0;
};

// Returns a loop row for the shortest cycle through each waiting column, without duplicates.
std::vector<LoopRow> loop_rows(const CoverProgram& program, const std::vector<int>& waiting) {
  std::vector<LoopRow> rows;
  std::set<std::vector<int>> known;
  for (size_t from = 0; from < waiting.size(); ++from) {
    Cycle cycle = shortest_cycle(program, waiting, from);
    if (cycle.columns.empty()) continue;
    std::sort(cycle.columns.begin(), cycle.columns.end());
    if (!known.insert(cycle.columns).second) continue;
    LoopRow& row = rows.emplace_back();
    for (int g : cycle.columns) row.terms.emplace_back(g, 1);
    for (int g : ways_out(program, cycle)) row.terms.emplace_back(g, -1);
    row.high = static_cast<double>(cycle.columns.size()) - 1;
  }
  return rows;
}

// The integer program over some of the columns of a CoverProgram.
struct Rows {
  IntegerProgram rows;
  std::vector<int> cover, store;  // of each op: its `cover` row and its `store` row (program.h); -1: none
};

Rows rows_of(const CoverProgram& program, const std::vector<int>& columns, const std::vector<LoopRow>& loops) {
  Rows out;
  const auto count = static_cast<size_t>(program.ops);
  std::vector<Terms> computing(count), storing(count);
  std::vector<std::vector<int>> readers(count);
  std::vector<int> place(program.columns.size(), -1);
  for (int g : columns) {
    const ProgramColumn& column = program.columns[g];
    const int x = place[g] = out.rows.add_choice(column.micros);
    for (int op : column.ops) computing[op].emplace_back(x, 1);
    for (int value : column.stores) storing[value].emplace_back(x, 1);
    for (int value : column.reads) readers[value].push_back(x);
  }
  out.cover.assign(count, -1);
  out.store.assign(count, -1);
  for (size_t op = 0; op < count; ++op) {
    out.cover[op] = out.rows.rows();
    out.rows.add_row(computing[op], 1, program.once[op] != 0 ? 1 : kNoLimit);
  }
  for (size_t value = 0; value < count; ++value) {
    const bool wanted = program.wanted[value] != 0;
    if (!wanted && readers[value].empty()) continue;
    if (!wanted) {
      const int y = out.rows.add_share();
      for (int x : readers[value]) out.rows.add_row({{y, 1}, {x, -1}}, 0, kNoLimit);
      storing[value].emplace_back(y, -1);
    }
    out.store[value] = out.rows.rows();
    out.rows.add_row(storing[value], wanted ? 1 : 0, kNoLimit);
  }
  for (const LoopRow& loop : loops) {
    Terms terms;
    for (const auto& [g, factor] : loop.terms)
      if (place[g] >= 0) terms.emplace_back(place[g], factor);
    out.rows.add_row(terms, -kNoLimit, loop.high);
  }
  return out;
}

// The bound of the linear relaxation, and each column's reduced cost: a cover with the column costs at least that much
// more than the bound. Both are found by column generation: only columns of negative reduced cost are added.
struct Priced {
  double bound = 0;
  std::vector<double> reduced_cost;
};

// A program of at most this many columns is solved with all of its columns from the start.
constexpr size_t kAtOnce = 8000;
constexpr size_t kTakenIn = 4000;  // largest number of columns that one round of column generation adds to the program
constexpr int kMaxPricings = 5;

std::optional<Priced> priced(const CoverProgram& program, const std::vector<int>& start,
                             const std::vector<LoopRow>& loops, Work* work) {
  const size_t count = program.columns.size();
  std::vector<char> in(count, count <= kAtOnce ? 1 : 0);
  for (int g : start) in[g] = 1;
  for (size_t g = 0; g < count; ++g)
    if (program.columns[g].ops.size() <= 2) in[g] = 1;
  std::optional<Priced> best;
  for (int round = 0; round < kMaxPricings; ++round) {
    std::vector<int> columns;
    for (size_t g = 0; g < count; ++g)
      if (in[g] != 0) columns.push_back(static_cast<int>(g));
    const Rows rows = rows_of(program, columns, loops);
    const std::optional<Relaxed> relaxed = rows.rows.relaxed(work);
    if (!relaxed) return best;
    Priced out{relaxed->bound, std::vector<double>(count, 0)};
    const auto price = [&](int row) { return row < 0 ? 0 : relaxed->price[row]; };
    std::vector<double> loop_price(count, 0);
    for (size_t l = 0; l < loops.size(); ++l)
      for (const auto& [g, factor] : loops[l].terms)
        loop_price[g] += factor * relaxed->price[static_cast<size_t>(rows.rows.rows()) - loops.size() + l];
    std::vector<std::pair<double, int>> wanted;
    for (size_t g = 0; g < count; ++g) {
      double value = loop_price[g];
      for (int op : program.columns[g].ops) value += price(rows.cover[op]);
      for (int stored : program.columns[g].stores) value += price(rows.store[stored]);
      // The dual values of `read` rows (program.h) are left out: they could only raise the reduced cost, so the bound
      // holds without them.
      out.reduced_cost[g] = program.columns[g].micros - value;
      if (in[g] == 0 && out.reduced_cost[g] < 0) {
        wanted.emplace_back(out.reduced_cost[g], static_cast<int>(g));
        // A cover contains a column at most once, so the reduced cost of the column lowers the bound once.
        out.bound += out.reduced_cost[g];
      }
    }
    if (!best || out.bound > best->bound) best = std::move(out);
    if (wanted.empty()) break;
    std::sort(wanted.begin(), wanted.end());
    for (size_t i = 0; i < wanted.size() && i < kTakenIn; ++i) in[wanted[i].second] = 1;
  }
  return best;
}

std::vector<int> columns_within(const Priced& prices, const std::vector<int>& start, double limit) {
  std::vector<int> columns = start;
  for (size_t g = 0; g < prices.reduced_cost.size(); ++g)
    if (prices.reduced_cost[g] <= limit) columns.push_back(static_cast<int>(g));
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  return columns;
}

// Removes columns without which the rest is still a cover: a solver that stopped early or rounded may leave some.
std::vector<int> without_idle(const CoverProgram& program, std::vector<int> chosen) {
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](int a, int b) { return program.columns[a].micros > program.columns[b].micros; });
  for (size_t i = 0; i < chosen.size();) {
    std::vector<int> rest = chosen;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    if (is_cover(program, rest)) {
      chosen = std::move(rest);
    } else {
      ++i;
    }
  }
  return chosen;
}

}  // namespace

double micros_of(const CoverProgram& program, const std::vector<int>& chosen) {
  double sum = 0;
  for (int g : chosen) sum += program.columns[g].micros;
  return sum;
}

std::vector<int> runnable_order(const CoverProgram& program, const std::vector<int>& chosen,
                                std::vector<int>* waiting) {
  std::vector<char> stored(static_cast<size_t>(program.ops), 0), there(static_cast<size_t>(program.ops), 0);
  for (int g : chosen)
    for (int value : program.columns[g].stores) stored[value] = 1;
  std::vector<int> order, left = chosen;
  std::sort(left.begin(), left.end());
  while (!left.empty()) {
    std::vector<int> still;
    for (int g : left) {
      const ProgramColumn& column = program.columns[g];
      const bool ready = std::all_of(column.reads.begin(), column.reads.end(),
                                     [&](int value) { return stored[value] == 0 || there[value] != 0; });
      if (!ready) {
        still.push_back(g);
        continue;
      }
      order.push_back(g);
      for (int value : column.stores) there[value] = 1;
    }
    if (still.size() == left.size()) {
      if (waiting != nullptr) *waiting = std::move(still);
      return {};
    }
    left = std::move(still);
  }
  return order;
}

bool is_cover(const CoverProgram& program, const std::vector<int>& chosen) {
  std::vector<int> computed(static_cast<size_t>(program.ops), 0), stored(static_cast<size_t>(program.ops), 0);
  for (int g : chosen) {
    for (int op : program.columns[g].ops) ++computed[op];
    for (int value : program.columns[g].stores) ++stored[value];
  }
  for (int op = 0; op < program.ops; ++op) {
    if (computed[op] == 0 || (program.once[op] != 0 && computed[op] > 1)) return false;
    if (program.wanted[op] != 0 && stored[op] == 0) return false;
  }
  for (int g : chosen)
    for (int value : program.columns[g].reads)
      if (stored[value] == 0) return false;
  return runnable_order(program, chosen).size() == chosen.size();
}

namespace {

// Solves the program over some columns, and adds loop rows until the chosen columns can run in some order. A better
// cover replaces the one in `answer`. Returns a lower bound for covers of these columns.
double improve(const CoverProgram& program, const std::vector<int>& columns, std::vector<LoopRow>& loops, int max_nodes,
               ProgramAnswer& answer, Work* work) {
  for (int round = 0; round < kMaxCutRounds && ended(work).ok(); ++round) {
    const Rows rows = rows_of(program, columns, loops);
    answer.rows = std::max(answer.rows, rows.rows.rows());
    const IntegerAnswer found = rows.rows.solve(answer.micros, max_nodes, work);
    if (!found.any) return found.bound;
    std::vector<int> chosen, waiting;
    for (int x : found.chosen) chosen.push_back(columns[x]);
    const std::vector<int> order = runnable_order(program, chosen, &waiting);
    if (waiting.empty()) {
      if (!is_cover(program, order)) return found.bound;
      std::vector<int> lean = runnable_order(program, without_idle(program, order));
      if (const double micros = micros_of(program, lean); micros < answer.micros) {
        answer.chosen = std::move(lean);
        answer.micros = micros;
      }
      return found.bound;
    }
    for (LoopRow& row : loop_rows(program, waiting)) loops.push_back(std::move(row));
  }
  return 0;
}

}  // namespace

ProgramAnswer solve_program(const CoverProgram& program, const std::vector<int>& start, int max_nodes, Work* work) {
  ProgramAnswer answer;
  answer.chosen = runnable_order(program, start);
  answer.micros = micros_of(program, start);
  std::vector<LoopRow> loops;
  const std::optional<Priced> prices = priced(program, start, loops, work);
  if (!prices) return answer;
  answer.bound = prices->bound;
  // The first attempt uses only columns of little or no reduced cost. A column whose reduced cost exceeds the gap
  // between the cover that was found and the bound cannot be in a better cover, so the second attempt leaves such
  // columns out.
  const auto gap = [&] { return std::max(0.0, answer.micros - prices->bound); };
  const double slack = 1e-7 * (1 + answer.micros);
  const std::vector<int> few = columns_within(*prices, start, gap() / 20 + slack);
  double bound = improve(program, few, loops, max_nodes, answer, work);
  const std::vector<int> all = columns_within(*prices, start, gap() + slack);
  if (!std::includes(few.begin(), few.end(), all.begin(), all.end()))
    bound = improve(program, all, loops, max_nodes, answer, work);
  // The bound holds for all columns, since those left out cannot be in a better cover.
  answer.bound = std::min(answer.micros, std::max(prices->bound, bound));
  answer.cuts = static_cast<int>(loops.size());
  return answer;
}

ProgramAnswer price_program(const CoverProgram& program, const std::vector<int>& start, size_t kept,
                            std::vector<int>& worth, Work* work) {
  ProgramAnswer answer;
  answer.chosen = runnable_order(program, start);
  answer.micros = micros_of(program, start);
  const std::optional<Priced> prices = priced(program, start, {}, work);
  worth = start;
  if (!prices) return answer;
  answer.bound = std::min(answer.micros, prices->bound);
  std::vector<std::vector<std::pair<double, int>>> with(static_cast<size_t>(program.ops));
  for (size_t g = 0; g < program.columns.size(); ++g)
    for (int op : program.columns[g].ops) with[op].emplace_back(prices->reduced_cost[g], static_cast<int>(g));
  for (std::vector<std::pair<double, int>>& list : with) {
    std::sort(list.begin(), list.end());
    for (size_t i = 0; i < list.size() && i < kept; ++i) worth.push_back(list[i].second);
  }
  std::sort(worth.begin(), worth.end());
  worth.erase(std::unique(worth.begin(), worth.end()), worth.end());
  return answer;
}

}  // namespace wl
