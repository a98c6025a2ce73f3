#include "client/cli/export/builder.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/export/files.h"
#include "client/program/files.h"
#include "client/program/manifest.h"
#include "client/program/sound.h"
#include "client/remote/report.h"
#include "compiler/base/names.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

constexpr int64_t kAlignment = 64;  // alignment in bytes that kernels need for every buffer

std::string_view file_named(std::string_view name) {
  for (const auto& [each, text] : export_files())
    if (each == cat(name, ".in")) return text;
  WL_CHECK(false, "no file ", name, " was built in");
  return {};
}

}  // namespace

std::string quoted(const std::string& name) {
  std::string out;
  for (const char c : name)
    out += absl::ascii_isprint(static_cast<unsigned char>(c)) && c != '"' && c != '\\' && c != '*' ? c : '_';
  return out;
}

ExportBuilder::ExportBuilder(const Executor& executor, const std::vector<ExpectedOutput>& expected,
                             const ExportOptions& options)
    : executor_(executor),
      expected_(expected),
      program_(executor.program()),
      options_(options),
      placed_(program_.buffers.size()) {
  place();
}

std::string_view ExportBuilder::bytes_of(int index) const {
  return {static_cast<const char*>(executor_.data(index)), static_cast<size_t>(buffer(index).bytes())};
}

void ExportBuilder::place() {
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
  // Of several outputs that share a buffer, kernels write only the first; the others are copied from it at the end, and
  // so are outputs that are inputs.
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

void ExportBuilder::add_filled(std::string path, std::string_view file,
                               const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> all = replacements();
  all.insert(more.begin(), more.end());
  add(std::move(path), absl::StrReplaceAll(std::string(file_named(file)), all));
}

absl::Status ExportBuilder::add_kernels(bool includes) {
  std::map<std::string, std::string> headers;  // for each text that precedes a kernel, its header's name
  for (int i = 0; i < static_cast<int>(program_.kernels.size()); ++i) {
    const ProgramKernel& kernel = program_.kernels[static_cast<size_t>(i)];
    const std::string& entry = kernel.source.entry;
    const std::string path = source_path(kernel), folder = kernel.object_path.substr(0, kernel.object_path.rfind('/'));
    WL_ASSIGN_OR_RETURN(std::string text, read_file(cat(folder, path.substr(path.rfind('/')))));
    // The comments on launches that a bundle's sources have are left out, because an export has a table of launches.
    if (const std::string launch = launch_text(program_, i); text.ends_with(launch))
      text.resize(text.size() - launch.size());
    // The name of every symbol in a kernel begins with the kernel's name, so the prelude ends before the first such
    // line.
    const size_t first = text.find(entry), line = text.rfind('\n', first);
    if (first == std::string::npos || line == std::string::npos)
      return invalid("the source of kernel ", entry, " does not define it");
    std::string before = text.substr(0, line + 1);
    std::string& header = headers[before];
    if (header.empty()) {
      header = cat("common", headers.size() == 1 ? "" : cat(headers.size()), ".h");
      add(cat("kernels/", header), cat(includes ? "#pragma once\n" : "", before));
    }
    headers_.push_back(header);
    if (absl::StrContains(text, cat(entry, "_outside = "))) telling_.insert(entry);
    const std::string begin = includes ? cat("#include \"", header, "\"\n\n") : "";
    add(path, cat("// ", quoted(describe_group(kernel.graph)), "\n", begin, text.substr(line + 1)));
  }
  return absl::OkStatus();
}

ExportedFiles ExportBuilder::finish() {
  add_filled("tables.h", "tables.h", {});
  add_filled("test/test.cpp", "test.cpp", {});
  add("weights.bin", std::move(weights_));
  std::string inputs;
  for (int buffer : inputs_) append(&inputs, bytes_of(buffer));
  add("test/inputs.bin", std::move(inputs));
  add("test/expected.bin", expected_file());
  return std::move(files_);
}

// Returns the bytes of test/expected.bin: for every output, a count and that many records `Expected`
// (files/test.cpp.in).
std::string ExportBuilder::expected_file() const {
  std::string out;
  const auto put = [&out](auto word) {
    static_assert(sizeof word == 8);
    out.append(reinterpret_cast<const char*>(&word), sizeof word);
  };
  for (size_t o = 0; o < expected_.size(); ++o) {
    const ExpectedOutput& expected = expected_[o];
    const DType dtype = buffer(program_.outputs[o].buffer).dtype;
    const auto bytes = static_cast<size_t>(size_of(dtype));
    put(expected.indices.size());
    for (size_t i = 0; i < expected.indices.size(); ++i) {
      put(expected.indices[i]);
      // The self-test compares 8-bit floats as integers: a bound of 1 allows a neighbouring value.
      put(saturates(dtype) ? 1.0 : expected.bounds[i]);
      uint64_t element = 0;
      std::memcpy(&element, expected.elements.data() + i * bytes, bytes);
      put(element);
    }
  }
  return out;
}

std::string ExportBuilder::title() const {
  return cat(options_.name, ", exported by Warploom ", WARPLOOM_VERSION, " for ", program_.target);
}

// Returns a line for each input and output, such as "inputs[0]: x, f32[1,3]", each after the text `before`.
std::string ExportBuilder::signature(const std::string& before) const {
  std::string out;
  for (size_t i = 0; i < inputs_.size(); ++i)
    append(&out, before, "inputs[", i, "]: ", quoted(buffer(inputs_[i]).name), ", ", type_text(buffer(inputs_[i])),
           "\n");
  for (size_t o = 0; o < program_.outputs.size(); ++o)
    append(&out, before, "outputs[", o, "]: ", quoted(program_.outputs[o].name), ", ",
           type_text(buffer(program_.outputs[o].buffer)), "\n");
  return out;
}

std::string ExportBuilder::constants() const {
  int64_t scratch = 0, work = 0;
  size_t most = 0;
  for (const ProgramKernel& kernel : program_.kernels) {
    scratch = std::max(scratch, kernel.source.scratch_bytes);
    work = std::max(work, kernel.source.work_bytes);
  }
  for (const ProgramStep& step : program_.steps) most = std::max(most, step.args.size());
  std::string out;
  for (const auto& [name, value] : {std::pair<const char*, int64_t>{"kWeightBytes", weights_.size()},
                                    {"kTemporaryBytes", program_.arena_bytes},
                                    {"kScratchBytes", scratch},
                                    {"kWorkspaceBytes", work},
                                    {"kMostArguments", most}})
    append(&out, "constexpr std::size_t ", name, " = ", value, ";\n");
  return out;
}

std::string ExportBuilder::values() const {
  std::string out;
  for (size_t i = 0; i < placed_.size(); ++i)
    append(&out, "    {Place::", placed_[i].place, ", ", placed_[i].at, "},  // ", i, ": ",
           quoted(program_.buffers[i].name), ", ", type_text(program_.buffers[i]), "\n");
  return out;
}

std::string ExportBuilder::arguments() const {
  std::string out;
  for (const ProgramStep& step : program_.steps) append(&out, "    ", absl::StrJoin(step.args, ", "), ",\n");
  return out;
}

std::string ExportBuilder::steps(const std::function<std::string(int kernel)>& named) const {
  std::string out;
  size_t first = 0;
  for (const ProgramStep& step : program_.steps) {
    const Source& source = program_.kernels[static_cast<size_t>(step.kernel)].source;
    append(&out, "    {", named(step.kernel), ", ", source.grid, ", ", source.threads, ", ", source.passes, ", ", first,
           ", ", step.args.size(), "},  // ", describe(step.kernel), "\n");
    first += step.args.size();
  }
  return out;
}

std::string ExportBuilder::copies() const {
  std::string out;
  for (const auto& [output, value] : copies_)
    append(&out, "Copy{", output, ", ", value, ", ", buffer(value).bytes(), "}, ");
  return out;
}

std::string ExportBuilder::describe(int kernel) const {
  return quoted(describe_group(program_.kernels[static_cast<size_t>(kernel)].graph));
}

std::string ExportBuilder::tensors() const {
  const auto row = [](const std::string& name, const ProgramBuffer& buffer) {
    return cat("    {\"", quoted(name), "\", \"", name_of(buffer.dtype), "\", ", elements(buffer.shape), ", ",
               size_of(buffer.dtype), "},\n");
  };
  std::string inputs, outputs;
  for (int index : inputs_) append(&inputs, row(buffer(index).name, buffer(index)));
  for (const ProgramOutput& output : program_.outputs) append(&outputs, row(output.name, buffer(output.buffer)));
  return cat("const std::vector<Tensor> kInputs = {\n", inputs, "};\nconst std::vector<Tensor> kOutputs = {\n", outputs,
             "};\n");
}

std::string ExportBuilder::table() const {
  std::map<int, int> launches;
  for (const ProgramStep& step : program_.steps) ++launches[step.kernel];
  std::string out = "| kernel | computes | launches |\n|---|---|---|\n";
  for (int i = 0; i < static_cast<int>(program_.kernels.size()); ++i)
    append(&out, "| `", program_.kernels[static_cast<size_t>(i)].source.entry, "` | ", describe(i), " | ", launches[i],
           " |\n");
  return out;
}

std::map<std::string, std::string> ExportBuilder::replacements() const {
  std::set<std::string> compilers;
  for (const ProgramKernel& kernel : program_.kernels) compilers.insert(kernel.source.compiler);
  return {{"@NAME@", options_.name},
          {"@UPPER@", absl::AsciiStrToUpper(options_.name)},
          {"@TITLE@", title()},
          {"@VERSION@", WARPLOOM_VERSION},
          {"@TARGET@", program_.target},
          {"@DEVICE@", quoted(program_.device)},
          {"@COMPILERS@", absl::StrJoin(compilers, " and ")},
          {"@SIGNATURE@", signature("* ")},
          {"@INPUTS@", cat(inputs_.size())},
          {"@OUTPUTS@", cat(program_.outputs.size())},
          {"@ARRAYS@", signature("     ")},
          {"@TABLE@", table()},
          {"@TENSORS@", tensors()},
          {"@FLAGS@", absl::StrJoin(options_.flags, ";")},
          {"@CONSTANTS@", constants()},
          {"@VALUES@", values()},
          {"@ARGUMENTS@", arguments()},
          {"@COPY_COUNT@", cat(copies_.size())},
          {"@COPIES@", copies()}};
}

}  // namespace wl
