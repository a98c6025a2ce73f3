#include "runtime/cpu_identity.h"

#include <sys/utsname.h>

#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "compiler/base/sha256.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

// Names of the fields in /proc/cpuinfo that identify the first processor: the first row is for x86, the second for Arm.
constexpr const char* kModel[] = {"vendor_id",       "cpu family",       "model",       "model name",
                                  "CPU implementer", "CPU architecture", "CPU variant", "CPU part"};
constexpr const char* kFeatures[] = {"flags", "Features"};

std::string read_identity() {
  std::map<std::string, std::string> fields;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::pair<std::string, std::string> field = absl::StrSplit(line, absl::MaxSplits(':', 1));
    fields.emplace(absl::StripAsciiWhitespace(field.first), absl::StripAsciiWhitespace(field.second));
  }
  utsname system = {};
  std::string out = uname(&system) == 0 ? system.machine : "?";
  for (const char* name : kModel)
    if (!fields[name].empty()) append(&out, ", ", fields[name]);
  std::string features;
  for (const char* name : kFeatures) append(&features, fields[name], "\n");
  return cat(out, ", features ", sha256_hex(features).substr(0, 16));
}

}  // namespace

const std::string& cpu_identity() {
  static const auto* const kIdentity = new std::string(read_identity());
  return *kIdentity;
}

}  // namespace wl
