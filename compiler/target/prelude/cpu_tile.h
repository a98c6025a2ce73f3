// The CPU prelude of targets with tile registers: up to 16 rows of up to 64 bytes each, and the instructions that
// multiply them (compiler/target/matrix.def). Where the compiler is not told of them, registers are memory and
// instructions are loops, so that any machine can run the same text.

// The macro as each compiler names it.
#if defined(__AMX_TILE__) || defined(__AMXTILE__)
#define WL_AMX 1
#endif

// The shapes of a kernel's registers, in the form of the operand of ldtilecfg.
struct wl_tiles {
  u8 palette, start_row, reserved[14];
  u16 bytes[16];  // of a row
  u8 rows[16];
#ifndef WL_AMX
  u8 data[8][16][64];
#endif
};

#ifdef WL_AMX
WL_FN void wl_tiles_begin(wl_tiles& tiles) {
  asm volatile("ldtilecfg %0" ::"m"(tiles));
}
WL_FN void wl_tiles_end(wl_tiles&) {
  asm volatile("tilerelease");
}
template <int N>
WL_FN void wl_tile_zero(wl_tiles&) {
  asm volatile("tilezero %%tmm%c0" ::"i"(N));
}
// Rows are `step` bytes apart.
template <int N, class T>
WL_FN void wl_tile_load(wl_tiles&, const T* p, long step) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(step), "i"(N) : "memory");
}
template <int N, class T>
WL_FN void wl_tile_store(wl_tiles&, T* p, long step) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(step), "i"(N) : "memory");
}
#define WL_TILE_PRODUCT(name, code, dot, sum)                                    \
  template <int C, int A, int B>                                                 \
  WL_FN void wl_mma_##name(wl_tiles&) {                                          \
    asm volatile(code " %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B)); \
  }
#else
#define WL_TILE_FN static __attribute__((noinline, unused))
WL_FN void wl_tiles_begin(wl_tiles&) {}
WL_FN void wl_tiles_end(wl_tiles&) {}
WL_TILE_FN void wl_tile_clear(wl_tiles& tiles, int number) {
  for (auto& row : tiles.data[number])
    for (u8& byte : row) byte = 0;
}
WL_TILE_FN void wl_tile_read(wl_tiles& tiles, int number, const u8* p, long step) {
  wl_tile_clear(tiles, number);
  for (int row = 0; row < tiles.rows[number]; ++row)
    for (int i = 0; i < tiles.bytes[number]; ++i) tiles.data[number][row][i] = p[row * step + i];
}
WL_TILE_FN void wl_tile_write(wl_tiles& tiles, int number, u8* p, long step) {
  for (int row = 0; row < tiles.rows[number]; ++row)
    for (int i = 0; i < tiles.bytes[number]; ++i) p[row * step + i] = tiles.data[number][row][i];
}
template <int N>
WL_FN void wl_tile_zero(wl_tiles& tiles) {
  wl_tile_clear(tiles, N);
}
template <int N, class T>
WL_FN void wl_tile_load(wl_tiles& tiles, const T* p, long step) {
  wl_tile_read(tiles, N, (const u8*)p, step);
}
template <int N, class T>
WL_FN void wl_tile_store(wl_tiles& tiles, T* p, long step) {
  wl_tile_write(tiles, N, (u8*)p, step);
}
// Sums of the products of words; the processor faults where the shapes do not fit.
template <class S, S Dot(S, u32, u32)>
WL_TILE_FN void wl_tile_product(wl_tiles& tiles, int c, int a, int b) {
  if (tiles.bytes[a] != 4 * tiles.rows[b] || tiles.rows[a] != tiles.rows[c] || tiles.bytes[b] != tiles.bytes[c])
    __builtin_trap();
  for (int m = 0; m < tiles.rows[c]; ++m)
    for (int n = 0; n < tiles.bytes[c]; n += 4) {
      S sum = wl_load<S>((const S*)&tiles.data[c][m][n]);
      for (int k = 0; k < tiles.rows[b]; ++k)
        sum = Dot(sum, wl_load<u32>((const u32*)&tiles.data[a][m][4 * k]),
                  wl_load<u32>((const u32*)&tiles.data[b][k][n]));
      wl_store((S*)&tiles.data[c][m][n], sum);
    }
}
#define WL_TILE_PRODUCT(name, code, dot, sum)            \
  template <int C, int A, int B>                         \
  WL_FN void wl_mma_##name(wl_tiles& tiles) {            \
    wl_tile_product<sum, dot<sum, u32>>(tiles, C, A, B); \
  }
#endif
WL_TILE_PRODUCT(m16n16k32_bf16, "tdpbf16ps", wl_dot_bf16_bf16, f32)
WL_TILE_PRODUCT(m16n16k64_u8i8, "tdpbusd", wl_dot_u8_i8, i32)
WL_TILE_PRODUCT(m16n16k64_i8u8, "tdpbsud", wl_dot_i8_u8, i32)
