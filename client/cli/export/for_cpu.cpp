// Exports for CPUs: each kernel is a C++ file, and a thread pool that is part of the export calls its blocks.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "client/cli/export/builder.h"

namespace wl {
namespace {

int threads_of(const Program& program) {
  int most = 1;
  for (const ProgramKernel& kernel : program.kernels) most = std::max(most, kernel.source.threads);
  return most;
}

// Returns the function that an export calls when a model is created. For kernels with AMX, that function requests the
// permission to use tile registers, which Linux gives a process only on request (arch_prctl).
std::string prepare_thread(const std::vector<std::string>& flags) {
  const bool tiles =
      std::any_of(flags.begin(), flags.end(), [](const std::string& flag) { return absl::StrContains(flag, "amx"); });
  return tiles ? "void prepare_thread() {\n  (void)syscall(SYS_arch_prctl, 0x1023, 18);  // ARCH_REQ_XCOMP_PERM, "
                 "tile data\n}\n"
               : "void prepare_thread() {}\n";
}

}  // namespace

absl::StatusOr<ExportedFiles> exported_for_cpu(ExportBuilder builder) {
  WL_RETURN_IF_ERROR(builder.add_kernels(true));
  const auto entry_of = [&](int i) {
    const std::string& entry = builder.program().kernels[static_cast<size_t>(i)].source.entry;
    return cat(entry, ", ", builder.tells(entry) ? cat("&", entry, "_outside") : "nullptr");
  };
  std::string entries, kernels;
  for (const ProgramKernel& kernel : builder.program().kernels) {
    append(&entries, "void ", kernel.source.entry, "(long block, void* const* arguments, char* scratch);\n");
    if (builder.tells(kernel.source.entry)) append(&entries, "extern const long ", kernel.source.entry, "_outside;\n");
    append(&kernels, kernels.empty() ? "" : "\n", "  kernels/", kernel.source.entry, ".cpp");
  }
  const std::string& name = builder.options().name;
  builder.add_filled(cat(name, ".h"), "model.h", {});
  builder.add_filled(cat(name, ".cpp"), "model.cpp",
                     {{"@ENTRIES@", entries},
                      {"@THREADS@", cat(threads_of(builder.program()))},
                      {"@STEPS@", builder.steps(entry_of)},
                      {"@PREPARE_THREAD@", prepare_thread(builder.options().flags)}});
  builder.add_filled("pool.h", "pool.h", {});
  builder.add_filled("CMakeLists.txt", "CMakeLists.txt", {{"@KERNELS@", kernels}});
  builder.add_filled("README.md", "README.md", {});
  builder.add_filled("test/session.h", "session.h", {});
  return builder.finish();
}

}  // namespace wl
