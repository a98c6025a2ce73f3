// The CPU prelude, third part: elementary functions. f32 in any width without libm; f64 lane by lane with it. Errors:
// ACCURACY.md. Polynomials are minimax fits of fit.py; "c, b, a" in comments are the usual range reductions.

#define WL_POLY2(x, a, b) ((a) * (x) + (b))
#define WL_POLY3(x, a, b, c) (WL_POLY2(x, a, b) * (x) + (c))
#define WL_POLY4(x, a, b, c, d) (WL_POLY3(x, a, b, c) * (x) + (d))
#define WL_POLY5(x, a, b, c, d, e) (WL_POLY4(x, a, b, c, d) * (x) + (e))
#define WL_POLY6(x, a, b, c, d, e, f) (WL_POLY5(x, a, b, c, d, e) * (x) + (f))
#define WL_POLY7(x, a, b, c, d, e, f, g) (WL_POLY6(x, a, b, c, d, e, f) * (x) + (g))
#define WL_POLY8(x, a, b, c, d, e, f, g, h) (WL_POLY7(x, a, b, c, d, e, f, g) * (x) + (h))
#define WL_F64(f)                                       \
  if constexpr (wl_is64<V>)                             \
    return wl_each(x, [](f64 v) { return (f64)f(v); }); \
  else

// p * 2^n for integral n in [-151, 129], rounded once where the result is denormal. By target.
template <class V>
WL_FN V wl_scale(V p, V n) {
#ifdef WL_AVX512
  if constexpr (wl_same<V, wl_v<f32, 16>>)
    return __builtin_ia32_scalefps512_mask(p, n, p, -1, 4);
  else if constexpr (wl_same<V, wl_v<f32, 8>>)
    return __builtin_ia32_scalefps256_mask(p, n, p, -1);
  else if constexpr (wl_same<V, wl_v<f32, 4>>)
    return __builtin_ia32_scalefps128_mask(p, n, p, -1);
  else
#endif
  {
    typedef wl_i<V> I;
    I i = wl_cast<I>(n), h = i >> 1;
    return p * __builtin_bit_cast(V, (h + 127) << 23) * __builtin_bit_cast(V, (i - h + 127) << 23);
  }
}
// r = x - n ln 2 with n = round(x / ln 2): the first part of ln 2 has trailing zeros, so n times it is exact.
template <class V>
WL_FN V wl_exp_reduce(V x, V& n) {
  n = wl_round(x * 1.44269504f);
  return (x - n * 0.693359375f) + n * 2.12194440e-4f;
}
template <class V>
WL_FN V wl_exp_poly(V r) {
  return WL_POLY7(r, 0.00138201378f, 0.00836868584f, 0.0416682735f, 0.166665211f, 0.49999994f, 1.0f, 1.0f);
}
// exp of x in [-104, 89]. WL_EXP, WL_EXP2, WL_ERF and WL_TANH are a target's own for one float, whatever it is.
template <class V>
WL_FN V wl_exp_bounded(V x) {
#ifdef WL_EXP
  if constexpr (wl_same<V, f32>) return WL_EXP(x);
#endif
  V n, r = wl_exp_reduce(x, n);
  return wl_scale(wl_exp_poly(r), n);
}
#if defined(WL_AVX512) && WL_LANES == 16
// table[i mod 16].
WL_FN f32v wl_permute(i32v i, const f32* table) {
#ifdef __clang__
  return __builtin_ia32_permvarsf512(*(const f32v*)table, i);
#else
  f32v t = *(const f32v*)table;
  return __builtin_ia32_permvarsf512_mask(t, i, t, -1);
#endif
}
alignas(64) static const f32 wl_exp_table[16] = {
    1,           1.04427373f, 1.09050775f, 1.13878858f, 1.18920708f, 1.24185777f, 1.29683959f, 1.35425556f,
    1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f, 1.68179286f, 1.75625217f, 1.8340081f,  1.91520655f};
#endif
// Of sixteen lanes n is in sixteenths, whose powers one permute looks up (the sum's last bits count them), so that half
// of the polynomial is enough; wl_scale drops its fraction, and makes of any n what is right for a positive factor. So
// only r is bounded, which large and infinite x make a wrong number or NaN; n is NaN where x is.
template <class V>
WL_FN V wl_exp(V x) {
  WL_F64(__builtin_exp) {
#if defined(WL_AVX512) && WL_LANES == 16
    if constexpr (wl_same<V, f32v>) {
      V t = x * 1.44269504f + 786432.0f, n = t - 786432.0f,
        power = wl_permute(__builtin_bit_cast(i32v, t), wl_exp_table);
      V r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
      r = __builtin_ia32_rangeps512_mask(r, wl_splat<V>(0.0625f), 2, r, -1, 4);  // the less in magnitude, r's sign
      return wl_scale(power * (WL_POLY3(r, 0.166668355f, 0.500016212f, 1.0f) * r) + power, n);
    }
#endif
#ifdef WL_EXP
    if constexpr (wl_same<V, f32>) return WL_EXP(x);
#endif
    return wl_exp_bounded(wl_maxx(wl_splat<V>(-104.0f), wl_minx(wl_splat<V>(89.0f), x)));
  }
}
template <class V>
WL_FN V wl_exp2(V x) {
  WL_F64(__builtin_exp2) {
#ifdef WL_EXP2
    if constexpr (wl_same<V, f32>) return WL_EXP2(x);
#endif
    x = wl_maxx(wl_splat<V>(-151.0f), wl_minx(wl_splat<V>(129.0f), x));
    V n = wl_round(x), f = x - n;
    return wl_scale(
        WL_POLY7(f, 0.00015329264f, 0.00133909693f, 0.00961849932f, 0.0555035956f, 0.240226477f, 0.693147182f, 1.0f),
        n);
  }
}
template <class V>
WL_FN V wl_expm1(V x) {
  WL_F64(__builtin_expm1) {
    V n, r = wl_exp_reduce(wl_maxx(wl_splat<V>(-20.0f), wl_minx(wl_splat<V>(89.0f), x)), n);
    V p = r * r * WL_POLY5(r, 0.00138706958f, 0.00836627185f, 0.0416674353f, 0.166665465f, 0.49999997f) + r;
    V half = wl_scale(wl_splat<V>(0.5f), n);
    return x == 0 ? x : (half * p + (half - 0.5f)) * 2;
  }
}

// m in [0.75, 1.5) and e with a = m 2^e, for positive a, denormals too; in AVX-512 zero gives e = -inf, and so on.
template <class V>
WL_FN V wl_log_reduce(V x, V& e) {
#ifdef WL_AVX512
  if constexpr (wl_same<V, wl_v<f32, 16>>) {
    V m = __builtin_ia32_getmantps512_mask(x, 11, x, -1, 4);
    e = __builtin_ia32_getexpps512_mask(x, x, -1, 4) - __builtin_ia32_getexpps512_mask(m, m, -1, 4);
    return m;
  } else if constexpr (wl_same<V, wl_v<f32, 8>>) {
    V m = __builtin_ia32_getmantps256_mask(x, 11, x, -1);
    e = __builtin_ia32_getexpps256_mask(x, x, -1) - __builtin_ia32_getexpps256_mask(m, m, -1);
    return m;
  } else if constexpr (wl_same<V, wl_v<f32, 4>>) {
    V m = __builtin_ia32_getmantps128_mask(x, 11, x, -1);
    e = __builtin_ia32_getexpps128_mask(x, x, -1) - __builtin_ia32_getexpps128_mask(m, m, -1);
    return m;
  } else
#endif
  {
    typedef wl_i<V> I;
    V small = wl_splat<V>(1.17549435e-38f), big = x * 8388608.0f;
    I i = __builtin_bit_cast(I, x < small ? big : x) - 0x3f400000;
    e = wl_cast<V>(i >> 23) - (x < small ? wl_splat<V>(23) : wl_splat<V>(0));
    return __builtin_bit_cast(V, (i & 0x7fffff) + 0x3f400000);
  }
}
// The results for zero, infinity, NaN and negative arguments, where the reduction has not given them.
template <class V>
WL_FN V wl_log_special(V x, V r) {
#ifdef WL_AVX512
  if constexpr (wl_n < V >> 1) return r;
#endif
  r = x < wl_splat<V>(__builtin_inff()) ? r : x;
  r = x > 0 ? r : x + wl_splat<V>(__builtin_nanf(""));
  return x == 0 ? wl_splat<V>(-__builtin_inff()) : r;
}
template <class V>
WL_FN V wl_log_poly(V f) {
  return f * f *
             WL_POLY8(f, 0.054173097f, -0.120700188f, 0.149830461f, -0.168220878f, 0.199771047f, -0.249934942f,
                      0.333335489f, -0.500000596f) +
         f;
}
template <class V>
WL_FN V wl_log(V x) {
  WL_F64(__builtin_log) {
    V e, f = wl_log_reduce(x, e) - 1;
    return wl_log_special(x, e * 0.693147182f + wl_log_poly(f));
  }
}
template <class V>
WL_FN V wl_log2(V x) {
  WL_F64(__builtin_log2) {
    V e, f = wl_log_reduce(x, e) - 1;
    V p = WL_POLY8(f, 0.0786767229f, -0.174734876f, 0.216282278f, -0.242614269f, 0.288182706f, -0.360582888f,
                   0.480902791f, -0.721348345f);
    return wl_log_special(x, f * (p * f + 1.44269502f) + e);
  }
}
// log(u) for u = fl(1 + x), the rounding error scaled into the mantissa: exactly x where the exponent is 0.
template <class V>
WL_FN V wl_log1p(V x) {
  WL_F64(__builtin_log1p) {
    V u = 1 + x, e, m = wl_log_reduce(u, e);
    V c = x - (u - 1), huge = wl_splat<V>(16777216.0f), zero = wl_splat<V>(0);
    c = x < huge ? wl_scale(c, wl_maxx(wl_splat<V>(-150.0f), -e)) : zero;
    V r = wl_log_special(u, e * 0.693147182f + wl_log_poly((m - 1) + (u > 0 ? c : zero)));
    return x == 0 ? x : r;
  }
}

template <class V>
WL_FN V wl_sigmoid(V x) {
  WL_F64([](f64 b) {
    const f64 e = __builtin_exp(-__builtin_fabs(b));
    return (b < 0 ? e : 1) / (1 + e);
  }) {
    V e = wl_exp_bounded(wl_maxx(wl_splat<V>(-104.0f), -wl_abs(x))), one = wl_splat<V>(1);
    return (x < 0 ? e : one) / (1 + e);
  }
}
#if defined(WL_AVX512) && WL_LANES == 16
// Piecewise polynomials: one permute per coefficient looks up sixteen intervals.
alignas(64) static const f32 wl_erf_table[6][16] = {
    {0, 0.28046301f, 0.527338445f, 0.718623817f, 0.849086046f, 0.927408159f, 0.968796372f, 0.988047481f, 0.995929182f,
     0.998769462f, 0.999670327f, 0.999921799f, 0.999983609f, 0.99999696f, 0.999999523f, 0.99999994f},
    {1.12837923f, 1.05792975f, 0.871890545f, 0.631641567f, 0.402237773f, 0.225163758f, 0.110794343f, 0.047922574f,
     0.0182207488f, 0.00608969759f, 0.00178907579f, 0.000462024705f, 0.000104883009f, 2.09290029e-05f, 3.67109351e-06f,
     5.66038295e-07f},
    {-1.44669411e-05f, -0.268610924f, -0.44273448f, -0.48113367f, -0.408529043f, -0.285860896f, -0.168800324f,
     -0.0851659402f, -0.037010517f, -0.0139294248f, -0.00455245003f, -0.00128900458f, -0.000325967674f,
     -6.97809664e-05f, -2.34248491e-05f, -8.22819038e-06f},
    {-0.375567585f, -0.30719769f, -0.140706405f, 0.0337690115f, 0.142520308f, 0.166875258f, 0.134493679f, 0.084950693f,
     0.0440456048f, 0.0191701278f, 0.00709279254f, 0.00224865112f, 0.000614109915f, 0.000145021797f, 2.96950602e-05f,
     5.28346709e-06f},
    {-0.00689326599f, 0.127648264f, 0.181143194f, 0.14713268f, 0.0642852336f, -0.0097755203f, -0.0451448187f,
     -0.0475250334f, -0.032423228f, -0.0164816678f, -0.00692516705f, -0.00282090553f, -0.000445085607f,
     -0.000176708767f, 0.000589098781f, 0.00036412006f},
    {0.139086202f, 0.0800488293f, 0.00318872579f, -0.0542479977f, -0.0681693926f, -0.0444699712f, -0.0122573478f,
     0.00781787839f, 0.0130417868f, 0.0100240605f, 0.00549559016f, 0.00236744899f, 0.000834659906f, 0.000245519594f,
     6.10457791e-05f, 1.29363607e-05f}};
alignas(64) static const f32 wl_tanh_table[7][16] = {
    {0.999966621f, 0.99999547f, 0.999999404f, 0.99999994f, 0, 0.3583574f, 0.554599702f, 0.703905582f, 0.848283768f,
     0.941375554f, 0.978026092f, 0.991859734f, 0.996997654f, 0.998894453f, 0.999593139f, 0.999850333f},
    {6.68045686e-05f, 9.04127683e-06f, 1.22360848e-06f, 1.65599943e-07f, 1, 0.871580064f, 0.692419112f, 0.5045169f,
     0.280414909f, 0.113812f, 0.0434649177f, 0.0162142869f, 0.00599571504f, 0.00220989226f, 0.0008135424f,
     0.000299362524f},
    {-6.74711555e-05f, -8.73396493e-06f, -1.72060982e-06f, -8.83457915e-07f, 9.53559902e-06f, -0.312330365f,
     -0.384002656f, -0.355123073f, -0.237904355f, -0.107144408f, -0.0425057039f, -0.016082244f, -0.00597961294f,
     -0.00220856233f, -0.000812212005f, -0.000302480912f},
    {4.4503151e-05f, 6.02373575e-06f, 8.15227054e-07f, 1.74778393e-07f, -0.333675116f, -0.178627178f, -0.0178193431f,
     0.0818110928f, 0.108324863f, 0.0629310533f, 0.0270877238f, 0.0105463266f, 0.00396104017f, 0.00146832224f,
     0.000541679678f, 0.000199476111f},
    {-2.03627733e-05f, -4.33460218e-06f, 1.55008865e-06f, 2.88680758e-06f, 0.00363852642f, 0.166637078f, 0.136708885f,
     0.0604139343f, -0.0111781619f, -0.0233286358f, -0.0124331694f, -0.00513495784f, -0.00194186496f, -0.000719213742f,
     -0.000288501207f, -5.03141564e-05f},
    {9.23212519e-06f, 1.24851022e-06f, 1.69163116e-07f, -4.24457944e-08f, 0.120368123f, 0.0204438828f, -0.0554058254f,
     -0.0589908659f, -0.0197270922f, 0.00344599737f, 0.00397692947f, 0.00191459304f, 0.000769997481f, 0.000292316807f,
     0.000108739252f, 4.020091e-05f},
    {5.5f, 6.5f, 7.5f, 8.5f, 0, 0.375f, 0.625f, 0.875f, 1.25f, 1.75f, 2.25f, 2.75f, 3.25f, 3.75f, 4.25f, 4.75f}};
WL_FN f32v wl_piece(f32v r, i32v i, const f32 (*t)[16]) {
  f32v p = wl_permute(i, t[5]) * r + wl_permute(i, t[4]);
  p = p * r + wl_permute(i, t[3]);
  p = p * r + wl_permute(i, t[2]);
  p = p * r + wl_permute(i, t[1]);
  return p * r + wl_permute(i, t[0]);
}
WL_FN f32v wl_with_sign(f32v r, f32v x) {
  return __builtin_bit_cast(f32v, __builtin_bit_cast(i32v, r) | (__builtin_bit_cast(i32v, x) & (i32)0x80000000));
}
#endif
// Sixteen intervals 65/256 apart (their number is round(|x| 256/65)), else x p(x^2) below 1 and 1 - exp(g(|x|)) above.
template <class V>
WL_FN V wl_erf(V x) {
#if defined(WL_AVX512) && WL_LANES == 16
  if constexpr (wl_same<V, f32v>) {
    V a = wl_minx(wl_splat<V>(3.9257812f), wl_abs(x)), t = a * 3.93846154f + 12582912.0f;
    return wl_with_sign(wl_piece(a - (t - 12582912.0f) * 0.25390625f, __builtin_bit_cast(i32v, t), wl_erf_table), x);
  } else
#endif
    WL_F64(__builtin_erf) {
#ifdef WL_ERF
      if constexpr (wl_same<V, f32>) return WL_ERF(x);
#endif
      V a = wl_minx(wl_splat<V>(4.0f), wl_abs(x)), s = a * a;
      V small =
          WL_POLY6(s, -0.000563193928f, 0.00491765095f, -0.0267113522f, 0.112801783f, -0.37612325f, 0.128379121f) * x +
          x;
      V g = WL_POLY7(a, 0.000187968471f, -0.00296397856f, 0.0219063871f, -0.103256069f, -0.637965083f, -1.12720227f,
                     -0.000312458607f);
      V big = wl_copysign(1 - wl_exp_bounded(g), x);
      return a < 1 ? small : big;
    }
}
// Sixteen intervals of an eighth of an octave of |x| + 3; else x p(x^2) below 0.625 and 1 - 2 / (exp(2|x|) + 1).
template <class V>
WL_FN V wl_tanh(V x) {
#if defined(WL_AVX512) && WL_LANES == 16
  if constexpr (wl_same<V, f32v>) {
    V a = wl_minx(wl_splat<V>(8.9999990f), wl_abs(x));
    i32v i = __builtin_bit_cast(i32v, a + 3.0f) >> 20;
    return wl_with_sign(wl_piece(a - wl_permute(i, wl_tanh_table[6]), i, wl_tanh_table), x);
  } else
#endif
    WL_F64(__builtin_tanh) {
#ifdef WL_TANH
      if constexpr (wl_same<V, f32>) return WL_TANH(x);
#endif
      V a = wl_minx(wl_splat<V>(10.0f), wl_abs(x)), s = a * a;
      V small = WL_POLY5(s, -0.00569631765f, 0.0206308961f, -0.053737063f, 0.133314088f, -0.333332807f) * (s * x) + x;
      V big = wl_copysign(1 - 2 / (wl_exp_bounded(a + a) + 1), x);
      return x == 0 ? x : a < 0.625f ? small : big;
    }
}
