// A compiled kernel loaded into this process.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wl {

// A loaded shared object. It is unloaded on destruction, and its functions with it.
class SharedObject {
 public:
  // InvalidArgument, with the loader's message: `path` cannot be loaded. Also asks for the use of tile registers
  // (tile_registers.h), which kernels of the object may need.
  static absl::StatusOr<SharedObject> open(const std::string& path);
  // Opens `file` in the folder of the program or shared object that contains `symbol`, an address of code or data.
  static absl::StatusOr<SharedObject> open_beside(const void* symbol, const std::string& file);
  SharedObject() = default;
  SharedObject(SharedObject&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  SharedObject& operator=(SharedObject&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~SharedObject();

  // Returns the address of `name`. InvalidArgument: the object does not define it.
  absl::StatusOr<void*> symbol(const std::string& name) const;
  // Returns the value of Launch::outside for CPU kernel `entry`: where in its scratch it reports an index outside its
  // axis. -1: it reports none, or the object gives an offset that is not valid.
  int64_t outside_of(const std::string& entry, int64_t scratch_bytes) const;
  // Prepares a kernel that calls a library (Source::library); does nothing when `library` is empty.
  // FailedPrecondition: the library cannot be used; the message says which package has it. InvalidArgument: the name is
  // unknown, or the object lacks the function that prepares the kernel.
  absl::Status prepare(const std::string& entry, const std::string& library) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace wl
