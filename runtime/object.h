// A compiled kernel loaded into this process.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wl {

// A loaded shared object. When it is destroyed, it is unloaded, and its functions can no longer be called.
class SharedObject {
 public:
  // Loads the shared object at `path`. InvalidArgument, with the loader's message: it cannot be loaded. Also asks for
  // the permission to use tile registers (tile_registers.h), which kernels of the object may need.
  static absl::StatusOr<SharedObject> open(const std::string& path);
  // Loads `file` from the folder of the program or shared object that contains `symbol`, an address of code or data.
  static absl::StatusOr<SharedObject> open_beside(const void* symbol, const std::string& file);
  SharedObject() = default;
  SharedObject(SharedObject&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  SharedObject& operator=(SharedObject&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~SharedObject();

  // Returns the address of the symbol `name`. InvalidArgument: the object does not define it.
  absl::StatusOr<void*> symbol(const std::string& name) const;
  // Returns the value of Launch::outside for the CPU kernel `entry`: the offset in bytes in its scratch where it
  // reports an index outside its axis. -1: the kernel reports none, or the object gives an offset that is not valid.
  int64_t outside_of(const std::string& entry, int64_t scratch_bytes) const;
  // Prepares a kernel that calls a library (Source::library). If `library` is empty, there is nothing to do.
  // FailedPrecondition: the library cannot be used; the message says which package has it. InvalidArgument: the name is
  // unknown, or the object lacks the function that prepares the kernel.
  absl::Status prepare(const std::string& entry, const std::string& library) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace wl
