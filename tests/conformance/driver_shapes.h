// Compares the functions of a vendor's header with the pointers through which Warploom calls them (runtime/gpu_api.h).
// Warploom declares handles and enumerations with other types, so arguments and results are compared by size and by
// whether they are floating-point numbers, which decides in which registers they are passed.
#pragma once

#include <type_traits>

#include "runtime/gpu_api.h"
#include "runtime/gpu_tables.h"

namespace wl::testing {

template <class T>
constexpr int kPassed = 2 * static_cast<int>(sizeof(T)) + (std::is_floating_point_v<T> ? 1 : 0);

// Whether two function pointers have the same shape. Only their types are used, not their values.
template <class R, class... A, class OurR, class... OurA>
consteval bool same_shape(R (*)(A...), OurR (*)(OurA...)) {
  if constexpr (sizeof...(A) != sizeof...(OurA)) {
    return false;
  } else {
    return kPassed<R> == kPassed<OurR> && ((kPassed<A> == kPassed<OurA>)&&...);
  }
}

}  // namespace wl::testing

// Asserts that a function pointer `member` of `table` has the shape of the vendor header's function `name`.
#define WL_SAME_SHAPE_OF(table, member, name) \
  static_assert(wl::testing::same_shape(&name, decltype(table::member)(nullptr)), #name);
#define WL_SAME_SHAPE(member, name) WL_SAME_SHAPE_OF(wl::GpuApi, member, name)
// Asserts that `number`, from one of Warploom's tables, is the value of the vendor header's constant `name`.
#define WL_SAME_NUMBER(number, name) static_assert((number) == static_cast<int>(name), #name);
