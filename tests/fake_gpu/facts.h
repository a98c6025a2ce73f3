// Facts of the fake GPU: the attributes of its device, and its errors.
#pragma once

#include <cstdlib>
#include <map>

namespace fake_gpu {

enum Error {
  kOk = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidImage = 200,
  kOperatingSystem = 304,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kOutOfResources = 701,
  kAssert = 710,
  kStack = 714,
  kIllegalInstruction = 715,
  kMisaligned = 716,
  kLaunchFailed = 719
};

// Sets *value to an attribute of the fake device, given the attribute's number in the API of CUDA (or HIP); to 0 if the
// number is unknown.
inline int attribute(int* value, int number, bool cuda) {
  static const std::map<int, int> kCuda = {{16, 4},  {38, 1 << 20}, {13, 1'000'000}, {36, 2'000'000},
                                           {37, 64}, {75, 9},       {76, 0},         {81, 228 << 10}};
  static const std::map<int, int> kHip = {{63, 4},  {19, 1 << 20}, {5, 1'000'000}, {60, 2'000'000},
                                          {59, 64}, {23, 9},       {61, 0},        {10002, 64 << 10}};
  const char* capability = std::getenv("WARPLOOM_FAKE_CAPABILITY");  // compute capability of the device, e.g. "80"
  if (cuda && capability != nullptr && (number == 75 || number == 76)) {
    *value = number == 75 ? std::atoi(capability) / 10 : std::atoi(capability) % 10;
    return kOk;
  }
  const auto& rows = cuda ? kCuda : kHip;
  const auto row = rows.find(number);
  *value = row != rows.end() ? row->second : 0;
  return kOk;
}

inline const char* name_of(int error) {
  switch (error) {
    case kInvalidValue:
      return "ERROR_INVALID_VALUE";
    case kOutOfMemory:
      return "ERROR_OUT_OF_MEMORY";
    case kOutOfResources:
      return "ERROR_LAUNCH_OUT_OF_RESOURCES";
    case kIllegalAddress:
      return "ERROR_ILLEGAL_ADDRESS";
    case kMisaligned:
      return "ERROR_MISALIGNED_ADDRESS";
    case kLaunchFailed:
      return "ERROR_LAUNCH_FAILED";
    default:
      return "ERROR_OTHER";
  }
}

}  // namespace fake_gpu
