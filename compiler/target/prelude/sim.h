// The text before a kernel that runs on a simulated GPU, first part of five: the scheduler. A GPU thread is a fiber on
// the CPU. The threads of a block run until each of them waits at a barrier or has ended; the blocks of a cluster run
// together. The simulator reports these errors, with the line of the kernel's text:
//   - a barrier that not all threads of a block reach, or a shuffle that not all lanes of a wave reach
//   - an access to an element outside its buffer, or to a misaligned vector
//   - a race in shared memory: two threads access an element, one of them writes, and no barrier orders them
//   - an element of an output that is stored twice although the kernel declares that it is stored once
//   - an element of the workspace that is read in the pass over the grid that stores it, without a wl_count between
//   - a reduction that gives lanes different results although all of them should get the same one
// Blocks do not run in the order of their numbers, so that a kernel that depends on this order gives wrong results. The
// text is for g++ and clang++ on x86-64 and AArch64. It includes no header, so a kernel compiles in a fraction of a
// second.
#define WL_SIM_FN static __attribute__((noinline, unused))  // never inlined, so the compiler compiles the body once
#define WL_UNROLL
#define WL_SERIAL
#define WL_LINE , int line = __builtin_LINE()
#define WL_PASS , line
#define WL_HERE line
#define WL_OUTSIDE(V, fill) wl_sim_outside<V>()
extern "C" {
int dprintf(int, const char*, ...);
int snprintf(char*, unsigned long, const char*, ...);
void* mmap(void*, unsigned long, int, int, int, long);
void abort() __attribute__((noreturn));
void wl_sim_switch(void** from, void* to) __attribute__((visibility("hidden")));
}
#if defined(__x86_64__)
asm(".text\n.p2align 4\nwl_sim_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n");
enum { wl_sim_frame = 7 };  // number of saved 8-byte words; the return address is the last one
#elif defined(__aarch64__)
asm(".text\n.p2align 4\nwl_sim_switch:\n"
    "  sub sp, sp, #160\n  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n  stp d8, d9, [sp, #96]\n"
    "  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n  add sp, sp, #160\n  ret\n");
enum { wl_sim_frame = 20 };  // number of saved 8-byte words; the return address is the twelfth
#else
#error "the simulated GPU knows the stack of x86-64 and AArch64"
#endif

enum wl_sim_state : unsigned char { kSimRuns, kSimShuffles, kSimWaits, kSimAwaits, kSimMeets, kSimEnded };
struct wl_sim_lane {
  void* stack;                      // the saved stack pointer
  unsigned long long given, taken;  // the bits that this lane passes to a shuffle, and those that it gets
  // line: the line of the kernel's text where the lane waits. mask: which lane of the wave a shuffle reads: the lane's
  // own number XOR mask; if mask is negative, the lane's own number AND mask; if it is wl_sim_any, lane `from`.
  int line, mask;
  int from;
  int queued, groups;  // asynchronous copies under way, and the number of copy groups that the thread has committed
  int products;        // number of asynchronous matrix products that the thread has not waited for yet
  int members;         // the barrier where the thread waits is for this many threads, the first ones of the block
  int phase, parity;   // number and parity of the phase that the thread waits for
  // Used where threads have roles: role 1 is that of threads that only copy, role 0 that of the others. clock: counts
  // the thread's barriers, arrivals and waits; it is the same for all threads of a role at the same point of the
  // kernel. sees[r]: what threads of role r did while their clock was less than this happened before what this thread
  // does now.
  unsigned clock, sees[2];
  wl_sim_state state;
};
// Which threads accessed an element of shared memory last, and when. There is one cell for each byte; an element uses
// the cell of its first byte.
struct wl_sim_cell {
  unsigned wrote, read[2];  // when it was last written, and read by each role: an epoch or, with roles, a clock
  // Numbers of these threads in the cluster. A reader of -1 stands for several threads. The writer has the bit
  // wl_sim_flies set while its asynchronous copy to the element is under way.
  short writer, reader[2];
};
// An element of a buffer of phases (PTX's mbarrier).
struct wl_sim_phase {
  long at;                      // its distance from the start of the block's shared memory, in bytes
  int arrivals, arrived, role;  // arrivals that a phase needs, those counted so far, and the role of who arrives
  // ended: number of phases that have ended. clock: the clock of the threads that arrive in the current phase. other:
  // the least value of sees[] for the other role among these threads.
  unsigned ended, clock, other;
  unsigned told[2];  // what the last ended phase raises the sees[] of a waiting thread to, if they are lower
};
enum {
  wl_sim_blocks = 8,
  wl_sim_threads = 1024 * wl_sim_blocks,
  wl_sim_stack = 262144 + 320,
  wl_sim_shared = 232448,
  wl_sim_outputs = 16,
  wl_sim_phases = 64
};
enum { wl_sim_flies = 0x4000, wl_sim_copies = 2048 };  // wl_sim_copies: the most copies under way for one thread
enum { wl_sim_any = 0x10000 };                         // the mask of a shuffle where every lane names a lane to read
// An asynchronous copy to shared memory that is under way.
struct wl_sim_copy {
  long at;  // the destination's distance from the start of the block's shared memory, in bytes
  // size: bytes of one element. bytes: bytes of the whole copy. group: number of the copy group, or -1 - n if the end
  // of phase n completes the copy.
  int size, bytes, group, line;
  unsigned clock;  // for a copy that a phase completes: the clock of its thread when it arrived at the phase
  unsigned char data[16];
};
// One thread's share of an asynchronous matrix product (PTX's wgmma): some sums of the product. They are computed when
// the thread waits for the product.
enum { wl_sim_products = 64 };  // the most products under way for one thread
struct wl_sim_product {
  // The left and the right factor. `read` reads the bits of an element from shared memory; `from` converts them.
  struct {
    long byte, at;  // where the factor begins in shared memory: the fields of a wl_shared
    bool across;    // whether the factor is stored across k
    void (*read)(unsigned short* to, long byte, long at, int line);
    float (*from)(unsigned short);
  } factors[2];
  // Pointers to pairs of sums. Pairs 2 j and 2 j + 1 are two neighbouring columns among columns 8 j to 8 j + 7 of the
  // product: pair 2 j in one row, and pair 2 j + 1 in the row 8 below it.
  void* sums[64];
  int count, line;
  int depth;          // extent of the product along k: 16 elements of 16 bits, or 32 of 8 bits with sums of type i32
  float held[2][16];  // the thread's two rows of the left factor, if that is in registers
};
struct wl_sim {
  wl_sim_lane lanes[wl_sim_threads];
  wl_sim_cell* cells;  // wl_sim_shared cells for each block of the cluster
  wl_sim_cell* own;    // `owned` cells for the running block's part of the workspace
  long owned;
  char* stacks;
  wl_sim_copy* copies;
  wl_sim_product* products;
  void* home;  // the scheduler's stack pointer
  // thread: number of the running thread; threads are numbered through the cluster, block after block. threads: number
  // of threads of the cluster. first, end: the running wave is the threads from first to end - 1.
  int thread, threads, first, end;
  int size, cluster, stacked;  // threads of a block; blocks of the cluster; threads that memory was reserved for
  int computing;               // number of threads of a block that are not copier threads; they come first
  int phase_count;
  wl_sim_phase phases[wl_sim_phases];
  // epoch: counts barriers and starts of clusters. start: the epoch at which the running cluster started. order: the
  // state of the random numbers that choose which wave runs first.
  unsigned epoch, start, order;
  unsigned since[wl_sim_blocks], met;  // the epoch of each block's last barrier, and of the last cluster barrier
  long first_block;
  int pass;
  // Whether the running block has counted itself in the workspace. From then on it may read what other blocks have
  // stored there in this pass, and may store nothing there.
  bool counted;
  char* shared;
  long arena;  // bytes of shared memory of one block
  void (*call)(void);
  void* const* args;
  // For each argument of the kernel that is an output whose elements are stored once: the launch and the thread that
  // stored each element last. The last entry is for the workspace, byte by byte. Each pass counts as a launch.
  struct {
    unsigned long long* of;
    long n;
  } stored[wl_sim_outputs + 1];
  unsigned long long launch;  // identifies the launch in its high 40 bits; the low 24 bits are zero
  int line0;
  bool failed;
  char message[320];
};
static __thread wl_sim* wl_sim_now;
static wl_sim& wl_sim_get() {
  if (wl_sim_now == nullptr) {
    wl_sim_now = (wl_sim*)mmap(nullptr, sizeof(wl_sim), 3, 0x22, -1, 0);
    if ((long)wl_sim_now == -1) abort();
  }
  return *wl_sim_now;
}
// Reserves stacks, cells of shared memory, and space for asynchronous copies and products for the threads of a cluster.
static void wl_sim_reserve(wl_sim& s) {
  if (s.stacked >= s.threads) return;
  s.stacked = s.threads;
  s.stacks = (char*)mmap(nullptr, (unsigned long)wl_sim_stack * s.threads, 3, 0x4022, -1, 0);
  s.cells = (wl_sim_cell*)mmap(nullptr, sizeof(wl_sim_cell) * wl_sim_shared * s.cluster, 3, 0x4022, -1, 0);
  s.copies = (wl_sim_copy*)mmap(nullptr, sizeof(wl_sim_copy) * wl_sim_copies * s.threads, 3, 0x4022, -1, 0);
  s.products = (wl_sim_product*)mmap(nullptr, sizeof(wl_sim_product) * wl_sim_products * s.threads, 3, 0x4022, -1, 0);
  if ((long)s.stacks == -1 || (long)s.cells == -1 || (long)s.copies == -1 || (long)s.products == -1) abort();
}
static inline int wl_sim_rank(const wl_sim& s) {
  return s.thread / s.size;
}
static inline int wl_sim_role(const wl_sim& s, int thread) {
  return thread % s.size >= s.computing;
}
static inline long wl_sim_block_of(const wl_sim& s) {
  return s.first_block + wl_sim_rank(s);
}

// Reports an error and ends the running cluster at once: the scheduler resumes none of its threads.
__attribute__((noinline, cold)) static void wl_sim_fail(const char* what, int line, long detail) {
  wl_sim& s = *wl_sim_now;
  if (!s.failed)
    snprintf(s.message, sizeof s.message, "%s at line %d (block %ld, thread %d, lane %d, %ld)", what, line - s.line0,
             wl_sim_block_of(s), s.thread % s.size, s.thread % WL_WAVE, detail);
  s.failed = true;
  s.lanes[s.thread].state = kSimEnded;
  wl_sim_switch(&s.lanes[s.thread].stack, s.home);
}
// Switches from the running thread to the next thread of its wave that can run, or to the scheduler if none can.
static inline void wl_sim_next(wl_sim& s) {
  wl_sim_lane& me = s.lanes[s.thread];
  for (int i = s.thread + 1; i < s.end; ++i)
    if (s.lanes[i].state == kSimRuns) {
      s.thread = i;
      return wl_sim_switch(&me.stack, s.lanes[i].stack);
    }
  wl_sim_switch(&me.stack, s.home);
}
static void wl_sim_entry() {
  wl_sim_now->call();
  wl_sim& s = *wl_sim_now;
  const int left = s.lanes[s.thread].queued;
  if (left > 0) wl_sim_fail("no wait for a copy", s.copies[s.thread * wl_sim_copies].line, left);
  if (s.lanes[s.thread].products > 0)
    wl_sim_fail("no wait for a product", s.products[s.thread * wl_sim_products].line, s.lanes[s.thread].products);
  s.lanes[s.thread].state = kSimEnded;
  wl_sim_next(s);
  abort();
}
// Performs a shuffle of the running wave. Returns false, with an error message, if not all lanes are at this shuffle.
static bool wl_sim_shuffle(wl_sim& s) {
  const wl_sim_lane& first = s.lanes[s.first];
  for (int i = s.first; i < s.end; ++i) {
    const wl_sim_lane& lane = s.lanes[i];
    if (lane.state == kSimShuffles && lane.line == first.line && lane.mask == first.mask) continue;
    const int there = lane.state == kSimShuffles ? i : s.first;  // a lane that waits at a shuffle
    const bool mine = s.lanes[there].state == kSimShuffles;
    s.thread = mine ? there : i;
    snprintf(s.message, sizeof s.message, "shuffle at line %d without lane %d, which %s line %d (block %ld, thread %d)",
             s.lanes[s.thread].line - s.line0, (there == i ? s.first : i) % WL_WAVE,
             lane.state == kSimEnded ? "ended after" : "is at", (there == i ? first : lane).line - s.line0,
             wl_sim_block_of(s), s.thread % s.size);
    s.failed = true;
    return false;
  }
  for (int i = s.first; i < s.end; ++i) {
    const int lane = i - s.first, from = first.mask == wl_sim_any ? s.lanes[i].from
                                         : first.mask < 0         ? lane & first.mask
                                                                  : (lane ^ first.mask) % WL_WAVE;
    s.lanes[i].taken = s.lanes[s.first + from].given;
  }
  for (int i = s.first; i < s.end; ++i) s.lanes[i].state = kSimRuns;
  return true;
}
// Runs a wave until each of its lanes waits at a barrier or for a phase, or has ended. Returns false after an error.
static bool wl_sim_wave(wl_sim& s) {
  while (true) {
    int runs = -1;
    for (int i = s.end - 1; i >= s.first; --i)
      if (s.lanes[i].state == kSimRuns) runs = i;
    if (runs >= 0) {
      s.thread = runs;
      wl_sim_switch(&s.home, s.lanes[runs].stack);
      if (s.failed) return false;
      continue;
    }
    bool shuffles = false;
    for (int i = s.first; i < s.end; ++i) shuffles = shuffles || s.lanes[i].state == kSimShuffles;
    if (!shuffles) return true;
    if (!wl_sim_shuffle(s)) return false;
  }
}
// Returns whether all threads from `from` to `to` - 1 are in state `state` at the same line of the kernel's text. If
// only some of them are, it also makes the error message.
static bool wl_sim_all(wl_sim& s, int from, int to, wl_sim_state state, const char* what) {
  int there = -1, other = -1;
  for (int i = from; i < to; ++i) (s.lanes[i].state == state ? there : other) = i;
  if (there < 0) return false;
  for (int i = from; i < to && other < 0; ++i)
    if (s.lanes[i].line != s.lanes[there].line) other = i;
  if (other < 0) return true;
  s.thread = there;
  snprintf(s.message, sizeof s.message,
           "%s at line %d, where thread %d waits, is not reached by thread %d (lane %d), which %s line %d (block %ld)",
           what, s.lanes[there].line - s.line0, there % s.size, other % s.size, other % WL_WAVE,
           s.lanes[other].state == kSimEnded ? "ended after" : "waits at", s.lanes[other].line - s.line0,
           wl_sim_block_of(s));
  s.failed = true;
  return false;
}
static void wl_sim_release(wl_sim& s, int block, int members) {
  const int first = block * s.size;
  unsigned clock = 0, other = 0;
  for (int i = first; i < first + members; ++i) {
    if (s.lanes[i].clock > clock) clock = s.lanes[i].clock;
    if (s.lanes[i].sees[1] > other) other = s.lanes[i].sees[1];
  }
  for (int i = first; i < first + members; ++i) {
    s.lanes[i].clock = s.lanes[i].sees[0] = clock + 1;
    s.lanes[i].sees[1] = members == s.size ? clock + 1 : other;
    s.lanes[i].state = kSimRuns;
  }
  s.since[block] = s.epoch;
}
static bool wl_sim_has_ended(const wl_sim_phase& phase, int parity) {
  return (int)(phase.ended & 1) != parity;
}
// Lets every thread go on that waits for a phase which has ended. Returns whether there was such a thread.
static bool wl_sim_phases_end(wl_sim& s) {
  bool any = false;
  for (int i = 0; i < s.threads; ++i) {
    wl_sim_lane& lane = s.lanes[i];
    if (lane.state != kSimAwaits) continue;
    s.thread = i;
    if (!wl_sim_has_ended(s.phases[lane.phase], lane.parity)) continue;
    lane.state = kSimRuns;
    any = true;
  }
  return any;
}
// Called when no thread can run. Lets blocks go on whose threads all wait at a barrier, and threads whose phase has
// ended. If there are none, either all threads of the cluster wait at the cluster's barrier and go on, or all have
// ended, which sets `ended`; anything else is an error. Returns false after an error.
static bool wl_sim_barrier(wl_sim& s, bool& ended) {
  bool waits = false;
  for (int block = 0; block < s.cluster; ++block) {
    int members = s.computing;
    for (int i = block * s.size; i < (block + 1) * s.size; ++i)
      if (s.lanes[i].state == kSimWaits) members = s.lanes[i].members;
    if (!wl_sim_all(s, block * s.size, block * s.size + members, kSimWaits, "barrier")) {
      if (s.failed) return false;
      continue;
    }
    waits = true;
    ++s.epoch;
    wl_sim_release(s, block, members);
  }
  if (wl_sim_phases_end(s) || waits) return true;
  if (s.lanes[s.thread].state == kSimAwaits) {
    snprintf(s.message, sizeof s.message, "the phase awaited at line %d never ends (block %ld, thread %d)",
             s.lanes[s.thread].line - s.line0, wl_sim_block_of(s), s.thread % s.size);
    s.failed = true;
    return false;
  }
  ended = !wl_sim_all(s, 0, s.threads, kSimMeets, "meeting");
  if (s.failed || ended) return !s.failed;
  s.met = ++s.epoch;
  for (int block = 0; block < s.cluster; ++block) wl_sim_release(s, block, s.size);
  return true;
}
static void wl_sim_block(wl_sim& s, void (*call)(void), int size, int cluster) {
  const int threads = size * cluster;
  s.call = call;
  s.size = s.computing = size;
  s.cluster = cluster;
  s.phase_count = 0;
  s.threads = threads;
  wl_sim_reserve(s);
  s.start = s.met = ++s.epoch;
  s.counted = false;
  for (int block = 0; block < cluster; ++block) s.since[block] = s.epoch;
  for (int i = 0; i < threads; ++i) {
    wl_sim_lane& lane = s.lanes[i];
    // The stack looks as if wl_sim_switch had left the thread at the first instruction of wl_sim_entry, with the
    // alignment that a stack has after a call.
    void** top = (void**)(s.stacks + (long)wl_sim_stack * (i + 1)) - 2;
#if defined(__x86_64__)
    void** frame = top - wl_sim_frame + 1;
    frame[wl_sim_frame - 1] = (void*)wl_sim_entry;
#else
    void** frame = top - wl_sim_frame;
    frame[11] = (void*)wl_sim_entry;
#endif
    lane.stack = frame;
    lane.state = kSimRuns;
    lane.line = s.line0;
    lane.queued = lane.groups = lane.products = 0;
    lane.clock = lane.sees[0] = lane.sees[1] = s.start;
  }
  const int waves = threads / WL_WAVE;
  for (bool ended = false; !ended;) {
    s.order = s.order * 1664525u + 1013904223u;
    const int start = (int)(s.order >> 16) % waves;
    for (int k = 0; k < waves; ++k) {
      s.first = (start + k) % waves * WL_WAVE;
      s.end = s.first + WL_WAVE;
      if (!wl_sim_wave(s)) return;
    }
    if (!wl_sim_barrier(s, ended)) return;
  }
  for (int i = 0; i < threads; ++i)
    if (s.lanes[i].clock > s.epoch) s.epoch = s.lanes[i].clock;
}
static long wl_sim_common(long a, long b) {
  return b == 0 ? a : wl_sim_common(b, a % b);
}
// Returns which one of `grid` blocks (or clusters) runs as number `block`. The order visits all of them, in steps of a
// number that has no common factor with `grid`.
static long wl_sim_place(long block, long grid) {
  long step = grid / 3 * 2 + 1;
  while (wl_sim_common(step, grid) != 1) ++step;
  return (long)((unsigned long long)block * step % grid);
}
