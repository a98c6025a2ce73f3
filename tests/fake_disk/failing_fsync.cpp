// A library to be preloaded into a program. Its fsync() and fdatasync() fail with EIO while the file exists that the
// environment variable FAIL_FSYNC names.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace {

int sync_with(long call, int fd) {
  const char* const file = std::getenv("FAIL_FSYNC");
  if (file != nullptr && access(file, F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(call, fd));
}

}  // namespace

extern "C" int fsync(int fd) {
  return sync_with(SYS_fsync, fd);
}
extern "C" int fdatasync(int fd) {
  return sync_with(SYS_fdatasync, fd);
}
