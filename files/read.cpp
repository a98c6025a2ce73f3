#include "files/read.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <utility>

namespace wl {
namespace {

absl::Status cannot_read(const std::string& path, const auto&... why) {
  return invalid("cannot read ", path, ": ", why...);
}

absl::Status no_memory(std::string_view what, int64_t bytes) {
  return absl::ResourceExhaustedError(cat(what, ": there is no memory for its ", bytes, " bytes"));
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

int64_t most_array_bytes() {
  std::ifstream facts("/proc/meminfo");
  int64_t kib = 0;
  for (std::string name; facts >> name >> kib; facts.ignore(64, '\n'))
    if (name == "MemAvailable:") return kib * 1024;
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

absl::Status check_array_bytes(std::string_view what, int64_t bytes) {
  if (const int64_t most = most_array_bytes(); bytes > most) {
    return invalid(what, ": has ", bytes, " bytes, more than the ", most,
                   " bytes of memory that this machine has left");
  }
  return absl::OkStatus();
}

// O_NONBLOCK is for named pipes: without it, open() blocks until another process opens the other end.
absl::StatusOr<RegularFile> RegularFile::open(const std::string& path, int64_t most) {
  RegularFile file(path, most, ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.descriptor_ < 0) {
    // open() fails with ENXIO for a socket and for some devices.
    const int error = errno;
    struct stat found = {};
    if (error == ENXIO && stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode))
      return cannot_read(path, "it is ", kind_of(found.st_mode), ", expected a regular file");
    return cannot_read(path, std::strerror(error));
  }
  if (fstat(file.descriptor_, &file.facts_) != 0) return cannot_read(path, std::strerror(errno));
  if (!S_ISREG(file.facts_.st_mode))
    return cannot_read(path, "it is ", kind_of(file.facts_.st_mode), ", expected a regular file");
  if (file.size() > most) return cannot_read(path, "it has ", file.size(), " bytes, over the limit of ", most);
  return file;
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : path_(std::move(other.path_)),
      most_(other.most_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      facts_(other.facts_) {}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t RegularFile::next(char* to, int64_t most) const {
  ssize_t got = 0;
  do {
    got = ::read(descriptor_, to, static_cast<size_t>(most));
  } while (got < 0 && errno == EINTR);
  return got;
}

absl::StatusOr<std::string> RegularFile::all() const try {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(size()));
  char chunk[1 << 16];
  while (const int64_t got = next(chunk, sizeof chunk)) {
    if (got < 0) return cannot_read(path_, std::strerror(errno));
    bytes.append(chunk, static_cast<size_t>(got));
    if (static_cast<int64_t>(bytes.size()) > most_)
      return cannot_read(path_, "it has grown to more than ", most_, " bytes, the limit");
  }
  return bytes;
} catch (const std::bad_alloc&) {
  return no_memory(path_, size());
}

absl::StatusOr<std::string> RegularFile::part(int64_t offset, int64_t length) const try {
  if (offset < 0 || length < 0 || offset > size() || length > size() - offset) {
    return cannot_read(path_, "it has ", size(), " bytes, ", length, " from byte ", offset, " on were expected");
  }
  WL_RETURN_IF_ERROR(check_array_bytes(path_, length));
  std::string bytes(static_cast<size_t>(length), '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got = pread(descriptor_, bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(offset) + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path_, std::strerror(errno));
    if (got == 0) return cannot_read(path_, "it has become shorter while it was read");
    done += static_cast<size_t>(got);
  }
  return bytes;
} catch (const std::bad_alloc&) {
  return no_memory(path_, length);
}

absl::StatusOr<std::string> read_file(const std::string& path, int64_t most) {
  WL_ASSIGN_OR_RETURN(const RegularFile file, RegularFile::open(path, most));
  return file.all();
}

absl::Status check_file(const std::string& path, int64_t most) {
  return RegularFile::open(path, most).status();
}

absl::StatusOr<std::string> temporary_folder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (!error) return folder.string();
  const char* said = std::getenv("TMPDIR");
  return absl::UnavailableError(cat("TMPDIR is ", said == nullptr ? "/tmp" : said, ", which is not a folder (",
                                    error.message(), "): make it, or name another"));
}

}  // namespace wl
