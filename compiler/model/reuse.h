// Where the data of a CPU kernel comes from, without running it. A kernel is serial loops around loads and stores of
// slices. While some of the loops around a slice iterate, the slice touches a *box*: a run of neighbouring elements,
// repeated along a few strides. Boxes are counted in closed form. The reuse distance of a loop is what all references
// touch during one of its iterations: if that fits into a cache, data is still there in the next iteration. So the
// cache lines that a reference brings into a level of cache are, from the innermost loop outwards,
//
//   lines(loop) = lines(inside) * (fits * touched(loop) / touched(inside) + (1 - fits) * trips)
//
// which holds for loops along which the reference does not move, for windows that overlap, and for cache lines that
// neighbours share. The working sets are those of PolyDL (arXiv 2006.02230); how often they move is added here.
// Everything is counted for the first thread of a launch, which has at least as much work as any other.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

inline constexpr int64_t kL2Ways = 16;

// A cache. `ways` is its associativity; 0: the cache is fully associative.
struct Cache {
  int64_t bytes = 0;
  int64_t ways = 0;
};

// What a reference touches. Every element, cache line and page counts once.
struct Touched {
  double elements = 0;
  double lines = 0;
  double pages = 0;
  double runs = 0;  // runs of cache lines that are contiguous, or so close that prefetchers follow them
};

class Reuse {
 public:
  // A loop of the kernel. Loop 0 stands for repeated launches. The digits of the block number (indices derived from the
  // block number by division and remainder) are loops too.
  struct Loop {
    VarId var = -1;
    int parent = -1;
    const std::vector<Instr>* body = nullptr;  // the loop's instructions; for loop 0 and digits: the kernel's body
    const Instr* instr = nullptr;              // the loop's own instruction; null for loop 0 and digits
    double trips = 1;                          // mean number of iterations each time the loop is entered
    double entries = 1;                        // number of times that the loop is entered in one launch
    int64_t most = 1;                          // largest number of iterations of one entry
  };
  // A memory access: a load, store or gather.
  struct Reference {
    const Instr* instr = nullptr;
    int loop = 0;  // index of the innermost loop around the access
    BufferId buffer = -1;
    bool store = false;
    double executions = 1;              // number of executions in one launch
    double lanes = 1;                   // number of lanes of the tile's vectors
    double vectors = 1;                 // vectors (or scalars) that one execution moves; a partial vector counts as one
    std::vector<int64_t> extents = {};  // extents of the part of the tile that lies within its bounds
    int earlier = -1;                   // index of an earlier reference that touches nearly the same data; -1: none
  };

  // The kernel must outlive this object, and must be one for a CPU (kernel.wave == 0).
  explicit Reuse(const Kernel& kernel);

  const std::vector<Loop>& loops() const { return loops_; }
  const std::vector<Reference>& references() const { return references_; }
  const Kernel& kernel() const { return kernel_; }

  bool is_inside(int loop, int outer) const;  // whether `loop` lies inside `outer` or is the same loop
  // Returns the number of iterations of `loop` while `outer`, a loop around it, is in iteration `turn` and all other
  // loops are in their first iteration.
  double trips(int loop, int outer, int64_t turn) const;
  // Returns what a reference touches in one iteration of `loop`, a loop around it. If `loop` is the innermost loop
  // around it, that is one execution.
  Touched touched(int reference, int loop) const { return measure(reference, loop); }
  // Return the bytes of all cache lines that references touch in one iteration of a loop, and in all its iterations. A
  // line that several references touch counts once.
  double turn_bytes(int loop) const { return turn_bytes_[loop]; }
  double run_bytes(int loop) const { return run_bytes_[loop]; }
  // Returns how many cache lines a reference brings into a cache in one launch. `cold`: the cache has no data from the
  // launch before.
  double misses(int reference, const Cache& cache, bool cold = false) const;

 private:
  struct Stride {
    int64_t step = 0;
    double count = 1;
  };
  struct Box {
    double run = 1;  // number of elements of a contiguous run
    std::vector<Stride> rows;
  };

  void add_digits();
  void walk(const std::vector<Instr>& body, int loop);
  void add_reference(const Instr& instr, int loop);
  int add_loop(VarId var, int parent, double trips);
  void link();
  int meeting(int a, int b) const;  // returns the innermost loop around both loops, a and b

  // Returns the loop whose variable is `var`, searched from `loop` outwards; -1: there is none.
  int loop_of(VarId var, int loop) const;
  void sources(VarId var, int loop, std::vector<int>& found) const;
  int64_t value(VarId var, int loop, const std::vector<int64_t>& at) const;
  int64_t value(const Affine& affine, int loop, const std::vector<int64_t>& at) const;
  int64_t least(const std::vector<Affine>& of, int loop, const std::vector<int64_t>& at) const;
  std::vector<int> turning(const std::vector<Affine>& of, int loop) const;
  // Returns the mean of f(x) over all iterations of the loops that the expressions `of` depend on, where x is the
  // least of these expressions.
  template <typename F>
  double mean(const std::vector<Affine>& of, int loop, F f) const;
  // Returns how many values a variable takes while the loops from `loop` outwards, up to but not including `stop`,
  // iterate.
  double reach(VarId var, int loop, int stop) const;
  Box box(const Reference& reference, int stop, int64_t granule) const;
  Touched measure(int reference, int stop) const;
  double union_bytes(int loop, int stop) const;
  double conflicts(int reference, int stop, const Cache& cache) const;

  const Kernel& kernel_;
  std::vector<Loop> loops_;
  std::vector<Reference> references_;
  std::vector<int> digit_;  // for each variable: the index of its loop if it is a digit of the block number; else -1
  std::vector<double> turn_bytes_, run_bytes_;
};

// Returns the share of accesses that miss if `bytes` are touched between two uses of the same data: 0 up to half of the
// capacity, 1 from 1.25 times the capacity on.
double miss_share(double bytes, double capacity);

}  // namespace wl
