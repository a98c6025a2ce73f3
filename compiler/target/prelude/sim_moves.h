// The text before a kernel that runs on a simulated GPU, second part of five: pointers that check every access against
// their buffer's bounds, barriers, shuffles and asynchronous copies.

// Returns the array that records which thread last stored each of the n elements of argument `number`; null if there is
// no memory for it.
static unsigned long long* wl_sim_shadow(int number, long n) {
  auto& shadow = wl_sim_now->stored[number];
  if (shadow.n < n) {
    shadow.of = (unsigned long long*)mmap(nullptr, n * sizeof(*shadow.of), 3, 0x4022, -1, 0);
    shadow.n = (long)shadow.of == -1 ? 0 : n;
  }
  return shadow.n < n ? nullptr : shadow.of;
}
template <class T, long N, bool Once = false, bool Work = false>
struct wl_global {
  enum { step = Work ? sizeof(T) : 1 };  // entries of `stored` for each element
  T* base;
  long at;
  unsigned long long* stored;
  wl_global operator+(long d) const { return {base, at + d, stored}; }
  static wl_global argument(void* const* args, int number) {
    return {(T*)args[0], 0, Once && number < wl_sim_outputs ? wl_sim_shadow(number, N) : nullptr};
  }
};
// A pointer to a buffer of N elements in the block's own part of the workspace. cells: null if there is no memory for
// them.
template <class T, long N>
struct wl_own {
  T* base;
  wl_sim_cell* cells;
  long at;
  wl_own operator+(long d) const { return {base, cells, at + d}; }
};
template <long Bytes>
struct wl_sim_workspace {
  char* base;
  unsigned long long* stored;
  static wl_sim_workspace argument(void* const* args, int) {
    return {(char*)args[0], wl_sim_shadow(wl_sim_outputs, Bytes)};
  }
  template <class T, long N>
  wl_global<T, N, true, true> part(long at) const {
    return {(T*)(base + at), 0, stored == nullptr ? nullptr : stored + at};
  }
  template <class T, long N>
  wl_own<T, N> own(long first, long bytes, long at) const {
    wl_sim& s = *wl_sim_now;
    if (s.owned < bytes) {
      s.own = (wl_sim_cell*)mmap(nullptr, bytes * sizeof *s.own, 3, 0x4022, -1, 0);
      s.owned = (long)s.own == -1 ? 0 : bytes;
    }
    return {(T*)(base + first + at), s.owned < bytes ? nullptr : s.own + at, 0};
  }
};
template <class T, long N>
struct wl_shared {
  long byte;  // distance of the buffer from the start of the block's shared memory, in bytes
  long at;    // number of the element in the buffer
  wl_shared operator+(long d) const { return {byte, at + d}; }
};
template <int W, class T>
WL_FN void wl_sim_inside(const T* base, long at, long n, int line) {
  if (at < 0 || at + W > n) wl_sim_fail(W > 1 ? "vector outside its buffer" : "element outside its buffer", line, at);
  if ((unsigned long long)(base + at) % (W * sizeof(T)) != 0) wl_sim_fail("misaligned vector", line, at);
}
// Returns the first epoch (a clock, if threads have roles) at which an access of thread `other` may be concurrent with
// what the running thread does now; earlier accesses happened before. since: the epoch of the last barrier of all
// threads that access the memory, which is the result if threads have no roles.
static inline unsigned wl_sim_seen(const wl_sim& s, unsigned since, int other) {
  return s.computing == s.size ? since : s.lanes[s.thread].sees[wl_sim_role(s, other & ~wl_sim_flies)];
}
// Returns the cells of the shared memory of block `rank` of the cluster.
static inline wl_sim_cell* wl_sim_cells(int rank) {
  return wl_sim_now->cells + (long)rank * wl_sim_shared;
}
// Records that the running thread accesses W elements of shared memory, or of its block's part of the workspace, and
// reports races and elements that are read before they are written. cells: one for each byte of that memory.
template <int W, class T>
WL_SIM_FN void wl_sim_touch(wl_sim_cell* cells, unsigned since, long byte, long at, bool writes, int line) {
  wl_sim& s = *wl_sim_now;
  const int mine = wl_sim_role(s, s.thread);
  const unsigned now = s.computing == s.size ? since : s.lanes[s.thread].clock;
  for (int i = 0; i < W; ++i) {
    wl_sim_cell& cell = cells[byte + (at + i) * (long)sizeof(T)];
    const short me = (short)s.thread;
    if (cell.wrote >= s.start && (cell.writer & wl_sim_flies) != 0)
      wl_sim_fail(writes ? "shared element written while a copy to it is on its way"
                         : "shared element read before a wait for the copy to it",
                  line, at + i);
    if (cell.wrote >= wl_sim_seen(s, since, cell.writer) && cell.writer != me)
      wl_sim_fail(writes ? "race: two threads write one shared element"
                         : "race: shared element read while another thread writes it",
                  line, at + i);
    if (!writes && cell.wrote < s.start) wl_sim_fail("shared element read before it is written", line, at + i);
    if (writes) {
      for (int role = 0; role < 2; ++role) {
        const unsigned seen = s.computing == s.size ? since : s.lanes[s.thread].sees[role];
        if (cell.read[role] >= seen && cell.reader[role] != me)
          wl_sim_fail("race: shared element written while another thread reads it", line, at + i);
      }
      cell.wrote = now;
      cell.writer = me;
    } else {
      cell.reader[mine] = cell.read[mine] == now && cell.reader[mine] != me ? (short)-1 : me;
      cell.read[mine] = now;
    }
  }
}
template <int W, class T, class E, long N, bool O, bool K>
WL_FN void wl_read(T* to, wl_global<E, N, O, K> from, int line) {
  wl_sim_inside<W>(from.base, from.at, N, line);
  if constexpr (K)
    for (int i = 0; from.stored != nullptr && i < W && !wl_sim_now->counted; ++i)
      if (from.stored[(from.at + i) * from.step] >> 24 == wl_sim_now->launch >> 24)
        wl_sim_fail("element of the workspace read in the pass that stores it", line, from.at + i);
  __builtin_memcpy(to, from.base + from.at, W * sizeof(T));
}
template <int W, class T, long N, bool O, bool K>
WL_FN void wl_write(wl_global<T, N, O, K> to, const T* from, int line) {
  wl_sim_inside<W>(to.base, to.at, N, line);
  if constexpr (K)
    if (wl_sim_now->counted) wl_sim_fail("element of the workspace stored after the block was counted", line, to.at);
  if constexpr (O) {
    wl_sim& s = *wl_sim_now;
    const unsigned long long me = s.launch | (unsigned long long)((s.first_block * s.size + s.thread) & 0xffffff);
    for (int i = 0; to.stored != nullptr && i < W; ++i) {
      unsigned long long& before = to.stored[(to.at + i) * to.step];
      if (before >> 24 == s.launch >> 24) wl_sim_fail("element stored twice", line, to.at + i);
      before = me;
    }
  }
  __builtin_memcpy(to.base + to.at, from, W * sizeof(T));
}
template <int W, class T, long N>
WL_FN void wl_read(T* to, wl_shared<T, N> from, int line) {
  const wl_sim& s = *wl_sim_now;
  const int rank = wl_sim_rank(s);
  const T* base = (const T*)(s.shared + rank * s.arena + from.byte);
  wl_sim_inside<W>(base, from.at, N, line);
  wl_sim_touch<W, T>(wl_sim_cells(rank), s.since[rank], from.byte, from.at, false, line);
  __builtin_memcpy(to, base + from.at, W * sizeof(T));
}
template <int W, class T, long N>
WL_FN void wl_write(wl_shared<T, N> to, const T* from, int line) {
  const wl_sim& s = *wl_sim_now;
  const int rank = wl_sim_rank(s);
  T* base = (T*)(s.shared + rank * s.arena + to.byte);
  wl_sim_inside<W>(base, to.at, N, line);
  wl_sim_touch<W, T>(wl_sim_cells(rank), s.since[rank], to.byte, to.at, true, line);
  __builtin_memcpy(base + to.at, from, W * sizeof(T));
}
template <int W, class T, long N>
WL_FN void wl_read(T* to, wl_own<T, N> from, int line) {
  const wl_sim& s = *wl_sim_now;
  wl_sim_inside<W>(from.base, from.at, N, line);
  if (from.cells != nullptr) wl_sim_touch<W, T>(from.cells, s.since[wl_sim_rank(s)], 0, from.at, false, line);
  __builtin_memcpy(to, from.base + from.at, W * sizeof(T));
}
template <int W, class T, long N>
WL_FN void wl_write(wl_own<T, N> to, const T* from, int line) {
  const wl_sim& s = *wl_sim_now;
  wl_sim_inside<W>(to.base, to.at, N, line);
  if (to.cells != nullptr) wl_sim_touch<W, T>(to.cells, s.since[wl_sim_rank(s)], 0, to.at, true, line);
  __builtin_memcpy(to.base + to.at, from, W * sizeof(T));
}
// A pointer to a buffer of N elements that each block of a cluster has in its shared memory: element `at` is element
// at % N of block at / N. A thread may read all of them, and write those of its own block.
template <class T, long N>
struct wl_sim_cluster {
  long byte, at;
  wl_sim_cluster operator+(long d) const { return {byte, at + d}; }
  template <int W>
  T* place(bool writes, int line) const {
    const wl_sim& s = *wl_sim_now;
    if (at < 0 || at / N >= s.cluster) wl_sim_fail("element outside the cluster", line, at);
    const int rank = (int)(at / N);
    if (writes && rank != wl_sim_rank(s)) wl_sim_fail("element of another block stored", line, at);
    T* base = (T*)(s.shared + rank * s.arena + byte);
    wl_sim_inside<W>(base, at % N, N, line);
    wl_sim_touch<W, T>(wl_sim_cells(rank), s.met, byte, at % N, writes, line);
    return base + at % N;
  }
};
template <int W, class T, long N>
WL_FN void wl_read(T* to, wl_sim_cluster<T, N> from, int line) {
  __builtin_memcpy(to, from.template place<W>(false, line), W * sizeof(T));
}
template <int W, class T, long N>
WL_FN void wl_write(wl_sim_cluster<T, N> to, const T* from, int line) {
  __builtin_memcpy(to.template place<W>(true, line), from, W * sizeof(T));
}
// With wl_count, a block counts itself in the workspace; the result is true in the last one of a group of N blocks. The
// memory fences around it do nothing in the simulation.
WL_FN void wl_release() {}
WL_FN void wl_acquire() {}
template <int N, long Bytes>
WL_FN bool wl_count(wl_sim_workspace<Bytes> workspace, long group) {
  wl_sim_now->counted = true;
  u32* counter = (u32*)workspace.base + group;  // blocks may run on several threads of the CPU
  if (__atomic_add_fetch(counter, 1u, __ATOMIC_ACQ_REL) != N) return false;
  __atomic_store_n(counter, 0u, __ATOMIC_RELAXED);
  return true;
}
// Returns the value of elements that a kernel must not use. All bits are 1: a float is NaN, and a signed integer is -1,
// which is no valid index.
template <class V>
WL_FN V wl_sim_outside() {
  V v;
  __builtin_memset(&v, 0xff, sizeof v);
  return v;
}
template <int W, class T, class P>
WL_FN void wl_read_past(T* to, P from, int line) {
  wl_read<W>(to, from, line);
}
template <int W, class P, class T>
WL_FN void wl_write_past(P to, const T* from, int line) {
  wl_write<W>(to, from, line);
}
// Makes the running thread wait at a barrier of the first `members` threads of its block.
static inline void wl_sim_wait(int members, int line) {
  wl_sim& s = *wl_sim_now;
  s.lanes[s.thread].line = line;
  s.lanes[s.thread].members = members;
  s.lanes[s.thread].state = kSimWaits;
  wl_sim_next(s);
}
WL_FN void wl_barrier(int line = __builtin_LINE()) {
  wl_sim_wait(wl_sim_now->size, line);
}
template <int N>
WL_FN void wl_barrier_of(int line = __builtin_LINE()) {
  wl_sim_wait(N == 0 ? wl_sim_now->size : N, line);
}
WL_FN void wl_meet(int line = __builtin_LINE()) {
  wl_sim& s = *wl_sim_now;
  s.lanes[s.thread].line = line;
  s.lanes[s.thread].state = kSimMeets;
  wl_sim_next(s);
}
template <class T>
WL_SIM_FN T wl_sim_exchange(T x, int mask, int line) {
  wl_sim& s = *wl_sim_now;
  wl_sim_lane& me = s.lanes[s.thread];
  __builtin_memcpy(&me.given, &x, sizeof x);
  me.line = line;
  me.mask = mask;
  me.state = kSimShuffles;
  wl_sim_next(s);
  // `me` is still this thread's lane after the switch, since the reference is saved on the fiber's own stack.
  __builtin_memcpy(&x, (void*)&me.taken, sizeof x);
  return x;
}
template <int M, class T>
WL_FN T wl_shuffle_xor(T x, int line = __builtin_LINE()) {
  return wl_sim_exchange(x, M, line);
}
// Returns the x of lane number `lane` in the calling lane's group of N neighbouring lanes; N is a power of two.
template <int N, class T>
WL_FN T wl_shuffle(T x, int lane, int line = __builtin_LINE()) {
  wl_sim& s = *wl_sim_now;
  if (lane < 0 || lane >= N) wl_sim_fail("shuffle from a lane that there is not", line, lane);
  s.lanes[s.thread].from = (s.thread % WL_WAVE & ~(N - 1)) | lane;
  return wl_sim_exchange(x, wl_sim_any, line);
}
template <int Bits, class T>
WL_FN void wl_agree(T x, int line = __builtin_LINE()) {
  const T first = wl_sim_exchange(x, ~Bits, line);
  const bool both_nan = x != x && first != first;
  if (x != first && !both_nan) wl_sim_fail("lanes differ in a result that they have in common", line, Bits);
}

// Starts an asynchronous copy of W elements to shared memory; if they are not `inside`, zeros are copied. The copy
// counts as a write twice: when it starts, since the destination is undefined from then on, and when it completes,
// which happens at the wait for its group or at the end of its phase and never earlier.
template <int W, class T, class E, long N, long M, bool O>
WL_FN void wl_send_in(wl_shared<T, N> to, wl_global<E, M, O> from, bool inside, int line) {
  wl_sim& s = *wl_sim_now;
  wl_sim_lane& me = s.lanes[s.thread];
  const int rank = wl_sim_rank(s);
  T* base = (T*)(s.shared + rank * s.arena + to.byte);
  wl_sim_inside<W>(base, to.at, N, line);
  if (inside) wl_sim_inside<W>(from.base, from.at, M, line);
  wl_sim_touch<W, T>(wl_sim_cells(rank), s.since[rank], to.byte, to.at, true, line);
  if (me.queued == wl_sim_copies) wl_sim_fail("more copies on their way than the simulator holds", line, me.queued);
  wl_sim_copy& copy = s.copies[s.thread * wl_sim_copies + me.queued++];
  static_assert(W * sizeof(T) <= sizeof(copy.data), "a copy is of 16 bytes at most");
  copy.at = to.byte + to.at * (long)sizeof(T);
  copy.size = (int)sizeof(T);
  copy.bytes = (int)(W * sizeof(T));
  copy.group = me.groups;
  copy.line = line;
  __builtin_memset(copy.data, 0, sizeof copy.data);
  if (inside) __builtin_memcpy(copy.data, from.base + from.at, W * sizeof(T));
  __builtin_memset(base + to.at, 0xff, W * sizeof(T));
  for (int i = 0; i < W; ++i)
    s.cells[(long)rank * wl_sim_shared + copy.at + i * (long)sizeof(T)].writer |= wl_sim_flies;
}
template <int W, class T, class E, long N, long M, bool O>
WL_FN void wl_send(wl_shared<T, N> to, wl_global<E, M, O> from, int line) {
  wl_send_in<W>(to, from, true, line);
}
WL_FN void wl_commit() {
  ++wl_sim_now->lanes[wl_sim_now->thread].groups;
}
// Completes the asynchronous copies of thread `thread` for which `now` returns true.
template <class Now>
static void wl_sim_land(int thread, Now now, int line) {
  wl_sim& s = *wl_sim_now;
  wl_sim_lane& lane = s.lanes[thread];
  const int rank = wl_sim_rank(s), running = s.thread;
  const unsigned clock = lane.clock;
  s.thread = thread;
  int left = 0;
  for (int i = 0; i < lane.queued; ++i) {
    wl_sim_copy& copy = s.copies[thread * wl_sim_copies + i];
    if (!now(copy)) {
      s.copies[thread * wl_sim_copies + left++] = copy;
      continue;
    }
    if (copy.group < 0) lane.clock = copy.clock;
    for (int at = 0; at < copy.bytes; at += copy.size) {
      s.cells[(long)rank * wl_sim_shared + copy.at + at].writer &= (short)~wl_sim_flies;
      wl_sim_touch<1, char>(wl_sim_cells(rank), s.since[rank], copy.at + at, 0, true, line);
    }
    __builtin_memcpy(s.shared + rank * s.arena + copy.at, copy.data, copy.bytes);
  }
  lane.clock = clock;
  lane.queued = left;
  s.thread = running;
}
template <int N>
WL_FN void wl_wait(int line = __builtin_LINE()) {
  const wl_sim& s = *wl_sim_now;
  const int oldest = s.lanes[s.thread].groups - N;
  wl_sim_land(
      s.thread, [=](const wl_sim_copy& copy) { return copy.group < 0 ? N == 0 : copy.group < oldest; }, line);
}
