// The text before a kernel that runs on a simulated GPU, fifth part of five: matrix instructions of NVIDIA and AMD
// GPUs, written after the formulas in the vendors' manuals.

// PTX's ldmatrix loads N blocks of 8 rows of 16 bytes from shared memory. Lane 8 b + r passes the address of row r of
// block b (p + to_row). Every lane gets one 32-bit word of each block: word lane % 4 of row lane / 4. With Across
// (.trans), it gets the elements of column lane / 4 in rows 2 * (lane % 4) and 2 * (lane % 4) + 1.
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
    constexpr int word = 4 / sizeof(T), bits = 8 * sizeof(T);
    for (int i = 0; i < word; ++i) {
      T elements[4 * word];
      wl_read<4 * word>(elements, row_of(b, Across ? word * (lane % 4) + i : lane / 4), line);
      u32 element = 0;
      __builtin_memcpy(&element, elements + (Across ? lane / 4 : word * (lane % 4) + i), sizeof(T));
      out.e[b] |= element << bits * i;
    }
  }
  wl_sim_exchange(row, 0, line);  // no lane goes on before all lanes have read
  return out;
}
template <class T, int N, long G, long D1, long D2, long M>
WL_FN wl_blocks_of<N> wl_blocks(wl_shared<T, M> p WL_LINE) {
  const int lane = wl_sim_now->thread - wl_sim_now->first;
  return wl_sim_ldmatrix<T, N, false>(p, wl_to_row_along<T, N>(lane, G, D1, D2) WL_PASS);
}
template <class T, int N, long G, long D1, long D2, long M>
WL_FN wl_blocks_of<N> wl_blocks_across(wl_shared<T, M> p WL_LINE) {
  const int lane = wl_sim_now->thread - wl_sim_now->first;
  return wl_sim_ldmatrix<T, N, true>(p, wl_to_row_across<N>(lane, G, D1, D2) WL_PASS);
}

// PTX's mma instructions. Each lane computes its own elements of the sums from the registers of all lanes. Which lane
// holds which element is taken from the PTX manual. The compiler generates kernels from a table of its own
// (compiler/target/matrix.def), so the simulation checks that table.
struct wl_sim_factors {
  u32 a[4], b[4];
};
struct wl_sim_given {
  const wl_sim_factors* of[WL_WAVE];  // of[l]: the factors' words in the registers of lane l
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
    // Element i of a lane's sums is in row `group` (+ 8 for i >= 2) and column in_group * 2 + (i & 1).
    f32& sum = sums[i / 2].e[i & 1];
    const int column = in_group * 2 + (i & 1);
    for (int k = 0; k < 16; ++k) {
      const int holder = k % 8 / 2, half = k % 2 * 16;
      const u32 a = given.of[group * 4 + holder]->a[i / 2 + k / 8 * 2] >> half;
      const u32 b = given.of[column * 4 + holder]->b[k / 8] >> half;
      sum += from((u16)a) * from((u16)b);
    }
  }
  wl_sim_exchange(&mine, 0, line);  // no lane goes on before all lanes have read
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
// mma.m16n8k8 with elements of type tf32, one in each word. Word i of a lane's registers of A is the element of row
// `group` (+ 8 for odd i) at k = in_group (+ 4 for i >= 2).
WL_FN void wl_mma_m16n8k8_tf32(wl_vec<f32, 2>& c0, wl_vec<f32, 2>& c1, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                               u32 b1 WL_LINE) {
  const wl_sim_factors mine = {{a0, a1, a2, a3}, {b0, b1}};
  const int lane = wl_sim_now->thread - wl_sim_now->first, group = lane >> 2, in_group = lane & 3;
  const wl_sim_given given = wl_sim_gather(&mine WL_PASS);
  const auto tf32 = [](u32 word) { return __builtin_bit_cast(f32, word & 0xffffe000u); };
  for (int i = 0; i < 4; ++i) {
    f32& sum = i < 2 ? c0.e[i] : c1.e[i - 2];
    const int column = in_group * 2 + (i & 1);
    for (int k = 0; k < 8; ++k)
      sum += tf32(given.of[group * 4 + k % 4]->a[i / 2 + k / 4 * 2]) * tf32(given.of[column * 4 + k % 4]->b[k / 4]);
  }
  wl_sim_exchange(&mine, 0 WL_PASS);  // no lane goes on before all lanes have read
}
// mma.m16n8k32 with elements of 8 bits, four in each word. Word i of a lane's registers of A holds the elements of row
// `group` (+ 8 for odd i) from k = 4 * in_group (+ 16 for i >= 2) on.
template <class A, class B>
__attribute__((noinline)) static void wl_sim_mma_16x8x32(wl_vec<i32, 2>* sums, wl_sim_factors mine, int line) {
  const int lane = wl_sim_now->thread - wl_sim_now->first, group = lane >> 2, in_group = lane & 3;
  const wl_sim_given given = wl_sim_gather(&mine, line);
  for (int i = 0; i < 4; ++i) {
    const int column = in_group * 2 + (i & 1);
    u32 sum = (u32)sums[i / 2].e[i & 1];
    for (int k = 0; k < 32; ++k) {
      const int holder = k % 16 / 4, shift = k % 4 * 8;
      const A a = (A)(given.of[group * 4 + holder]->a[i / 2 + k / 16 * 2] >> shift);
      const B b = (B)(given.of[column * 4 + holder]->b[k / 16] >> shift);
      sum += (u32)((i32)a * (i32)b);
    }
    sums[i / 2].e[i & 1] = (i32)sum;
  }
  wl_sim_exchange(&mine, 0, line);  // no lane goes on before all lanes have read
}
#define WL_MMA_16X8X32(name, A, B)                                                                                  \
  WL_FN void name(wl_vec<i32, 2>& c0, wl_vec<i32, 2>& c1, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1 WL_LINE) { \
    wl_vec<i32, 2> sums[2] = {c0, c1};                                                                              \
    wl_sim_mma_16x8x32<A, B>(sums, {                                                                                \
      {a0, a1, a2, a3}, {                                                                                           \
        b0, b1                                                                                                      \
      }                                                                                                             \
    } WL_PASS);                                                                                                     \
    c0 = sums[0];                                                                                                   \
    c1 = sums[1];                                                                                                   \
  }
WL_MMA_16X8X32(wl_mma_m16n8k32_u8i8, u8, i8)
WL_MMA_16X8X32(wl_mma_m16n8k32_i8u8, i8, u8)
// PTX's wgmma instructions, whose factors are in shared memory (compiler/kernel/shared_factors.h). As the PTX manual
// says for the swizzling mode of 128 bytes, a factor consists of rows of 128 bytes, and bits 4 to 6 of an address are
// XORed with its bits 7 to 9. If the factor is stored along k, a row of 128 bytes is one row of the left factor or one
// column of the right factor. If it is stored across k, a row of 128 bytes holds 64 neighbouring rows or columns at one
// k, and the next 64 rows or columns begin 8192 bytes later.
WL_FN void wl_barrier_near(int line = __builtin_LINE()) {
  wl_barrier(line);
}
template <int N>
WL_FN void wl_barrier_near_of(int line = __builtin_LINE()) {
  wl_barrier_of<N>(line);
}
template <class T, long N>
WL_FN void wl_await_near(wl_shared<T, N> p, long parity, int line = __builtin_LINE()) {
  wl_await(p, parity, line);
}
WL_FN void wl_mma_begin(int line = __builtin_LINE()) {
  wl_sim_exchange(0, 0, line);
}
WL_FN void wl_mma_commit() {}
template <class T, long N>
static void wl_sim_read_near(unsigned short* to, long byte, long at, int line) {
  const long address = byte + at * (long)sizeof(T), place = address ^ ((address >> 7 & 7) << 4);
  wl_read<1>((T*)to, wl_shared<T, N>{byte, (place - byte) / (long)sizeof(T)}, line);
}
template <int AcrossA, int AcrossB, class A, long M, class B, long N, class... C>
WL_FN void wl_sim_multiply_near(wl_shared<A, M> a, wl_shared<B, N> b, float (*from_a)(unsigned short),
                                float (*from_b)(unsigned short), int line, C&... c) {
  wl_sim& s = *wl_sim_now;
  wl_sim_exchange(0, 0, line);
  int& products = s.lanes[s.thread].products;
  if (products == wl_sim_products) wl_sim_fail("too many products that nothing waits for", line, products);
  s.products[s.thread * wl_sim_products + products++] = {{{a.byte, a.at, AcrossA != 0, wl_sim_read_near<A, M>, from_a},
                                                          {b.byte, b.at, AcrossB != 0, wl_sim_read_near<B, N>, from_b}},
                                                         {&c...},
                                                         (int)sizeof...(c),
                                                         line,
                                                         32 / (int)sizeof(A),
                                                         {}};
}
// PTX's wgmma with the left factor in registers. As the PTX manual says, the words of a lane hold elements of two of
// the wave's 16 rows: row lane / 4 (words 0 and 2) and row lane / 4 + 8 (words 1 and 3). Words 0 and 1 hold the
// elements at k = lane % 4 * 2 and the next k; words 2 and 3 hold those at 8 more. A lane copies its two rows from the
// other lanes during this call, since the words are local variables of the call; the product is computed later, by the
// wait for it.
template <int AcrossB, class T, long N, class... C>
WL_FN void wl_sim_multiply_held(const u32 (&words)[4], wl_shared<T, N> b, float (*from)(unsigned short), int line,
                                C&... c) {
  wl_sim& s = *wl_sim_now;
  const int lane = s.thread - s.first;
  wl_sim_factors mine = {{words[0], words[1], words[2], words[3]}, {}};
  const wl_sim_given given = wl_sim_gather(&mine, line);
  int& products = s.lanes[s.thread].products;
  if (products == wl_sim_products) wl_sim_fail("too many products that nothing waits for", line, products);
  wl_sim_product& product = s.products[s.thread * wl_sim_products + products++];
  product = {
      {{}, {b.byte, b.at, AcrossB != 0, wl_sim_read_near<T, N>, from}}, {&c...}, (int)sizeof...(c), line, 16, {}};
  for (int half = 0; half < 2; ++half)
    for (int k = 0; k < 16; ++k)
      product.held[half][k] =
          from((unsigned short)(given.of[lane / 4 * 4 + k % 8 / 2]->a[half + k / 8 * 2] >> k % 2 * 16));
  wl_sim_exchange(&mine, 0, line);  // no lane goes on before all lanes have read
}
__attribute__((noinline, unused)) static void wl_sim_multiplied_near(const wl_sim_product& product, int thread) {
  f32 factors[2][32];
  const int depth = product.depth;
  const auto read = [&](int side, long row, f32* to) {
    const auto& factor = product.factors[side];
    for (long k = 0; k < depth; ++k) {
      unsigned short bits = 0;
      const long place = factor.across ? row / 64 * 4096 + k * 64 + row % 64 : row * 4 * depth + k;
      factor.read(&bits, factor.byte, factor.at + place, product.line);
      to[k] = factor.from(bits);
    }
  };
  const int wave = thread / 32 % 4, lane = thread % 32;
  for (int half = 0; half < 2; ++half) {
    if (product.factors[0].read != nullptr)
      read(0, 16 * wave + 8 * half + lane / 4, factors[0]);
    else
      for (int k = 0; k < 16; ++k) factors[0][k] = product.held[half][k];
    for (int pair = half; pair < product.count; pair += 2)
      for (int i = 0; i < 2; ++i) {
        read(1, pair / 2 * 8 + lane % 4 * 2 + i, factors[1]);
        if (depth == 32) {
          i32& sum = ((wl_vec<i32, 2>*)product.sums[pair])->e[i];
          for (int k = 0; k < depth; ++k) sum += (i32)(factors[0][k] * factors[1][k]);
        } else {
          f32& sum = ((wl_vec<f32, 2>*)product.sums[pair])->e[i];
          for (int k = 0; k < depth; ++k) sum += factors[0][k] * factors[1][k];
        }
      }
  }
}
WL_FN void wl_mma_wait(int line = __builtin_LINE()) {
  wl_sim& s = *wl_sim_now;
  wl_sim_exchange(0, 0, line);
  wl_sim_lane& me = s.lanes[s.thread];
  for (int i = 0; i < me.products; ++i)
    wl_sim_multiplied_near(s.products[s.thread * wl_sim_products + i], s.thread % s.size);
  me.products = 0;
}
#define WL_WGMMA(name, from_bits)                                                             \
  template <int AcrossA, int AcrossB, class A, class B, class... C>                           \
  WL_FN void name(A a, B b, C&... c) {                                                        \
    const auto from = [](unsigned short bits) -> float { return from_bits<f32>((u16)bits); }; \
    wl_sim_multiply_near<AcrossA, AcrossB>(a, b, from, from, __builtin_LINE(), c...);         \
  }
WL_WGMMA(wl_mma_wgmma64_bf16, wl_from_bf16_1)
WL_WGMMA(wl_mma_wgmma64_f16, wl_from_f16_1)
#define WL_WGMMA_BYTES(name, A, B)                                                        \
  template <int AcrossA, int AcrossB, long M, long N, class... C>                         \
  WL_FN void name(wl_shared<A, M> a, wl_shared<B, N> b, C&... c) {                        \
    const auto from_a = [](unsigned short bits) -> float { return (float)(A)bits; };      \
    const auto from_b = [](unsigned short bits) -> float { return (float)(B)bits; };      \
    wl_sim_multiply_near<AcrossA, AcrossB>(a, b, from_a, from_b, __builtin_LINE(), c...); \
  }
WL_WGMMA_BYTES(wl_mma_wgmma64_u8i8, u8, i8)
WL_WGMMA_BYTES(wl_mma_wgmma64_i8u8, i8, u8)
#define WL_WGMMA_HELD(name, from_bits)                                                        \
  template <int AcrossB, class B, class... C>                                                 \
  WL_FN void name(u32 a0, u32 a1, u32 a2, u32 a3, B b, C&... c) {                             \
    const auto from = [](unsigned short bits) -> float { return from_bits<f32>((u16)bits); }; \
    const u32 words[4] = {a0, a1, a2, a3};                                                    \
    wl_sim_multiply_held<AcrossB>(words, b, from, __builtin_LINE(), c...);                    \
  }
WL_WGMMA_HELD(wl_mma_wgmma64_held_bf16, wl_from_bf16_1)
WL_WGMMA_HELD(wl_mma_wgmma64_held_f16, wl_from_f16_1)
// AMD's MFMA instruction for 16 x 16 sums and K elements along k, with A, B and D as in AMD's manual: D = A * B + D.
// The kernel's right factor is passed as A and its left factor as B, so that D is the transpose of the kernel's sums. A
// lane holds a quarter of the K elements of row lane % 16 of A and of column lane % 16 of B: those from k = K / 4 *
// (lane / 16) on, two in each word.
template <int K, class From>
__attribute__((noinline)) static void wl_sim_mfma(wl_vec<f32, 4>& c, wl_sim_factors mine, From from, int line) {
  constexpr int each = K / 4;
  const int lane = wl_sim_now->thread - wl_sim_now->first;
  const wl_sim_given given = wl_sim_gather(&mine, line);
  for (int i = 0; i < 4; ++i) {
    const int row = 4 * (lane / 16) + i, column = lane % 16;  // of element i of the lane's part of D
    for (int k = 0; k < K; ++k) {
      const int holder = k / each * 16, word = k % each / 2, half = k % 2 * 16;
      c.e[i] += from((u16)(given.of[holder + row]->b[word] >> half)) *
                from((u16)(given.of[holder + column]->a[word] >> half));
    }
  }
  wl_sim_exchange(&mine, 0, line);  // no lane goes on before all lanes have read
}
#define WL_MFMA_32(name, from)                                                                                 \
  WL_FN void name(wl_vec<f32, 4>& c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, u32 b2, u32 b3 WL_LINE) { \
    wl_sim_mfma<32>(c, {{a0, a1, a2, a3}, {b0, b1, b2, b3}}, [](u16 h) { return from<f32>(h); } WL_PASS);      \
  }
WL_MFMA_32(wl_mma_mfma32_f16, wl_from_f16_1)
WL_MFMA_32(wl_mma_mfma32_bf16, wl_from_bf16_1)
#define WL_MFMA_16(name, from)                                                                  \
  WL_FN void name(wl_vec<f32, 4>& c, u32 a0, u32 a1, u32 b0, u32 b1 WL_LINE) {                  \
    wl_sim_mfma<16>(c, {{a0, a1, 0, 0}, {b0, b1}}, [](u16 h) { return from<f32>(h); } WL_PASS); \
  }
WL_MFMA_16(wl_mma_mfma16_f16, wl_from_f16_1)
WL_MFMA_16(wl_mma_mfma16_bf16, wl_from_bf16_1)
