#include "compiler/base/records.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace wl {

std::string Device::fingerprint() const {
  return absl::StrCat(target, "|", name, "|t", threads, "|", l1_bytes, "/", l2_bytes, "/", l3_bytes);
}

std::string Device::detail(std::string_view detail_name) const {
  for (size_t at = 0; at < details.size();) {
    const size_t end = std::min(details.find(' ', at), details.size());
    const std::string_view item = std::string_view(details).substr(at, end - at);
    if (item.starts_with(detail_name) && item.substr(detail_name.size()).starts_with('='))
      return std::string(item.substr(detail_name.size() + 1));
    at = end + 1;
  }
  return "";
}

std::string compiler_of(const std::string& environment, const Source& source) {
  // An environment is a list of compilers and their versions. The environment of a GPU also has an entry for the
  // driver, whose name is the target's family ("cuda=..."). The source of a GPU kernel does not name its compiler, so
  // the first entry that is not the driver's is returned.
  const std::string driver = absl::StrCat(source.target.substr(0, source.target.find(':')), "=");
  for (size_t at = 0; at < environment.size();) {
    const size_t end = std::min(environment.find("; ", at), environment.size());
    std::string part = environment.substr(at, end - at);
    if (source.compiler.empty() ? !part.starts_with(driver) : part.starts_with(absl::StrCat(source.compiler, "=")))
      return part;
    at = end + 2;
  }
  return "";
}

double median_of(std::vector<int64_t> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const size_t half = samples.size() / 2;
  if (samples.size() % 2 == 1) return static_cast<double>(samples[half]);
  return 0.5 * (static_cast<double>(samples[half - 1]) + static_cast<double>(samples[half]));
}

double undisturbed_ns(const std::vector<int64_t>& samples_ns) {
  if (samples_ns.empty()) return 0;
  std::vector<int64_t> least(std::min<size_t>(2, samples_ns.size()));
  std::partial_sort_copy(samples_ns.begin(), samples_ns.end(), least.begin(), least.end());
  return static_cast<double>(least.back());
}

}  // namespace wl
