// The simulated GPU's half, second part: memory, which knows its bounds, and what lanes do together.
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
  enum { step = Work ? sizeof(T) : 1 };  // of the shadow
  T* base;
  long at;
  unsigned long long* stored;
  wl_global operator+(long d) const { return {base, at + d, stored}; }
  static wl_global argument(void* const* args, int number) {
    return {(T*)args[0], 0, Once && number < wl_sim_outputs ? wl_sim_shadow(number, N) : nullptr};
  }
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
};
template <class T, long N>
struct wl_shared {
  long byte;  // in the arena
  long at;
  wl_shared operator+(long d) const { return {byte, at + d}; }
};
template <int W, class T>
WL_FN void wl_sim_inside(const T* base, long at, long n, int line) {
  if (at < 0 || at + W > n) wl_sim_fail(W > 1 ? "vector outside its buffer" : "element outside its buffer", line, at);
  if ((unsigned long long)(base + at) % (W * sizeof(T)) != 0) wl_sim_fail("misaligned vector", line, at);
}
// In the shared memory of block `rank`; since: the epoch that orders whoever touches it.
template <int W, class T>
WL_SIM_FN void wl_sim_touch(int rank, unsigned since, long byte, long at, bool writes, int line) {
  wl_sim& s = *wl_sim_now;
  for (int i = 0; i < W; ++i) {
    wl_sim_cell& cell = s.cells[(long)rank * wl_sim_shared + byte + (at + i) * (long)sizeof(T)];
    const short me = (short)s.thread;
    if (cell.wrote >= s.start && (cell.writer & wl_sim_flies) != 0)
      wl_sim_fail(writes ? "shared element written while a copy to it is on its way"
                         : "shared element read before a wait for the copy to it",
                  line, at + i);
    if (cell.wrote == since && cell.writer != me)
      wl_sim_fail(writes ? "race: two threads write one shared element"
                         : "race: shared element read while another thread writes it",
                  line, at + i);
    if (!writes && cell.wrote < s.start) wl_sim_fail("shared element read before it is written", line, at + i);
    if (writes) {
      if (cell.read == since && cell.reader != me)
        wl_sim_fail("race: shared element written while another thread reads it", line, at + i);
      cell.wrote = since;
      cell.writer = me;
    } else {
      cell.reader = cell.read == since && cell.reader != me ? (short)-1 : me;
      cell.read = since;
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
  wl_sim_touch<W, T>(rank, s.since[rank], from.byte, from.at, false, line);
  __builtin_memcpy(to, base + from.at, W * sizeof(T));
}
template <int W, class T, long N>
WL_FN void wl_write(wl_shared<T, N> to, const T* from, int line) {
  const wl_sim& s = *wl_sim_now;
  const int rank = wl_sim_rank(s);
  T* base = (T*)(s.shared + rank * s.arena + to.byte);
  wl_sim_inside<W>(base, to.at, N, line);
  wl_sim_touch<W, T>(rank, s.since[rank], to.byte, to.at, true, line);
  __builtin_memcpy(base + to.at, from, W * sizeof(T));
}
// Elements of all blocks of a cluster, N in the shared memory of each.
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
    wl_sim_touch<W, T>(rank, s.met, byte, at % N, writes, line);
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
// Blocks that count each other.
WL_FN void wl_release() {}
WL_FN void wl_acquire() {}
template <int N, long Bytes>
WL_FN bool wl_count(wl_sim_workspace<Bytes> workspace, long group) {
  wl_sim_now->counted = true;
  u32& counter = ((u32*)workspace.base)[group];
  const bool last = ++counter == N;
  if (last) counter = 0;
  return last;
}
// All ones: NaN in every float, an index that lies outside in integers.
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
WL_FN void wl_barrier(int line = __builtin_LINE()) {
  wl_sim& s = *wl_sim_now;
  s.lanes[s.thread].line = line;
  s.lanes[s.thread].state = kSimWaits;
  wl_sim_next(s);
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
  // The fiber's own stack tells which thread this is.
  __builtin_memcpy(&x, (void*)&me.taken, sizeof x);
  return x;
}
template <int M, class T>
WL_FN T wl_shuffle_xor(T x, int line = __builtin_LINE()) {
  return wl_sim_exchange(x, M, line);
}
// What a lane has among the N, a power of two, that this one is of.
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

// A copy writes when it is sent, as anything may be there from then on, and again when it lands: at the wait that
// covers it and no sooner.
template <int W, class T, class E, long N, long M, bool O>
WL_FN void wl_send_in(wl_shared<T, N> to, wl_global<E, M, O> from, bool inside, int line) {
  wl_sim& s = *wl_sim_now;
  wl_sim_lane& me = s.lanes[s.thread];
  const int rank = wl_sim_rank(s);
  T* base = (T*)(s.shared + rank * s.arena + to.byte);
  wl_sim_inside<W>(base, to.at, N, line);
  if (inside) wl_sim_inside<W>(from.base, from.at, M, line);
  wl_sim_touch<W, T>(rank, s.since[rank], to.byte, to.at, true, line);
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
template <int N>
WL_FN void wl_wait(int line = __builtin_LINE()) {
  wl_sim& s = *wl_sim_now;
  wl_sim_lane& me = s.lanes[s.thread];
  const int rank = wl_sim_rank(s);
  int left = 0;
  for (int i = 0; i < me.queued; ++i) {
    wl_sim_copy& copy = s.copies[s.thread * wl_sim_copies + i];
    if (copy.group >= me.groups - N) {
      s.copies[s.thread * wl_sim_copies + left++] = copy;
      continue;
    }
    for (int at = 0; at < copy.bytes; at += copy.size) {
      s.cells[(long)rank * wl_sim_shared + copy.at + at].writer &= (short)~wl_sim_flies;
      wl_sim_touch<1, char>(rank, s.since[rank], copy.at + at, 0, true, line);
    }
    __builtin_memcpy(s.shared + rank * s.arena + copy.at, copy.data, copy.bytes);
  }
  me.queued = left;
}

// PTX's ldmatrix: lanes 8 b to 8 b + 7 name the rows of block b, of which all lanes read.
template <class T, int N, bool Across, long M>
__attribute__((noinline)) static wl_blocks_of<N> wl_sim_ldmatrix(wl_shared<T, M> p, long to_row, int line) {
  wl_sim& s = *wl_sim_now;
  const int first = s.first, lane = s.thread - first;
  const long row = p.at + to_row;
  wl_sim_exchange(row, 0, line);
  const auto row_of = [&](int block, int r) {
    long at;
    __builtin_memcpy(&at, &s.lanes[first + 8 * block + r].given, sizeof at);
    return wl_shared<T, M>{p.byte, at};
  };
  wl_blocks_of<N> out;
  for (int b = 0; b < N; ++b) {
    out.e[b] = 0;
    for (int i = 0; i < 2; ++i) {
      T elements[8];
      wl_read<8>(elements, row_of(b, Across ? 2 * (lane % 4) + i : lane / 4), line);
      out.e[b] |= (u32)elements[Across ? lane / 4 : 2 * (lane % 4) + i] << 16 * i;
    }
  }
  wl_sim_exchange(row, 0, line);  // nobody leaves while others read
  return out;
}
template <class T, int N, long G, long D1, long D2, long M>
WL_FN wl_blocks_of<N> wl_blocks(wl_shared<T, M> p WL_LINE) {
  const int lane = wl_sim_now->thread - wl_sim_now->first;
  return wl_sim_ldmatrix<T, N, false>(p, wl_to_row_along<N>(lane, G, D1, D2) WL_PASS);
}
template <class T, int N, long G, long D1, long D2, long M>
WL_FN wl_blocks_of<N> wl_blocks_across(wl_shared<T, M> p WL_LINE) {
  const int lane = wl_sim_now->thread - wl_sim_now->first;
  return wl_sim_ldmatrix<T, N, true>(p, wl_to_row_across<N>(lane, G, D1, D2) WL_PASS);
}

// Matrix instructions. A lane computes its own elements of the sums from the registers of all lanes, by the formulas of
// PTX's manual, not by the table that kernels are made from: one checks the other.
struct wl_sim_factors {
  u32 a[4], b[2];
};
struct wl_sim_given {
  const wl_sim_factors* of[WL_WAVE];  // by lane
};
static wl_sim_given wl_sim_gather(const wl_sim_factors* mine, int line) {
  wl_sim& s = *wl_sim_now;
  const int first = s.first;
  wl_sim_exchange(mine, 0, line);
  wl_sim_given all;
  for (int i = 0; i < WL_WAVE; ++i) __builtin_memcpy(&all.of[i], &s.lanes[first + i].given, sizeof all.of[i]);
  return all;
}
template <class From>
__attribute__((noinline)) static void wl_sim_mma_16x8x16(wl_vec<f32, 2>* sums, wl_sim_factors mine, From from,
                                                         int line) {
  const int lane = wl_sim_now->thread - wl_sim_now->first, group = lane >> 2, in_group = lane & 3;
  const wl_sim_given given = wl_sim_gather(&mine, line);
  for (int i = 0; i < 4; ++i) {
    // Element i of the sums: its row is group (+ 8 for i >= 2), its column in_group * 2 + (i & 1).
    f32& sum = sums[i / 2].e[i & 1];
    const int column = in_group * 2 + (i & 1);
    for (int k = 0; k < 16; ++k) {
      const int holder = k % 8 / 2, half = k % 2 * 16;
      const u32 a = given.of[group * 4 + holder]->a[i / 2 + k / 8 * 2] >> half;
      const u32 b = given.of[column * 4 + holder]->b[k / 8] >> half;
      sum += from((u16)a) * from((u16)b);
    }
  }
  wl_sim_exchange(&mine, 0, line);  // nobody leaves while others read
}
#define WL_MMA_16X8X16(name, from)                                                                                  \
  WL_FN void name(wl_vec<f32, 2>& c0, wl_vec<f32, 2>& c1, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1 WL_LINE) { \
    wl_vec<f32, 2> sums[2] = {c0, c1};                                                                              \
    wl_sim_mma_16x8x16(sums, {{a0, a1, a2, a3}, {b0, b1}}, [](u16 h) { return from<f32>(h); } WL_PASS);             \
    c0 = sums[0];                                                                                                   \
    c1 = sums[1];                                                                                                   \
  }
WL_MMA_16X8X16(wl_mma_m16n8k16_bf16, wl_from_bf16_1)
WL_MMA_16X8X16(wl_mma_m16n8k16_f16, wl_from_f16_1)
// By the formulas of AMD's manual for the hardware's A, B and D. A is the right factor, and B the left one.
template <class From>
__attribute__((noinline)) static void wl_sim_mfma_16(wl_vec<f32, 4>& c, wl_sim_factors mine, From from, int line) {
  const int lane = wl_sim_now->thread - wl_sim_now->first;
  const wl_sim_given given = wl_sim_gather(&mine, line);
  for (int i = 0; i < 4; ++i) {
    const int row = 4 * (lane / 16) + i, column = lane % 16;  // of D
    for (int k = 0; k < 16; ++k) {
      const int holder = k / 4 * 16, word = k % 4 / 2, half = k % 2 * 16;
      c.e[i] += from((u16)(given.of[holder + row]->b[word] >> half)) *
                from((u16)(given.of[holder + column]->a[word] >> half));
    }
  }
  wl_sim_exchange(&mine, 0, line);  // nobody leaves while others read
}
#define WL_MFMA_16(name, from)                                                                 \
  WL_FN void name(wl_vec<f32, 4>& c, u32 a0, u32 a1, u32 b0, u32 b1 WL_LINE) {                 \
    wl_sim_mfma_16(c, {{a0, a1, 0, 0}, {b0, b1}}, [](u16 h) { return from<f32>(h); } WL_PASS); \
  }
WL_MFMA_16(wl_mma_mfma16_f16, wl_from_f16_1)
WL_MFMA_16(wl_mma_mfma16_bf16, wl_from_bf16_1)
