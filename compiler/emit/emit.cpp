#include "compiler/emit/emit.h"

#include "absl/strings/str_replace.h"
#include "compiler/base/sha256.h"
#include "compiler/emit/printer.h"

namespace wl {

absl::StatusOr<Source> emit(const Kernel& kernel, const Machine& machine, std::string_view group,
                            const NodeListing& listing) {
  static constexpr std::string_view kPlaceholder = "WL_ENTRY";
  Printer printer(kernel, std::string(kPlaceholder), machine.target->lanes, listing);
  WL_ASSIGN_OR_RETURN(std::string text, printer.print());
  Source source;
  source.target = std::string(machine.target->name);
  source.compiler = kernel.compiler;
  source.prelude = prelude_text(*machine.target, kernel.wave > 0 ? kernel.vector_lanes() : machine.target->lanes);
  // The entry symbol is a hash of everything that determines the kernel, so that equal kernels have equal symbols.
  Encoder identity("kernel", 1);
  identity.text(text).text(source.prelude).text(source.compiler).integer(kernel.grid).integer(kernel.threads);
  if (!group.empty()) identity.text(group);
  source.entry = cat("wl_", identity.hash().substr(0, 16));
  text = printer.with_notes(text);
  absl::StrReplaceAll({{std::string(kPlaceholder), source.entry}}, &text);
  source.text = std::move(text);
  source.grid = kernel.grid;
  // On a simulated GPU, a block is one call on one thread of the host, and so is a cluster. The scratch of a cluster is
  // the shared memory of all its blocks.
  const bool simulated = machine.target->family == "sim";
  source.threads = simulated ? 1 : kernel.threads;
  source.scratch_bytes = kernel.scratch_bytes() * (simulated ? kernel.cluster : 1);
  if (printer.outside_at() >= 0) source.scratch_bytes = printer.outside_at() + kOutsideBytes;
  source.passes = kernel.sweeps();
  source.work_bytes = workspace_bytes(kernel);
  if (machine.target->is_gpu() && machine.target->family != "sim") {
    source.load_bytes = printer.load_bytes();
    source.store_bytes = printer.store_bytes();
  }
  return source;
}

}  // namespace wl
