// The second half of the probe of the CPU prelude, compiled after prelude_probe.cc: tests of memory accesses, casts,
// conditions and small floats, and main().

namespace {

// Tests loads of the last elements before an inaccessible page, and stores of some elements, which must not change the
// elements beyond them.
template <class V>
void memory(const char* name) {
  typedef wl_e<V> T;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* base = static_cast<char*>(mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (base == MAP_FAILED || mprotect(base + page, page, PROT_READ | PROT_WRITE)) return broken("mmap");
  T* end = reinterpret_cast<T*>(base + 2 * page);
  for (int left = -1; left <= kLanes; ++left) {
    int n = left < 0 ? 0 : left;
    for (int i = 0; i < n; ++i) end[i - n] = static_cast<T>(i + 1);
    V v = wl_load_n<V>(end - n, left, static_cast<T>(99));
    V g = wl_gather_n<V>(end - n, 1, left, static_cast<T>(99));
    for (int i = 0; i < kLanes; ++i) {
      T want = static_cast<T>(i < n ? i + 1 : 99);
      if (Lanes<V>(v).at[i] != want)
        broken(name, left, i, static_cast<double>(Lanes<V>(v).at[i]), static_cast<double>(want));
      if (Lanes<V>(g).at[i] != want)
        broken("gather_n", left, i, static_cast<double>(Lanes<V>(g).at[i]), static_cast<double>(want));
    }
    V iota = wl_iota<V>();
    wl_store_n(end - n, iota, left);
    for (int i = 0; i < n; ++i)
      if (end[i - n] != static_cast<T>(i)) broken("store_n", left, i);
    T room[48];
    for (T& t : room) t = 77;
    wl_store_n(room + 1, iota, left);
    wl_scatter_n(room + 20, 1, iota, left);
    for (int i = -1; i < kLanes; ++i) {
      T want = static_cast<T>(i >= 0 && i < n ? i : 77);
      if (room[1 + i] != want || room[20 + i] != want) broken("store_n outside", left, i);
    }
    V kept = wl_keep(iota, left, static_cast<T>(5));
    for (int i = 0; i < kLanes; ++i)
      if (Lanes<V>(kept).at[i] != static_cast<T>(i < n ? i : 5)) broken("keep", left, i);
  }
  // Gathers every second element, from the first one of a page to the last one of another page.
  for (int left = 1; left <= kLanes; ++left) {
    T* const first = end - (2 * left - 1);
    for (int i = 0; i < 2 * left - 1; ++i) first[i] = static_cast<T>(i + 1);
    const V g = wl_gather_n<V>(first, 2, left, static_cast<T>(99));
    const V whole = wl_gather<V>(end - (2 * kLanes - 1), 2);
    expect(Lanes<V>(whole).at[kLanes - 1] == static_cast<T>(2 * left - 1), "gather 2 at the end");
    for (int i = 0; i < kLanes; ++i)
      if (Lanes<V>(g).at[i] != static_cast<T>(i < left ? 2 * i + 1 : 99)) broken("gather_n 2", left, i);
    if constexpr (kLanes > 1)
      for (int low = -1; low <= left; ++low) {
        // Lanes below `low` lie before the page's first element.
        T* const begin = reinterpret_cast<T*>(base + page) - 2 * (low < 0 ? 0 : low);
        const V upper = wl_gather_in<V>(first, 2, low, left, wl_splat<V>(99));
        for (int i = 0; i < 2 * kLanes; ++i) reinterpret_cast<T*>(base + page)[i] = static_cast<T>(i + 1);
        const V lower = wl_gather_in<V>(begin, 2, low, kLanes, wl_splat<V>(99));
        for (int i = 0; i < 2 * left - 1; ++i) first[i] = static_cast<T>(i + 1);
        for (int i = 0; i < kLanes; ++i) {
          const bool above = i >= low;
          if (Lanes<V>(upper).at[i] != static_cast<T>(above && i < left ? 2 * i + 1 : 99))
            broken("gather_in 2", left, i);
          if (Lanes<V>(lower).at[i] != static_cast<T>(above ? 2 * (i - (low < 0 ? 0 : low)) + 1 : 99))
            broken("gather_in 2 of the first", low, i);
        }
      }
  }
  alignas(128) T wide[3 * 16 * 4] = {};
  for (int i = 0; i < 3 * 16; ++i) wide[i] = static_cast<T>(i);
  V strided = wl_gather<V>(wide, 3);
  V indexed = wl_gather_at<V>(wide, wl_mul(wl_iota<i32v>(), 2));
  for (int i = 0; i < kLanes; ++i) expect(Lanes<V>(strided).at[i] == static_cast<T>(3 * i), "gather");
  for (int i = 0; i < kLanes; ++i) expect(Lanes<V>(indexed).at[i] == static_cast<T>(2 * i), "gather_at");
  wl_scatter(wide, 2, wl_load<V>(wide + 1));
  for (int i = 0; i < kLanes; ++i) expect(wide[2 * i] == static_cast<T>(i + 1), "scatter");
  wl_stream(wide + 16 * 3, wl_load<V>(wide + 1));
  wl_stream_n(wide + 16 * 2, wl_iota<V>(), kLanes - 1);
  wl_fence();
  for (int i = 0; i < kLanes; ++i) expect(wide[48 + i] == wide[1 + i], "stream");
  for (int i = 0; i + 1 < kLanes; ++i) expect(wide[32 + i] == static_cast<T>(i), "stream_n");
  wl_prefetch<1>(end), wl_prefetch<2>(end), wl_prefetch<3>(end);
  munmap(base, 3 * page);
}

template <class V>
void horizontal() {
  typedef wl_e<V> T;
  V v = wl_add(wl_iota<V>(), T(1));
  expect(wl_hsum(v) == T(kLanes * (kLanes + 1) / 2), "hsum");
  expect(wl_hmax(v) == T(kLanes) && wl_hmin(v) == T(1), "hmax, hmin");
  expect(wl_hprod(wl_splat<V>(2)) == T(1 << kLanes), "hprod");
  if constexpr (wl_float<V>) {
    for (int i = 0; i < kLanes; ++i) {
      Lanes<V> l(v);
      l.at[i] = kNan;
      V with = wl_load<V>(l.at);
      expect(std::isnan(wl_hmax(with)) && std::isnan(wl_hmin(with)) && std::isnan(wl_hsum(with)), "horizontal NaN");
    }
  }
}

template <class To, class From>
void cast_one(const char* name) {
  for (double x : {0.0, 1.0, 2.75, -2.75, 100.0}) {
    if (wl_bool<From> && x != 0 && x != 1) continue;
    wl_e<From> in = static_cast<wl_e<From>>(x);
    wl_e<To> want = wl_bool<To> ? static_cast<wl_e<To>>(in != 0) : static_cast<wl_e<To>>(in);
    To got = wl_cast<To>(wl_splat<From>(in));
    for (int i = 0; i < kLanes; ++i)
      if (Lanes<To>(got).at[i] != want) broken(name, x, i, double(Lanes<To>(got).at[i]), double(want));
    expect(wl_cast<wl_e<To>>(in) == want, "scalar cast");
    expect(Lanes<To>(wl_cast<To>(in)).at[0] == want, "cast of a scalar to a vector");
  }
}
template <class To>
void casts(const char* name) {
  cast_one<To, f32v>(name), cast_one<To, f64v>(name), cast_one<To, i32v>(name), cast_one<To, i64v>(name);
  cast_one<To, u8v>(name);
  To ones = wl_cast<To>(wl_lt(wl_iota<i32v>(), 1000)), wide = wl_cast<To>(wl_lt(wl_iota<f64v>(), 1000));
  expect(Lanes<To>(ones).at[0] == 1 && Lanes<To>(wide).at[kLanes - 1] == 1, "cast of a comparison");
}

// Converts every value of a small integer type to a wider type and back.
template <class Small>
void widths(const char* name) {
  typedef wl_e<Small> T;
  for (int first = 0; first < 1 << (8 * sizeof(T)); first += kLanes) {
    alignas(64) T in[kLanes];
    for (int i = 0; i < kLanes; ++i) in[i] = static_cast<T>(first + i);
    const Small small = wl_load<Small>(in);
    const i32v whole = wl_cast<i32v>(small);
    const Lanes<i32v> wide(whole);
    const Lanes<i64v> widest(wl_cast<i64v>(small));
    const Lanes<f32v> floating(wl_cast<f32v>(small));
    const Lanes<f64v> precise(wl_cast<f64v>(small));
    const Lanes<Small> low(wl_narrow<Small>(wl_add(whole, 7 << 16))), lowest(wl_narrow<Small>(wl_cast<i64v>(small)));
    for (int i = 0; i < kLanes; ++i)
      if (wide.at[i] != in[i] || widest.at[i] != in[i] || floating.at[i] != in[i] || precise.at[i] != in[i] ||
          low.at[i] != in[i] || lowest.at[i] != in[i])
        broken(name, in[i], i, wide.at[i], low.at[i]);
  }
}

template <class Small>
void saturations(const char* name) {
  typedef std::numeric_limits<wl_e<Small>> Limits;
  const auto one = [&](float x) {
    const int low = Limits::min(), high = Limits::max();
    const int want = std::isnan(x) ? 0 : x <= low ? low : x >= high ? high : static_cast<int>(x);
    const int got = Lanes<i32v>(wl_to_int<i32v>(wl_splat<f32v>(x), low, high)).at[kLanes - 1];
    if (got != want || wl_to_int<i32>(x, low, high) != want) broken(name, x, 0, got, want);
  };
  for (float x : kSpecials) one(x);
  for (int i = -140000; i < 140000; ++i) one(static_cast<float>(i) * 0.5f);
}

void conditions() {
  f32v x = wl_sub(wl_iota<f32v>(), 1);
  auto positive = wl_gt(x, 0);
  auto even = wl_eq(wl_and(wl_cast<i64v>(x), 1), 0);
  u8v stored = wl_cast<u8v>(wl_lt(x, 2));
  auto all = wl_and(wl_and(positive, even), wl_not(stored));
  auto any = wl_or(stored, wl_xor(positive, true));
  f64v chosen = wl_select(all, wl_cast<f64v>(x), -5);
  f32v other = wl_select(any, x, 7.0f);
  u8v inverse = wl_not(stored);
  for (int i = 0; i < kLanes; ++i) {
    float v = static_cast<float>(i - 1);
    bool a = v > 0 && (i - 1) % 2 == 0 && !(v < 2), o = v < 2 || !(v > 0);
    expect(Lanes<f64v>(chosen).at[i] == (a ? v : -5), "and, select");
    expect(Lanes<f32v>(other).at[i] == (o ? v : 7.0f), "or, xor, select");
    expect(Lanes<u8v>(inverse).at[i] == !(v < 2), "not of stored booleans");
  }
  expect(wl_select(true, 1.0f, 2.0f) == 1.0f && wl_select(b1{0}, 1.0f, 2.0f) == 2.0f, "scalar select");
  expect(Lanes<f32v>(wl_select(wl_lt(1, 2), x, 9.0f)).at[0] == -1, "select by a scalar");
}

void half_precision() {
  for (uint32_t h = 0; h < 65536; ++h) {
    u16 bits = static_cast<u16>(h);
    float f = Lanes<f32v>(wl_from_f16<f32v>(wl_splat<u16v>(bits))).at[0];
    int e = (h >> 10) & 31, m = h & 1023;
    double want = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(1024 + m, e - 25) : std::ldexp(m, -24);
    if (h >> 15) want = -want;
    if (!same(f, want)) broken("from_f16", h, 0, f, want);
    u16 back = Lanes<u16v>(wl_to_f16(wl_splat<f32v>(f))).at[0];
    if (std::isnan(f) ? !(e == 31 && (back & 1023)) : back != bits) broken("to_f16", h, 0, back, h);
    float b = wl_from_bf16<f32>(bits);
    u16 again = Lanes<u16v>(wl_to_bf16(wl_splat<f32v>(b))).at[kLanes - 1];
    if (!std::isnan(b) && again != bits) broken("to_bf16", h, 0, again, h);
    if (std::isnan(b) && (again & 0x7fff) <= 0x7f80) broken("to_bf16 of NaN", h);
  }
  expect(wl_to_f16(65519.9f) == 0x7bff && wl_to_f16(65520.0f) == 0x7c00, "f16 overflow");
  expect(wl_to_f16(1.00048828125f) == 0x3c00 && wl_to_f16(1.0014648f) == 0x3c02, "f16 ties to even");
  expect(wl_to_f16(2.98e-8f) == 0 && wl_to_f16(2.99e-8f) == 1, "f16 underflow");
  expect(wl_to_bf16(from_bits(0x3f808000)) == 0x3f80 && wl_to_bf16(from_bits(0x3f818000)) == 0x3f82,
         "bf16 ties to even");
}

// Tests the conversions `from` and `to` of an 8-bit float format for all its numbers. MANTISSA: the stored bits of the
// mantissa. BIAS: the bias of the exponent. LARGEST: the bit pattern of the largest finite number.
template <int MANTISSA, int BIAS, int LARGEST, class From, class To>
void eight_bits(const char* name, From from, To to) {
  const auto decode = [](int m) {
    const int e = m >> MANTISSA, f = m & ((1 << MANTISSA) - 1);
    return e ? std::ldexp(f + (1 << MANTISSA), e - BIAS - MANTISSA) : std::ldexp(f, 1 - BIAS - MANTISSA);
  };
  const bool infinite = MANTISSA == 2;
  for (int h = 0; h < 256; ++h) {
    const int m = h & 127;
    const double sign = h >> 7 ? -1 : 1;
    const double want = m <= LARGEST ? sign * decode(m) : infinite && m == LARGEST + 1 ? sign * INFINITY : NAN;
    const float f = from(static_cast<u8>(h));
    if (!same(f, want) || std::signbit(f) != (h >> 7)) broken(name, static_cast<uint32_t>(h), 0, f, want);
    const int back = to(f);
    if (std::isnan(want) ? back >> 7 || !std::isnan(from(static_cast<u8>(back))) : back != h)
      broken(name, static_cast<uint32_t>(h), 1, back, h);
    if (m >= LARGEST) continue;  // below: numbers between m and m + 1 are rounded to nearest, ties to even
    const double low = decode(m), high = decode(m + 1), middle = (low + high) / 2;
    const int sign_bit = h & 128;
    const auto at = [&](double x) { return to(static_cast<float>(sign * x)); };
    if (at(middle) != (sign_bit | (m + (m & 1)))) broken(name, static_cast<uint32_t>(h), 2, at(middle), m);
    if (at(std::nextafterf(static_cast<float>(middle), 0)) != h) broken(name, static_cast<uint32_t>(h), 3, m, m);
    if (at(std::nextafterf(static_cast<float>(middle), 1e9f)) != h + 1) broken(name, static_cast<uint32_t>(h), 4, m, m);
  }
  const float largest = static_cast<float>(decode(LARGEST));
  for (float over : {1.01f, 1.07f, 1.2f, 2.0f, 1e9f})
    if (to(over * largest) != LARGEST || to(-over * largest) != (LARGEST | 128)) broken(name, 0, 5, over, 0);
  expect(to(3.4e38f) == LARGEST && to(INFINITY) == LARGEST + infinite, name);
  expect(to(1e-30f) == 0 && to(-1e-40f) == 128, name);
}

void eighth_precision() {
  eight_bits<3, 7, 0x7e>(
      "f8e4m3fn", [](u8 h) { return Lanes<f32v>(wl_from_f8e4m3fn<f32v>(wl_splat<u8v>(h))).at[0]; },
      [](float f) { return Lanes<u8v>(wl_to_f8e4m3fn(wl_splat<f32v>(f))).at[kLanes - 1]; });
  eight_bits<2, 15, 0x7b>(
      "f8e5m2", [](u8 h) { return Lanes<f32v>(wl_from_f8e5m2<f32v>(wl_splat<u8v>(h))).at[0]; },
      [](float f) { return Lanes<u8v>(wl_to_f8e5m2(wl_splat<f32v>(f))).at[kLanes - 1]; });
  expect(wl_to_f8e4m3fn(1.0f) == 0x38 && wl_from_f8e5m2<f32>(0x3c) == 1.0f, "f8 of scalars");
}

}  // namespace

int main(int, char** argv) {
  const uint32_t step = static_cast<uint32_t>(std::atoi(argv[1]));
  MEASURE(exp, expl(x));
  MEASURE(exp2, exp2l(x));
  MEASURE(expm1, expm1l(x));
  MEASURE(log, logl(x));
  MEASURE(log2, log2l(x));
  MEASURE(log1p, log1pl(x));
  MEASURE(sigmoid, 1 / (1 + expl(-x)));
  MEASURE(erf, erfl(x));
  MEASURE(tanh, tanhl(x));
  MEASURE(sin, sinl(x));
  MEASURE(cos, cosl(x));
  MEASURE(tan, tanl(x));
  MEASURE(sqrt, sqrtl(x));
  MEASURE(rsqrt, 1 / sqrtl(x));
  MEASURE(rcp, 1 / x);
  measure_pow();
  for (f32 (*f)(f32) : {+[](f32 x) { return Lanes<f32v>(wl_erf(wl_splat<f32v>(x))).at[0]; },
                        +[](f32 x) { return Lanes<f32v>(wl_tanh(wl_splat<f32v>(x))).at[0]; },
                        +[](f32 x) { return Lanes<f32v>(wl_sin(wl_splat<f32v>(x))).at[0]; },
                        +[](f32 x) { return Lanes<f32v>(wl_tan(wl_splat<f32v>(x))).at[0]; },
                        +[](f32 x) { return Lanes<f32v>(wl_expm1(wl_splat<f32v>(x))).at[0]; },
                        +[](f32 x) { return Lanes<f32v>(wl_log1p(wl_splat<f32v>(x))).at[0]; }})
    expect(std::signbit(f(-0.0f)) && !std::signbit(f(0.0f)), "the sign of zero");
  expect(Lanes<f32v>(wl_erf(wl_splat<f32v>(9.0f))).at[0] == 1 && Lanes<f32v>(wl_tanh(wl_splat<f32v>(20.0f))).at[0] == 1,
         "saturation at 1");
  arithmetic_floats<f32v>();
  arithmetic_floats<f64v>();
  arithmetic_integers<i32v>();
  arithmetic_integers<i64v>();
  arithmetic_integers<u32v>();
  arithmetic_integers<u64v>();
  memory<f32v>("load_n f32"), memory<f64v>("load_n f64"), memory<i32v>("load_n i32"), memory<i64v>("load_n i64");
  memory<u8v>("load_n u8"), memory<u16v>("load_n u16");
  horizontal<f32v>(), horizontal<f64v>(), horizontal<i32v>(), horizontal<i64v>();
  casts<f32v>("cast to f32"), casts<f64v>("cast to f64"), casts<i32v>("cast to i32"), casts<i64v>("cast to i64");
  casts<u8v>("cast to bool");
  widths<i8v>("width of i8"), widths<u8v>("width of u8"), widths<i16v>("width of i16"), widths<u16v>("width of u16");
  saturations<i8v>("to i8"), saturations<u8v>("to u8"), saturations<i16v>("to i16"), saturations<u16v>("to u16");
  conditions();
  half_precision();
  eighth_precision();
  std::puts("done");
}
