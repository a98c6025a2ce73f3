// Where the data of a CPU kernel comes from, without running it. A kernel is serial loops around loads and stores of
// slices, and every slice, with some of the loops around it turning, touches a *box*: a run of neighbouring elements
// repeated along a few strides. Boxes are counted in closed form. The reuse distance of a loop is what all references
// touch during one of its turns: data is still in a cache in the next turn where that fits. So the lines which a
// reference brings into a level are, from the innermost loop outwards,
//
//   lines(loop) = lines(inside) * (fits * touched(loop) / touched(inside) + (1 - fits) * trips)
//
// which covers loops that do not move the reference, windows that overlap and lines that are shared by neighbours
// alike. After PolyDL (arXiv 2006.02230), whose working sets these are; how often they move is added. Everything is
// counted for the first thread of a launch, which has no less to do than any other.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl {

inline constexpr int64_t kLineBytes = 64;
inline constexpr int64_t kL2Ways = 16;

// A cache as far as reuse sees it. `ways` lines can share a set; 0: any can.
struct Cache {
  int64_t bytes = 0;
  int64_t ways = 0;
};

// What a reference touches, each element, line and page once.
struct Touched {
  double elements = 0;
  double lines = 0;
  double pages = 0;
  double runs = 0;  // stretches of neighbouring lines
};

class Reuse {
 public:
  // A loop of the kernel; loop 0 stands for the launch, repeated for ever, and outer digits of the block number are
  // loops too.
  struct Loop {
    VarId var = -1;
    int parent = -1;
    const std::vector<Instr>* body = nullptr;  // of the launch and of digits: the kernel's
    const Instr* instr = nullptr;              // of the launch and of digits: none
    double trips = 1;                          // of one entry, on average
    double entries = 1;                        // of one launch
  };
  // A load, store or gather.
  struct Reference {
    const Instr* instr = nullptr;
    int loop = 0;  // innermost loop around it
    BufferId buffer = -1;
    bool store = false;
    double executions = 1;  // of one launch
    double lanes = 1;       // vector lanes of its tile
    double vectors = 1;     // vectors (or scalars) of one execution, tails counted whole
    int earlier = -1;       // reference that touched the same data before it, under another loop; -1: none
  };

  // The kernel must outlive this, and have no lanes (wave 0).
  explicit Reuse(const Kernel& kernel);

  const std::vector<Loop>& loops() const { return loops_; }
  const std::vector<Reference>& references() const { return references_; }
  const Kernel& kernel() const { return kernel_; }

  bool is_inside(int loop, int outer) const;  // or the same
  // Trips of a loop while `outer`, around it, is in this turn and all others are in their first.
  double trips(int loop, int outer, int64_t turn) const;
  // By a reference in one turn of `loop`, which is around it; in one execution when there is no loop between.
  Touched touched(int reference, int loop) const { return measure(reference, loop); }
  // Bytes of lines touched by all references in one turn of a loop, and in all its turns; what they share counts once.
  double turn_bytes(int loop) const { return turn_bytes_[loop]; }
  double run_bytes(int loop) const { return run_bytes_[loop]; }
  // Lines that a reference brings into a cache in one launch; `cold`: nothing is left of the launch before.
  double misses(int reference, const Cache& cache, bool cold = false) const;

 private:
  struct Stride {
    int64_t step = 0;
    double count = 1;
  };
  struct Box {
    double run = 1;  // neighbouring elements
    std::vector<Stride> rows;
  };

  void add_digits();
  void walk(const std::vector<Instr>& body, int loop);
  void add_reference(const Instr& instr, int loop);
  int add_loop(VarId var, int parent, double trips);
  void link();
  int meeting(int a, int b) const;  // innermost loop around two loops

  // The loop between `loop` and the launch that turns a variable; -1: none.
  int loop_of(VarId var, int loop) const;
  void sources(VarId var, int loop, std::vector<int>& found) const;
  int64_t value(VarId var, int loop, const std::vector<int64_t>& at) const;
  int64_t value(const Affine& affine, int loop, const std::vector<int64_t>& at) const;
  // Mean of f over all turns of the loops that `of` depends on; f is given the least of `of`.
  template <typename F>
  double mean(const std::vector<Affine>& of, int loop, F f) const;
  // How many values a variable, or the terms of an affine, take while the loops from `loop` out to below `stop` turn.
  double reach(VarId var, int loop, int stop) const;
  Box box(const Reference& reference, int stop, int64_t granule) const;
  Touched measure(int reference, int stop) const;
  double union_bytes(int loop, int stop) const;
  double conflicts(int reference, int stop, const Cache& cache) const;

  const Kernel& kernel_;
  std::vector<Loop> loops_;
  std::vector<Reference> references_;
  std::vector<int> digit_;  // by variable: the loop that a digit of the block number is; -1: it is none
  std::vector<double> turn_bytes_, run_bytes_;
};

// Share of accesses that miss when `bytes` are touched between two uses: none up to half of a cache, all from 1.25 of
// it on.
double miss_share(double bytes, double capacity);

}  // namespace wl
