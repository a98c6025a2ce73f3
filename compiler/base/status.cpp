#include "compiler/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace wl {

void check_failed(const char* file, int line, const char* condition, std::string_view detail) {
  std::fprintf(stderr, "%s:%d: internal error: %s does not hold: %.*s\n", file, line, condition,
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

}  // namespace wl
