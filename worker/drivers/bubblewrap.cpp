#include "worker/drivers/bubblewrap.h"

#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "worker/drivers/system_calls.h"

namespace wl {

const char* const kWithoutSandbox =
    "give up the sandbox with --sandbox none, which lets a candidate read and change what this user may";

namespace {

namespace fs = std::filesystem;

// Paths of the system that every sandbox shows, since compilers, loaders and drivers need them. A symbolic link is
// shown as a link.
constexpr const char* kSystem[] = {
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache"};
// Paths that a sandbox shows only to children that use a GPU. Device nodes keep their permissions; folders are
// read-only.
constexpr const char* kGpuNodes[] = {"/dev/nvidiactl",   "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                     "/dev/nvidia-caps", "/dev/kfd",        "/dev/dri"};
constexpr const char* kGpuFolders[] = {"/sys", "/opt/rocm", "/etc/OpenCL"};
constexpr int kMostGpus = 64;

class Arguments {
 public:
  void add(std::initializer_list<std::string> more) { list_.insert(list_.end(), more); }

  // Makes a file or folder visible in the sandbox, read-only and at its own path. Does nothing for a path that does not
  // exist or lies in a folder that is visible already.
  void show(const std::string& path) {
    const std::string normal = fs::path(path).lexically_normal().string();
    if (!absl::StartsWith(normal, "/") || normal == "/") return;
    for (fs::path at = normal; at != at.root_path(); at = at.parent_path())
      if (shown_.contains(at.string())) return;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(normal, error);
    if (error || status.type() == fs::file_type::not_found) return;
    if (status.type() == fs::file_type::symlink && fs::path(normal).parent_path() == "/") {
      add({"--symlink", fs::read_symlink(normal, error).string(), normal});
    } else {
      add({"--ro-bind", normal, normal});
    }
    shown_.insert(normal);
  }

  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
  std::set<std::string> shown_;
};

// Makes a folder of programs or libraries visible in the sandbox. If it is a folder named bin outside /usr, also makes
// the libraries and headers beside it visible, which a compiler in it needs.
void show_prefix(const std::string& folder, Arguments& arguments) {
  arguments.show(folder);
  const fs::path path = fs::path(folder).lexically_normal();
  if (path.filename() != "bin" || path.parent_path() == "/" || absl::StartsWith(folder, "/usr/")) return;
  std::error_code error;
  for (auto at = fs::directory_iterator(path.parent_path(), error); at != fs::end(at); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (absl::StartsWith(name, "lib") || name == "include" || absl::StrContains(name, "-linux-"))
      arguments.show(at->path().string());
  }
}

// Makes the folders of the libraries that this process has loaded visible in the sandbox, since the programs in it may
// need them too. They may lie outside the system's folders, for example in a Python wheel.
void show_own_libraries(Arguments& arguments) {
  std::set<std::string> folders;
  const auto add = [](dl_phdr_info* info, size_t, void* to) {
    const fs::path path(info->dlpi_name);
    if (path.is_absolute())
      static_cast<std::set<std::string>*>(to)->insert(path.lexically_normal().parent_path().string());
    return 0;
  };
  dl_iterate_phdr(add, &folders);
  for (const std::string& folder : folders) arguments.show(folder);
}

void show_gpus(Arguments& arguments) {
  for (int i = 0; i < kMostGpus; ++i) {
    const std::string node = absl::StrCat("/dev/nvidia", i);
    if (access(node.c_str(), F_OK) == 0) arguments.add({"--dev-bind", node, node});
  }
  for (const char* node : kGpuNodes)
    if (access(node, F_OK) == 0) arguments.add({"--dev-bind", node, node});
  for (const char* folder : kGpuFolders) arguments.show(folder);
  // /opt/rocm is a symbolic link to the folder of a ROCm version, so that folder is shown as well
  std::error_code error;
  if (const fs::path real = fs::canonical("/opt/rocm", error); !error) arguments.show(real.string());
}

}  // namespace

const char* name_of(Sandbox sandbox) {
  return sandbox == Sandbox::kBubblewrap ? "bubblewrap" : "none";
}

void put_in(const Box& box, Process::Options& options) {
  WL_CHECK(!options.inherit_environment, "a child in a box with the worker's environment");
  Arguments arguments;
  arguments.add({"bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"});
  for (const char* path : kSystem) arguments.show(path);
  arguments.add({"--dev", "/dev"});
  if (box.processes) arguments.add({"--proc", "/proc"});
  arguments.add({"--size", absl::StrCat(box.tmp_bytes), "--perms", "0700", "--tmpfs", "/tmp"});
  show_own_libraries(arguments);
  if (box.gpus) show_gpus(arguments);
  for (const std::string& entry : options.environment)
    for (const char* variable : {"PATH=", "LD_LIBRARY_PATH="})
      if (absl::StartsWith(entry, variable))
        for (absl::string_view folder : absl::StrSplit(entry.substr(std::string_view(variable).size()), ':'))
          show_prefix(std::string(folder), arguments);
  for (const std::string& path : box.read) arguments.show(path);
  if (!box.work.empty()) arguments.add({"--bind", box.work, "/work"});
  arguments.add({"--chdir", box.work.empty() ? "/tmp" : "/work", "--remount-ro", "/dev", "--remount-ro", "/"});
  if (box.filter_fd >= 0) arguments.add({"--seccomp", absl::StrCat(box.filter_fd)});
  arguments.add({"--"});
  std::vector<std::string> all = arguments.take();
  all.insert(all.end(), options.arguments.begin(), options.arguments.end());
  options.arguments = std::move(all);
  options.folder.clear();
  options.boxed = true;
}

absl::Status sandbox_works() {
  constexpr const char* kAdvice = "; install bubblewrap and allow user namespaces, or ";
  WL_ASSIGN_OR_RETURN(const Descriptor filter, filter_program(Permitted::kCompiler));
  Process::Options options;
  options.arguments = {"/usr/bin/prlimit", "--core=0:0", "/bin/true"};
  options.pass_fd = filter.get();
  Box box;
  box.processes = true;
  box.filter_fd = 3;
  put_in(box, options);
  absl::StatusOr<Process> process = Process::start(options);
  if (absl::IsNotFound(process.status()))
    return absl::FailedPreconditionError(
        absl::StrCat("the sandbox needs bwrap, which is not on PATH", kAdvice, kWithoutSandbox));
  WL_RETURN_IF_ERROR(process.status());
  Drain drain(1000);
  const absl::StatusOr<Exit> exit = process->wait(monotonic_ns() + 20'000'000'000, drain);
  if (exit.ok() && !exit->signalled && exit->code == 0) return absl::OkStatus();
  std::string why(absl::StripAsciiWhitespace(drain.text()));
  if (why.empty()) why = exit.ok() ? absl::StrCat("bwrap ", describe(*exit)) : "bwrap does not end";
  return absl::FailedPreconditionError(absl::StrCat("this machine makes no sandbox: ", why, kAdvice, kWithoutSandbox));
}

}  // namespace wl
