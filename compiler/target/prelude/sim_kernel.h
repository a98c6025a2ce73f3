// The text before a kernel that runs on a simulated GPU, third part of five: launches, and the macros that a kernel's
// text begins with.

// Runs one block of a kernel, or one cluster if the block is the first of its cluster. A launch, or one pass of it,
// makes `grid` such calls; `calls` counts the calls from all threads of the CPU.
static void wl_sim_run(void (*call)(void), long block, long grid, int threads, void* const* args, char* shared,
                       int line0, const char* name, int quiet, long& calls, int cluster, long arena) {
  wl_sim& s = wl_sim_get();
  if (s.failed) return;
  const long before = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  s.launch = ((before / grid + 1) * 0x9e3779b97f4a7c15ull ^ (unsigned long long)call * 0xc2b2ae3d27d4eb4full) << 24;
  if (block % grid % cluster != 0) return;  // the call for the first block of a cluster runs the whole cluster
  s.first_block = wl_sim_place(block % grid / cluster, grid / cluster) * cluster;
  s.pass = (int)(block / grid);
  s.arena = arena;
  s.args = args;
  s.shared = shared;
  s.line0 = line0;
  wl_sim_block(s, call, threads, cluster);
  if (s.failed) calls = (calls / grid + 1) * grid;
  if (!s.failed || quiet) return;
  dprintf(2, "%s: %s\n", name, s.message);
  abort();
}
// Returns the message of the last error, or "", and lets kernels run again: the function NAME_report of a kernel NAME
// calls it. If NAME_quiet is set, an error does not end the process; further blocks are skipped until NAME_report is
// called.
static const char* wl_sim_report() {
  wl_sim& s = wl_sim_get();
  const bool failed = s.failed;
  s.failed = false;
  return failed ? s.message : "";
}
template <class... P>
struct wl_sim_list {};
template <class F, class... D>
static inline void wl_sim_apply(F f, void* const*, wl_sim_list<>, D... done) {
  f(done...);
}
template <class F, class P, class... R, class... D>
static inline void wl_sim_apply(F f, void* const* args, wl_sim_list<P, R...>, D... done) {
  wl_sim_apply(f, args + 1, wl_sim_list<R...>{}, done..., P::argument(args, (int)sizeof...(D)));
}
template <class... P>
static inline void wl_sim_call(void (*f)(P...)) {
  wl_sim_apply(f, wl_sim_now->args, wl_sim_list<P...>{});
}
#define WL_RESIDENT_KERNEL(blocks, ...) WL_CLUSTER_KERNEL(1, 0, __VA_ARGS__)
#define WL_KERNEL(...) WL_CLUSTER_KERNEL(1, 0, __VA_ARGS__)
#define WL_CLUSTER_KERNEL(cluster, shared, name, grid, threads, ...)                                              \
  static void name##_body(__VA_ARGS__);                                                                           \
  static void name##_call() {                                                                                     \
    wl_sim_call(name##_body);                                                                                     \
  }                                                                                                               \
  static long name##_calls = 0;                                                                                   \
  extern "C" {                                                                                                    \
  int name##_quiet = 0;                                                                                           \
  const char* name##_report() {                                                                                   \
    return wl_sim_report();                                                                                       \
  }                                                                                                               \
  void name(long block, void* const* args, char* scratch) {                                                       \
    wl_sim_run(name##_call, block, grid, threads, args, scratch, __LINE__ - 1, #name, name##_quiet, name##_calls, \
               cluster, shared);                                                                                  \
  }                                                                                                               \
  }                                                                                                               \
  static void name##_body(__VA_ARGS__)
#define WL_IN(T, p, n) wl_global<const T, n> p
#define WL_OUT(T, p, n) wl_global<T, n> p
#define WL_ONCE(T, p, n) wl_global<T, n, true> p
#define WL_PASSES(bytes) wl_sim_workspace<bytes> workspace
#define WL_WORK(T, p, at, n) const wl_global<T, n, true, true> p = workspace.template part<T, n>(at)
#define WL_OWN(T, p, first, bytes, at, n) \
  const wl_own<T, n> p = workspace.template own<T, n>(first + block * bytes, bytes, at)
#define WL_CLUSTER(T, p, at, n)  \
  const wl_sim_cluster<T, n> p { \
    at, 0                        \
  }
#define WL_SHARED(T, p, at, n) \
  const wl_shared<T, n> p {    \
    at, 0                      \
  }
#define WL_ENTER                                            \
  const long block = wl_sim_block_of(*wl_sim_now);          \
  const int pass = wl_sim_now->pass;                        \
  const int thread = wl_sim_now->thread % wl_sim_now->size; \
  (void)block;                                              \
  (void)pass;                                               \
  (void)thread
