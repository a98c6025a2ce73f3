// What every target says alike, in terms of its own operations: rounding, reciprocals, conditions, index arithmetic,
// guards.
template <class V>
WL_FN V wl_round(V x) {
  return wl_round_to<0>(x);
}
template <class V>
WL_FN V wl_floor(V x) {
  return wl_round_to<1>(x);
}
template <class V>
WL_FN V wl_ceil(V x) {
  return wl_round_to<2>(x);
}
template <class V>
WL_FN V wl_trunc(V x) {
  return wl_round_to<3>(x);
}
template <class V>
WL_FN V wl_rcp(V x) {
  return 1 / x;
}
template <class V>
WL_FN V wl_rsqrt(V x) {
  return 1 / wl_sqrt(x);
}

// Ops on conditions.
template <class A, class B>
WL_FN auto wl_logical_and(A a, B b) {
  return wl_and(a, b);
}
template <class A, class B>
WL_FN auto wl_logical_or(A a, B b) {
  return wl_or(a, b);
}
template <class A, class B>
WL_FN auto wl_logical_xor(A a, B b) {
  return wl_xor(a, b);
}
template <class A>
WL_FN auto wl_logical_not(A a) {
  return wl_not(a);
}

WL_FN long wl_lmin(long a, long b) {
  return a < b ? a : b;
}
WL_FN long wl_lmax(long a, long b) {
  return a > b ? a : b;
}
// a / b rounded up; b > 0.
WL_FN long wl_divide_up(long a, long b) {
  return a > 0 ? (a + b - 1) / b : -(-a / b);
}
// A guard, 0 <= at + lane * step < extent: for a scalar, and the range of lanes for which it holds.
WL_FN bool wl_within(long at, long extent) {
  return (u64)at < (u64)extent;
}
WL_FN long wl_first_lane(long at, long step, long extent) {
  return step > 0 ? wl_divide_up(-at, step) : wl_divide_up(at - extent + 1, -step);
}
WL_FN long wl_end_lane(long at, long step, long extent) {
  return step > 0 ? wl_divide_up(extent - at, step) : wl_divide_up(at + 1, -step);
}
// Elements left of a vector, as an int that cannot overflow.
WL_FN int wl_left(long n) {
  return n < 0 ? 0 : n > WL_LANES ? WL_LANES : (int)n;
}
// A gathered index; negative ones count from the end.
WL_FN long wl_wrap(long index, long extent) {
  return index < 0 ? index + extent : index;
}
// The same for an index that may be outside the axis, of which the nearest element is taken.
WL_FN long wl_place(long index, long extent) {
  return wl_lmax(0, wl_lmin(wl_wrap(index, extent), extent - 1));
}
