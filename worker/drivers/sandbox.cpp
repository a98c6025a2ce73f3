#include "worker/drivers/sandbox.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "worker/drivers/system_calls.h"

namespace wl {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// a sanitizer's shadow memory counts as private memory, so private memory is not limited
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

void set_limit(int resource, rlim_t most) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
  // RLIM_INFINITY is the largest number, so the smaller of the two limits is right for an unlimited resource too.
  limit.rlim_cur = limit.rlim_max = std::min(most, limit.rlim_max);
  (void)setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

}  // namespace

void enter_sandbox(pid_t parent, bool runs_foreign_code) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If the parent ended before prctl() took effect, Linux will not kill this process.
  if (getppid() != parent) _exit(0);
  set_limit(RLIMIT_CORE, 0);
  if (runs_foreign_code) {
    set_limit(RLIMIT_FSIZE, 0);
    set_limit(RLIMIT_NOFILE, 64);
  }
  if (std::FILE* file = std::fopen("/proc/self/oom_score_adj", "w")) {
    std::fputs("1000", file);
    std::fclose(file);
  }
  (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (!runs_foreign_code) (void)allow_only(Permitted::kDriver);
}

void seal(int64_t cpu_s, bool libraries) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  set_limit(RLIMIT_CPU, static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + cpu_s + 1));
  (void)allow_only(libraries ? Permitted::kLibrary : Permitted::kCandidate);
}

void limit_memory(int64_t bytes) {
  if (!kSanitized) set_limit(RLIMIT_DATA, static_cast<rlim_t>(bytes));
}

}  // namespace wl
