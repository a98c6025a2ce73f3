#include "server/engine/devices.h"

#include <algorithm>
#include <string_view>

#include "compiler/base/libraries.h"
#include "compiler/target/target.h"

namespace wl {
namespace {

// Whether a GPU runs code that was compiled for another architecture. CUDA code runs on later architectures of the same
// generation, unless it was compiled for one architecture alone ("sm_90a").
bool runs_code_of(std::string_view device, std::string_view code) {
  constexpr std::string_view kCuda = "cuda:sm_";
  if (!device.starts_with(kCuda) || !code.starts_with(kCuda)) return device == code;
  const auto number = [&](std::string_view name) {
    int value = 0;
    for (char c : name.substr(kCuda.size())) value = c >= '0' && c <= '9' ? 10 * value + (c - '0') : value;
    return value;
  };
  return code.back() != 'a' && number(code) / 10 == number(device) / 10 && number(code) <= number(device);
}

}  // namespace

std::string class_of(const Device& device, const std::string& team) {
  return cat(device.fingerprint(), "\n", device.compiler_versions, "\n", device.libraries, "\n", team);
}

bool any_serves(const std::vector<Device>& worker, const Device& wanted) {
  return std::any_of(worker.begin(), worker.end(), [&](const Device& own) { return serves(own, wanted); });
}

bool is_in_use(const std::vector<Device>& in_use, const Device& device) {
  return std::any_of(in_use.begin(), in_use.end(),
                     [&](const Device& other) { return serves(other, device) || serves(device, other); });
}

bool serves_team(const std::string& worker, const std::string& wanted) {
  return worker.empty() || worker == wanted;
}

std::optional<Device> device_as(const Device& device, const std::string& target) {
  const std::string family = device.target.substr(0, device.target.find(':'));
  if (target == device.target || target == family) return device;
  const auto row = target_named(target);
  const auto best = target_named(device.target);
  if (!row.ok() || !best.ok()) return std::nullopt;
  const bool simulates = (*row)->family == "sim" && (*best)->family == "cpu";
  if ((*best)->family != "cpu" && !runs_code_of(device.target, target)) return std::nullopt;
  if (!simulates && ((*row)->family != (*best)->family || (*row)->lanes > (*best)->lanes)) return std::nullopt;
  // The device's target has enough lanes, but may lack instructions that `target` has: dot products of bf16 or i8
  // words.
  const Arithmetic &wants = (*row)->arithmetic, &has = (*best)->arithmetic;
  if (!simulates && (wants.dot_bf16 > has.dot_bf16 || wants.dot_i8 > has.dot_i8)) return std::nullopt;
  Device narrower = device;
  narrower.target = target;
  return narrower;
}

std::optional<Device> device_with(const Device& device, const std::string& libraries) {
  Device allowed = device;
  if (libraries == kNoLibraries) allowed.libraries.clear();
  if (libraries != kNoLibraries && library_in(device.libraries) != libraries) return std::nullopt;
  return allowed;
}

bool serves(const Device& worker, const Device& wanted) {
  const auto device = device_as(worker, wanted.target);
  return device && device->fingerprint() == wanted.fingerprint() &&
         device->compiler_versions == wanted.compiler_versions &&
         (wanted.libraries.empty() || device->libraries == wanted.libraries);
}

}  // namespace wl
