#include "client/cli/export/export.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "client/cli/export/builder.h"

namespace wl {
namespace {

// Names that a library and its files cannot have: keywords of C++, and targets and files of the export itself.
constexpr char kTaken[] =
    " alignas alignof and asm auto bitand bitor bool break case catch char class compl concept const consteval "
    "constexpr constinit "
    "continue decltype default delete do double else enum explicit export extern false float for friend goto if inline "
    "int long main "
    "mutable namespace new noexcept not nullptr operator or private protected public register requires return short "
    "signed sizeof "
    "static struct switch template this throw true try typedef typeid typename union unsigned using virtual void "
    "volatile while xor "
    "all clean compile_kernel driver help install library pool self_test tables test ";

}  // namespace

std::string identifier_of(const std::string& path) {
  std::string last;
  for (const absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty())) last = std::string(part);
  for (char& c : last)
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  const bool usable = !last.empty() && absl::ascii_isalpha(static_cast<unsigned char>(last[0])) &&
                      !absl::StrContains(kTaken, cat(" ", last, " "));
  return usable ? last : cat("model_", last);
}

absl::Status may_be_exported(const Program& program) {
  for (const ProgramKernel& kernel : program.kernels)
    if (!kernel.source.library.empty())
      return absl::UnimplementedError(cat("kernel ", kernel.source.entry, " calls the library ", kernel.source.library,
                                          "; tune with --libraries none"));
  return absl::OkStatus();
}

absl::StatusOr<ExportedFiles> exported_files(const Executor& executor, const std::vector<ExpectedOutput>& expected,
                                             const ExportOptions& options) {
  ExportBuilder builder(executor, expected, options);
  return is_for_gpu(executor.program()) ? exported_for_gpu(std::move(builder)) : exported_for_cpu(std::move(builder));
}

}  // namespace wl
