// Builds what exports for all targets have in common: the places of values, the files of kernels, and the texts that
// replace placeholders in the files of client/cli/export/files.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/export/export.h"

namespace wl {

class ExportBuilder {
 public:
  // The arguments must outlive the ExportBuilder.
  ExportBuilder(const Executor& executor, const std::vector<ExpectedOutput>& expected, const ExportOptions& options);

  const Program& program() const { return program_; }
  const ExportOptions& options() const { return options_; }

  void add(std::string path, std::string text) { files_.emplace_back(std::move(path), std::move(text)); }
  // Adds a file of client/cli/export/files with its placeholders replaced. `more`: texts by placeholder, such as
  // "@STEPS@", besides those that all exports have.
  void add_filled(std::string path, std::string_view file, const std::map<std::string, std::string>& more);
  // Adds the sources of the kernels, and the preludes that precede them as headers; several kernels may share a header.
  // `includes`: whether a kernel's file includes its header. InvalidArgument: a source does not define its kernel.
  absl::Status add_kernels(bool includes);
  // Adds the tables, the weights and the files of the self-test. Returns all files.
  ExportedFiles finish();

  // Returns the name of a kernel's header in the folder kernels/.
  const std::string& header_of(size_t kernel) const { return headers_[kernel]; }
  // Whether a kernel reports an index that is outside its axis. Valid after add_kernels().
  bool tells(const std::string& entry) const { return telling_.contains(entry); }
  // Returns the rows of the table of steps. A row has the kernel (as `named` returns it), the launch and the arguments.
  std::string steps(const std::function<std::string(int kernel)>& named) const;

 private:
  // The place of a buffer in the exported program.
  struct Placed {
    const char* place = "kTemporary";  // a value of the enumeration Place in files/tables.h.in
    int64_t at = 0;  // index of the input or output, or offset in bytes in the weights or temporary memory
  };

  const ProgramBuffer& buffer(int index) const { return program_.buffers[static_cast<size_t>(index)]; }
  // Describes what a kernel computes, for a comment.
  std::string describe(int kernel) const;
  std::string_view bytes_of(int index) const;
  void place();
  std::string title() const;
  std::string signature(const std::string& before) const;
  std::string tensors() const;
  std::string constants() const;
  std::string values() const;
  std::string arguments() const;
  std::string copies() const;
  std::string expected_file() const;
  std::string table() const;
  std::map<std::string, std::string> replacements() const;

  const Executor& executor_;
  const std::vector<ExpectedOutput>& expected_;
  const Program& program_;
  const ExportOptions& options_;
  std::vector<Placed> placed_;               // for each buffer of the program, its place in the export
  std::vector<int> inputs_;                  // indices of the buffers that are inputs of the program
  std::vector<std::pair<int, int>> copies_;  // (output, buffer): buffers that are copied to outputs at a run's end
  std::vector<std::string> headers_;         // for each kernel, the name of its header
  std::set<std::string> telling_;            // entry points of the kernels that report indices outside their axes
  std::string weights_;                      // contents of the exported file weights.bin
  ExportedFiles files_;
};

// Replaces characters that could end a C string or comment by '_': the authors of a model choose its names.
std::string quoted(const std::string& name);

// Return the files of an export for a kind of target.
absl::StatusOr<ExportedFiles> exported_for_cpu(ExportBuilder builder);
absl::StatusOr<ExportedFiles> exported_for_gpu(ExportBuilder builder);

}  // namespace wl
