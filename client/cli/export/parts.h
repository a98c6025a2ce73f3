// What the exports for all targets have in common: where values lie, the files of kernels, and the texts that the files
// of client/cli/export/files are filled with.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/export/export.h"

namespace wl {

class ExportParts {
 public:
  // The arguments must outlive it.
  ExportParts(const Executor& executor, const std::vector<ExpectedOutput>& expected, const ExportOptions& options);

  const Program& program() const { return program_; }
  const ExportOptions& options() const { return options_; }

  void add(std::string path, std::string text) { files_.emplace_back(std::move(path), std::move(text)); }
  // Adds a file of client/cli/export/files. `more`: texts by what they replace, such as "@STEPS@", besides those that
  // all exports have.
  void add_filled(std::string path, std::string_view file, const std::map<std::string, std::string>& more);
  // Adds the sources of the kernels, and the texts that precede them, each of which several may share. `includes`: a
  // kernel's file begins with the directive that includes that text. InvalidArgument: a source lacks its kernel.
  absl::Status add_kernels(bool includes);
  // Adds the tables, the weights and what all self-tests have. Returns all files.
  ExportedFiles finish();

  // The file of what precedes a kernel, in the folder kernels/.
  const std::string& header_of(size_t kernel) const { return headers_[kernel]; }
  // Whether a kernel leaves word of an index outside its axis; known once the sources are added.
  bool tells(const std::string& entry) const { return telling_.contains(entry); }
  // A row of every step: how the kernel is named, what is launched, and its arguments.
  std::string steps(const std::function<std::string(int kernel)>& named) const;

 private:
  // Where a buffer of the program lies in the exported one.
  struct Placed {
    const char* place = "kTemporary";  // of the enumeration Place
    int64_t at = 0;                    // number of the input or output, or offset in bytes
  };

  const ProgramBuffer& buffer(int index) const { return program_.buffers[static_cast<size_t>(index)]; }
  // What a kernel computes, as the text of a comment.
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
  std::vector<Placed> placed_;               // by buffer
  std::vector<int> inputs_;                  // buffers
  std::vector<std::pair<int, int>> copies_;  // of a buffer to an output
  std::vector<std::string> headers_;         // by kernel
  std::set<std::string> telling_;            // entries
  std::string weights_;                      // the file
  ExportedFiles files_;
};

// Names are chosen by whoever made the model, so nothing of them may end a comment or a string.
std::string quoted(const std::string& name);

// The exports by kind of target.
absl::StatusOr<ExportedFiles> exported_for_cpu(ExportParts parts);
absl::StatusOr<ExportedFiles> exported_for_gpu(ExportParts parts);

}  // namespace wl
