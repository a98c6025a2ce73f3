// The simulated GPU's half: a thread is a fiber of the host, a block runs until every thread waits at a barrier or has
// ended; the blocks of a cluster run together. It reports, with the line of the kernel's text: barriers that not all
// threads of a block reach, shuffles that not all lanes of a wave reach, elements outside a buffer, misaligned vectors,
// and races in shared memory (two threads without a barrier between, one of them writes), elements of an output that
// are stored twice though the kernel says once, elements of the workspace that a block reads before their pass has
// ended, and lanes that differ in what a reduction gave all of them. Blocks come in an order of their own. g++ and
// clang++, x86-64 and AArch64; no include, so that a kernel compiles in a fraction of a second.
#define WL_SIM_FN static __attribute__((noinline, unused))  // of what every access and shuffle calls: compiled once
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
enum { wl_sim_frame = 7 };  // saved words, the return address last
#elif defined(__aarch64__)
asm(".text\n.p2align 4\nwl_sim_switch:\n"
    "  sub sp, sp, #160\n  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n  stp d8, d9, [sp, #96]\n"
    "  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n  add sp, sp, #160\n  ret\n");
enum { wl_sim_frame = 20 };  // the return address is the twelfth
#else
#error "the simulated GPU knows the stack of x86-64 and AArch64"
#endif

enum wl_sim_state : unsigned char { kSimRuns, kSimShuffles, kSimWaits, kSimAwaits, kSimMeets, kSimEnded };
struct wl_sim_lane {
  void* stack;                      // saved stack pointer
  unsigned long long given, taken;  // what a shuffle gives, and what it gets
  int line, mask;                   // mask: a negative one asks for the lane whose number has no other bits
  int from;                         // of the wave, where the mask is wl_sim_any
  int queued, groups;               // copies on their way, and how many groups were committed
  int products;                     // that have not been waited for
  int members;                      // of the block, which the barrier is for
  int phase, parity;                // that it awaits
  // In a block whose threads have roles: how often the thread met others, and what it knows of each role: everything up
  // to such a count, which is the same for all threads of a role at one place.
  unsigned clock, sees[2];
  wl_sim_state state;
};
// Who touched an element of shared memory last; epochs count barriers and blocks. Reads are of each role.
struct wl_sim_cell {
  unsigned wrote, read[2];
  short writer, reader[2];  // reader -1: several; writer with wl_sim_flies: what it copies has not landed
};
struct wl_sim_phase {
  long at;  // in the arena, in bytes
  int arrivals, arrived, role;
  unsigned ended, clock, other;  // of those who arrive: when, and what they know of the other role
  unsigned told[2];              // by the last phase that ended
};
enum {
  wl_sim_blocks = 8,
  wl_sim_threads = 1024 * wl_sim_blocks,
  wl_sim_stack = 262144 + 320,
  wl_sim_shared = 232448,
  wl_sim_outputs = 16,
  wl_sim_phases = 64
};
enum { wl_sim_flies = 0x4000, wl_sim_copies = 2048 };  // of a thread
enum { wl_sim_any = 0x10000 };                         // as a mask: every lane says which lane it asks
struct wl_sim_copy {
  long at;  // in the arena, in bytes
  int size, bytes, group, line;
  unsigned clock;  // of one that arrives at a phase, whose group is negative: when its thread arrived
  unsigned char data[16];
};
// A thread's part of a product of factors in shared memory, which is computed when it is waited for.
enum { wl_sim_products = 64 };  // of a thread
struct wl_sim_product {
  struct {
    long byte, at;  // as of wl_shared
    bool across;
    void (*read)(unsigned short* to, long byte, long at, int line);
    float (*from)(unsigned short);
  } factors[2];
  void* sums[64];  // pairs: by columns, two of each eight
  int count, line;
  int depth;          // 16 elements of 16 bits, or 32 bytes, whose sums are i32
  float held[2][16];  // two rows of a left factor that is in registers
};
struct wl_sim {
  wl_sim_lane lanes[wl_sim_threads];
  wl_sim_cell* cells;  // of each block's shared memory
  char* stacks;
  wl_sim_copy* copies;
  wl_sim_product* products;
  void* home;                       // the scheduler's stack pointer
  int thread, threads, first, end;  // running now; of the cluster; of the wave
  int size, cluster, stacked;  // threads of a block; blocks, of which threads are numbered on; threads with a stack
  int computing;               // threads of a block that are no copiers
  int phase_count;
  wl_sim_phase phases[wl_sim_phases];
  unsigned epoch, start, order;        // epoch: counts barriers; start: the one in which the cluster began
  unsigned since[wl_sim_blocks], met;  // the last barrier of a block, and meeting of all
  long first_block;
  int pass;
  bool counted;  // the block: what others stored in the workspace may be read from here on, and nothing stored
  char* shared;
  long arena;  // bytes of it that a block has
  void (*call)(void);
  void* const* args;
  // Who stored each element of an output that is stored once, in which launch: arguments by number. Of the workspace,
  // behind them, each byte; a pass is a launch.
  struct {
    unsigned long long* of;
    long n;
  } stored[wl_sim_outputs + 1];
  unsigned long long launch;  // the low 24 bits are zero
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
// Stacks, copies on their way, and what is known of shared memory, for as many threads and blocks as a cluster has.
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

// Ends the block at once: the scheduler does not come back to any of its threads.
__attribute__((noinline, cold)) static void wl_sim_fail(const char* what, int line, long detail) {
  wl_sim& s = *wl_sim_now;
  if (!s.failed)
    snprintf(s.message, sizeof s.message, "%s at line %d (block %ld, thread %d, lane %d, %ld)", what, line - s.line0,
             wl_sim_block_of(s), s.thread % s.size, s.thread % WL_WAVE, detail);
  s.failed = true;
  s.lanes[s.thread].state = kSimEnded;
  wl_sim_switch(&s.lanes[s.thread].stack, s.home);
}
// On to the next thread of the wave that can run; to the scheduler when none can.
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
// A wave's shuffle, once all of its lanes are there. False: they are not.
static bool wl_sim_shuffle(wl_sim& s) {
  const wl_sim_lane& first = s.lanes[s.first];
  for (int i = s.first; i < s.end; ++i) {
    const wl_sim_lane& lane = s.lanes[i];
    if (lane.state == kSimShuffles && lane.line == first.line && lane.mask == first.mask) continue;
    const int there = lane.state == kSimShuffles ? i : s.first;  // a lane that is at a shuffle
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
// A wave until all of its lanes wait at a barrier or have ended.
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
// All threads in [from, to) are in `state`, at the line where the first of them is. False: they are not, or none is.
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
// Every thread whose phase has ended goes on. False: none does.
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
// Every block whose threads wait at a barrier goes on; when none does, all must meet, or have ended.
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
    // As if it had been switched away from at the start of wl_sim_entry: the stack is then aligned as after a call.
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
// Blocks in an order of their own: a step that has nothing in common with the grid.
static long wl_sim_place(long block, long grid) {
  long step = grid / 3 * 2 + 1;
  while (wl_sim_common(step, grid) != 1) ++step;
  return (long)((unsigned long long)block * step % grid);
}
