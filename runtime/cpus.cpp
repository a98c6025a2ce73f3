#include "runtime/cpus.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace wl {
namespace {

// Returns 0 for the first hardware thread of a core and 1 for the others; 0 if the system does not say.
int sibling_rank(int cpu) {
  const std::string path = absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list");
  int first = cpu;
  if (std::FILE* file = std::fopen(path.c_str(), "r")) {
    if (std::fscanf(file, "%d", &first) != 1) first = cpu;
    std::fclose(file);
  }
  return first == cpu ? 0 : 1;
}

cpu_set_t set_of(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  return set;
}

}  // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  if (cpus.empty()) cpus.push_back(0);
  std::stable_sort(cpus.begin(), cpus.end(), [](int a, int b) { return sibling_rank(a) < sibling_rank(b); });
  return cpus;
}

void run_on(const std::vector<int>& cpus) {
  const cpu_set_t set = set_of(cpus);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

bool leave(const std::vector<int>& cpus) {
  cpu_set_t before, others = set_of(cpus);
  if (pthread_getaffinity_np(pthread_self(), sizeof before, &before) != 0) return false;
  CPU_AND(&others, &others, &before);
  CPU_XOR(&others, &others, &before);
  if (CPU_COUNT(&others) == 0 || pthread_setaffinity_np(pthread_self(), sizeof others, &others) != 0) return false;
  (void)pthread_setaffinity_np(pthread_self(), sizeof before, &before);
  return true;
}

}  // namespace wl
