#include "client/cli/export/export.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/export/files.h"
#include "client/program/files.h"
#include "client/remote/report.h"
#include "compiler/base/names.h"

namespace wl {
namespace {

constexpr int64_t kAlignment = 64;  // of every value, as kernels want it

// What cannot name a library, its functions and its files: words of C++, and what the export itself uses.
constexpr char kTaken[] =
    " alignas alignof and asm auto bitand bitor bool break case catch char class compl concept const consteval "
    "constexpr constinit "
    "continue decltype default delete do double else enum explicit export extern false float for friend goto if inline "
    "int long main "
    "mutable namespace new noexcept not nullptr operator or private protected public register requires return short "
    "signed sizeof "
    "static struct switch template this throw true try typedef typeid typename union unsigned using virtual void "
    "volatile while xor "
    "all clean help install pool self_test test ";

std::string_view file_named(std::string_view name) {
  for (const auto& [each, text] : export_files())
    if (each == cat(name, ".in")) return text;
  WL_CHECK(false, "no file ", name, " was built in");
  return {};
}

// Names are chosen by whoever made the model, so nothing of them may end a comment or a string.
std::string quoted(const std::string& name) {
  std::string out;
  for (const char c : name)
    out += absl::ascii_isprint(static_cast<unsigned char>(c)) && c != '"' && c != '\\' && c != '*' ? c : '_';
  return out;
}

// Where a buffer of the program lies in the exported one.
struct Placed {
  const char* place = "kTemporary";  // of the enumeration Place
  int64_t at = 0;                    // number of the input or output, or offset in bytes
};

class Export {
 public:
  Export(const Executor& executor, const ExportOptions& options)
      : executor_(executor), program_(executor.program()), options_(options), placed_(program_.buffers.size()) {
    place();
  }

  absl::StatusOr<ExportedFiles> files() {
    WL_RETURN_IF_ERROR(add_kernels());
    const std::string& name = options_.name;
    add(cat(name, ".h"), header());
    add(cat(name, ".cpp"), filled("model.cpp"));
    add("pool.h", filled("pool.h"));
    add("CMakeLists.txt", filled("CMakeLists.txt"));
    add("README.md", filled("README.md"));
    add("test/test.cpp", filled("test.cpp"));
    add("weights.bin", weights_);
    std::string inputs, outputs;
    for (int buffer : inputs_) append(&inputs, bytes_of(buffer));
    for (const ProgramOutput& output : program_.outputs) append(&outputs, bytes_of(output.buffer));
    add("test/inputs.bin", std::move(inputs));
    add("test/outputs.bin", std::move(outputs));
    return std::move(files_);
  }

 private:
  void add(std::string path, std::string text) { files_.emplace_back(std::move(path), std::move(text)); }

  const ProgramBuffer& buffer(int index) const { return program_.buffers[static_cast<size_t>(index)]; }

  std::string_view bytes_of(int index) const {
    return {static_cast<const char*>(executor_.data(index)), static_cast<size_t>(buffer(index).bytes())};
  }

  void place() {
    for (int i = 0; i < static_cast<int>(program_.buffers.size()); ++i) {
      Placed& placed = placed_[static_cast<size_t>(i)];
      if (buffer(i).place == Place::kArena) {
        placed.at = buffer(i).offset;
      } else if (buffer(i).place == Place::kInput && is_weight(program_, buffer(i).name)) {
        weights_.resize((weights_.size() + kAlignment - 1) / kAlignment * kAlignment);
        placed = {"kWeight", static_cast<int64_t>(weights_.size())};
        append(&weights_, bytes_of(i));
      } else if (buffer(i).place == Place::kInput) {
        placed = {"kInput", static_cast<int64_t>(inputs_.size())};
        inputs_.push_back(i);
      }
    }
    // Of outputs that share a buffer the first one is computed, and the others are copied.
    for (int o = 0; o < static_cast<int>(program_.outputs.size()); ++o) {
      const int at = program_.outputs[static_cast<size_t>(o)].buffer;
      const bool first = std::none_of(program_.outputs.begin(), program_.outputs.begin() + o,
                                      [&](const ProgramOutput& other) { return other.buffer == at; });
      if (first && buffer(at).place == Place::kOutput)
        placed_[static_cast<size_t>(at)] = {"kOutput", o};
      else
        copies_.emplace_back(o, at);
    }
  }

  // Kernels, and the texts that precede them, each of which several may share.
  absl::Status add_kernels() {
    std::map<std::string, std::string> headers;  // by text
    for (const ProgramKernel& kernel : program_.kernels) {
      const std::string& entry = kernel.source.entry;
      WL_ASSIGN_OR_RETURN(const std::string text, read_file(cat(absl::StripSuffix(kernel.object_path, ".so"), ".cpp")));
      // Every symbol that a kernel defines begins with its name.
      const size_t first = text.find(entry), line = text.rfind('\n', first);
      if (first == std::string::npos || line == std::string::npos)
        return invalid("the source of kernel ", entry, " does not define it");
      std::string before = text.substr(0, line + 1);
      std::string& header = headers[before];
      if (header.empty()) {
        header = cat("common", headers.size() == 1 ? "" : cat(headers.size()), ".h");
        add(cat("kernels/", header), cat("#pragma once\n", before));
      }
      add(cat("kernels/", entry, ".cpp"),
          cat("// ", quoted(describe_group(kernel.graph)), "\n#include \"", header, "\"\n\n", text.substr(line + 1)));
    }
    return absl::OkStatus();
  }

  std::string title() const {
    return cat(options_.name, ", exported by Warploom ", WARPLOOM_VERSION, " for ", program_.target);
  }

  // "x: f32[1,3]" for each input and output, as lines that begin with `before`.
  std::string signature(const std::string& before) const {
    std::string out;
    for (size_t i = 0; i < inputs_.size(); ++i)
      append(&out, before, "inputs[", i, "]: ", quoted(buffer(inputs_[i]).name), ", ", type_text(buffer(inputs_[i])),
             "\n");
    for (size_t o = 0; o < program_.outputs.size(); ++o)
      append(&out, before, "outputs[", o, "]: ", quoted(program_.outputs[o].name), ", ",
             type_text(buffer(program_.outputs[o].buffer)), "\n");
    return out;
  }

  std::string header() const {
    const std::string& name = options_.name;
    const std::string upper = absl::AsciiStrToUpper(name);
    return cat(
        "/* ", title(), ".\n\n   Values are row-major arrays.\n", signature("     "), "*/\n#ifndef ", upper,
        "_H\n#define ", upper, "_H\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\nenum { ", upper,
        "_INPUTS = ", inputs_.size(), ", ", upper, "_OUTPUTS = ", program_.outputs.size(), " };\n\ntypedef struct ",
        name, " ", name, R"(;

/* Reads the weights from a file, weights.bin. threads: how many may run; 0: as many as the kernels were tuned with. Returns NULL
   and says in *error why, if there is no model. */
)",
        name, "* ", name, "_create(const char* weights, int threads, const char** error);\nvoid ", name, "_destroy(",
        name,
        R"(* model);

/* Computes the outputs, one thread at a time for each model. Every array begins at a multiple of 64 bytes. Returns NULL, or what was
   wrong. */
const char* )",
        name, "_run(", name,
        "* model, const void* const* inputs, void* const* outputs);\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
  }

  int threads() const {
    int most = 1;
    for (const ProgramKernel& kernel : program_.kernels) most = std::max(most, kernel.source.threads);
    return most;
  }

  std::string constants() const {
    int64_t scratch = 0, work = 0;
    size_t most = 0;
    for (const ProgramKernel& kernel : program_.kernels) {
      scratch = std::max(scratch, kernel.source.scratch_bytes);
      work = std::max(work, kernel.source.work_bytes);
    }
    for (const ProgramStep& step : program_.steps) most = std::max(most, step.args.size());
    std::string out;
    const std::pair<const char*, int64_t> sizes[] = {{"kWeightBytes", static_cast<int64_t>(weights_.size())},
                                                     {"kTemporaryBytes", program_.arena_bytes},
                                                     {"kScratchBytes", scratch},
                                                     {"kWorkspaceBytes", work}};
    for (const auto& [name, value] : sizes) append(&out, "constexpr std::size_t ", name, " = ", value, ";\n");
    append(&out, "constexpr int kThreads = ", threads(), ", kMostArguments = ", most, ";\n");
    return out;
  }

  std::string values() const {
    std::string out = R"(
enum class Place { kInput, kOutput, kWeight, kTemporary };
struct Value {
  Place place;
  std::size_t at;  // number of the input or output, or offset in bytes
};
constexpr Value kValues[] = {
)";
    for (size_t i = 0; i < placed_.size(); ++i)
      append(&out, "    {Place::", placed_[i].place, ", ", placed_[i].at, "},  // ", i, ": ",
             quoted(program_.buffers[i].name), ", ", type_text(program_.buffers[i]), "\n");
    return out + "};\n";
  }

  std::string steps() const {
    std::string arguments, steps;
    size_t first = 0;
    for (const ProgramStep& step : program_.steps) {
      const ProgramKernel& kernel = program_.kernels[static_cast<size_t>(step.kernel)];
      append(&arguments, "    ", absl::StrJoin(step.args, ", "), ",\n");
      append(&steps, "    {", kernel.source.entry, ", ", kernel.source.grid, ", ", kernel.source.passes, ", ",
             kernel.source.threads, ", ", first, ", ", step.args.size(), "},  // ",
             quoted(describe_group(kernel.graph)), "\n");
      first += step.args.size();
    }
    return cat("\n// The values that each step reads and then those that it stores.\nconstexpr int kArguments[] = {\n",
               arguments,
               R"(};

struct Step {
  Pool::Kernel kernel;
  long grid;
  int passes, threads;
  int first, count;  // of kArguments
};
constexpr Step kSteps[] = {
)",
               steps, "};\n");
  }

  std::string copies() const {
    std::string rows;
    for (const auto& [output, value] : copies_)
      append(&rows, "Copy{", output, ", ", value, ", ", buffer(value).bytes(), "}, ");
    return cat(
        "\n// Outputs that are an input or another output.\nstruct Copy {\n  int output, value;\n  std::size_t "
        "bytes;\n};\n"
        "constexpr std::array<Copy, ",
        copies_.size(), "> kCopies = {", rows, "};\n");
  }

  // Some systems give a thread the registers of tiles only when it asks (Linux, arch_prctl).
  std::string prepare_thread() const {
    const bool tiles = std::any_of(options_.flags.begin(), options_.flags.end(),
                                   [](const std::string& flag) { return absl::StrContains(flag, "amx"); });
    return tiles ? "\nvoid prepare_thread() {\n  (void)syscall(SYS_arch_prctl, 0x1023, 18);  // ARCH_REQ_XCOMP_PERM, "
                   "tile data\n}\n"
                 : "\nvoid prepare_thread() {}\n";
  }

  std::string entries() const {
    std::string out;
    for (const ProgramKernel& kernel : program_.kernels)
      append(&out, "void ", kernel.source.entry, "(long block, void* const* arguments, char* scratch);\n");
    return out;
  }

  std::string tensors() const {
    const auto row = [](const std::string& name, const ProgramBuffer& buffer) {
      return cat("    {\"", quoted(name), "\", \"", name_of(buffer.dtype), "\", ", elements(buffer.shape), ", ",
                 size_of(buffer.dtype), "},\n");
    };
    std::string inputs, outputs;
    for (int index : inputs_) append(&inputs, row(buffer(index).name, buffer(index)));
    for (const ProgramOutput& output : program_.outputs) append(&outputs, row(output.name, buffer(output.buffer)));
    return cat("const std::vector<Tensor> kInputs = {\n", inputs, "};\nconst std::vector<Tensor> kOutputs = {\n",
               outputs, "};\n");
  }

  std::string kernel_list() const {
    return absl::StrJoin(program_.kernels, "\n", [](std::string* out, const ProgramKernel& kernel) {
      append(out, "  kernels/", kernel.source.entry, ".cpp");
    });
  }

  std::string table() const {
    std::map<int, int> launches;
    for (const ProgramStep& step : program_.steps) ++launches[step.kernel];
    std::string out = "| kernel | computes | launches |\n|---|---|---|\n";
    for (int i = 0; i < static_cast<int>(program_.kernels.size()); ++i) {
      const ProgramKernel& kernel = program_.kernels[static_cast<size_t>(i)];
      append(&out, "| `", kernel.source.entry, "` | ", quoted(describe_group(kernel.graph)), " | ", launches[i],
             " |\n");
    }
    return out;
  }

  std::string filled(std::string_view file) const {
    std::set<std::string> compilers;
    for (const ProgramKernel& kernel : program_.kernels) compilers.insert(kernel.source.compiler);
    return absl::StrReplaceAll(std::string(file_named(file)),
                               {{"@NAME@", options_.name},
                                {"@UPPER@", absl::AsciiStrToUpper(options_.name)},
                                {"@TITLE@", title()},
                                {"@VERSION@", WARPLOOM_VERSION},
                                {"@TARGET@", program_.target},
                                {"@DEVICE@", quoted(program_.device)},
                                {"@COMPILERS@", absl::StrJoin(compilers, " and ")},
                                {"@SIGNATURE@", signature("* ")},
                                {"@TABLE@", table()},
                                {"@TENSORS@", tensors()},
                                {"@ENTRIES@", entries()},
                                {"@TABLES@", cat(constants(), values(), steps(), copies(), prepare_thread())},
                                {"@KERNELS@", kernel_list()},
                                {"@FLAGS@", absl::StrJoin(options_.flags, ";")}});
  }

  const Executor& executor_;
  const Program& program_;
  const ExportOptions& options_;
  std::vector<Placed> placed_;               // by buffer
  std::vector<int> inputs_;                  // buffers
  std::vector<std::pair<int, int>> copies_;  // of a buffer to an output
  std::string weights_;                      // the file
  ExportedFiles files_;
};

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

absl::StatusOr<ExportedFiles> exported_files(const Executor& executor, const ExportOptions& options) {
  const Program& program = executor.program();
  if (is_for_gpu(program))
    return absl::UnimplementedError(
        cat("the kernels are for ", program.target,
            "; only those of CPUs are exported, the others' sources are in the bundle's kernels/"));
  for (const ProgramKernel& kernel : program.kernels)
    if (!kernel.source.library.empty())
      return absl::UnimplementedError(cat("kernel ", kernel.source.entry, " calls the library ", kernel.source.library,
                                          "; tune with --libraries none"));
  return Export(executor, options).files();
}

}  // namespace wl
