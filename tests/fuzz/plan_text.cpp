// Any text is read as a plan, once for a reduction of rows and once for a matrix product. The search space of the group
// refuses the text, or parses it to a legal point whose own text parses to the same point.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/base/status.h"
#include "compiler/domain/domain.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "compiler/schedule/space.h"

namespace {

wl::Space space_for(std::string_view text) {
  const auto graph = wl::parse(text);
  WL_CHECK(graph.ok(), graph.status().ToString());
  const wl::Machine machine{.target = &wl::targets()[0], .threads = 2, .clang = true};
  const auto domain = wl::analyze(*graph, machine);
  WL_CHECK(domain.ok(), domain.status().ToString());
  auto space = wl::space_of(*graph, *domain, machine);
  WL_CHECK(space.ok(), space.status().ToString());
  return *std::move(space);
}

const std::vector<wl::Space>& spaces() {
  static const std::vector<wl::Space> kSpaces = {
      space_for(R"(graph {
        %0 = input "x" : f32[64,1024] normal(0,1)
        %1 = reduce_max %0 axes=[1] : f32[64]
        %2 = broadcast %1 dims=[0] : f32[64,1024]
        %3 = sub %0 %2 : f32[64,1024]
        output "y" %3
      })"),
      space_for(R"(graph {
        %0 = input "a" : f32[64,96] normal(0,1)
        %1 = input "b" : f32[96,128] normal(0,1)
        %2 = contract %0 %1 "mk,kn->mn" : f32[64,128]
        output "y" %2
      })"),
  };
  return kSpaces;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const wl::Space& space : spaces()) {
    const auto point = space.parse(text);
    if (!point.ok()) continue;
    WL_CHECK(space.is_legal(*point), text);
    const auto again = space.parse(space.text(*point));
    WL_CHECK(again.ok() && *again == *point, space.text(*point));
  }
  return 0;
}
