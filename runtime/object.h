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
  // InvalidArgument with the loader's message when `path` cannot be loaded. The process may use tile registers after
  // it, where there are any (tile_registers.h).
  static absl::StatusOr<SharedObject> open(const std::string& path);
  // The same for a file beside the program or shared object that has the code or data at `symbol`.
  static absl::StatusOr<SharedObject> open_beside(const void* symbol, const std::string& file);
  SharedObject() = default;
  SharedObject(SharedObject&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  SharedObject& operator=(SharedObject&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~SharedObject();

  // The address of `name`; InvalidArgument when the object does not define it.
  absl::StatusOr<void*> symbol(const std::string& name) const;
  // Where a CPU kernel leaves word of an index outside its axis, as Launch::outside has it.
  int64_t outside_of(const std::string& entry, int64_t scratch_bytes) const;
  // Prepares a kernel that calls a library (Source::library); OK at once when `library` is empty. FailedPrecondition
  // says which library is missing, and which package has it.
  absl::Status prepare(const std::string& entry, const std::string& library) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace wl
