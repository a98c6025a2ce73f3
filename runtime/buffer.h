// Memory of one kernel argument. On each side of the data is a red zone, at least a page of 0xFF bytes, and beyond each
// red zone is an inaccessible page. A write within two pages of the data changes a red zone or raises SIGSEGV. A read
// of a red zone spoils the result, since 0xFF bytes are a NaN in every float type.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "compiler/base/dtype.h"

namespace wl {

constexpr int64_t kPageBytes = 4096;

class Buffer {
 public:
  // Returns `bytes` bytes of zeroed memory whose address is `stagger` modulo 4096; `stagger` is a multiple of 64 in [0,
  // 4096). Arguments of one kernel should have different staggers: addresses equal modulo 4096 make loads wait for
  // unrelated stores. ResourceExhausted: memory is short.
  static absl::StatusOr<Buffer> create(int64_t bytes, int64_t stagger = 0);

  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

  // Makes data and red zones read-only, so that a write raises SIGSEGV, or makes them writable again.
  absl::Status set_read_only(bool read_only);
  // Checks the red zones. DataLoss: a red zone was written; the message gives the position of its first changed byte,
  // relative to the data.
  absl::Status check_red_zones() const;
  // Whether `address` lies in the data, in a red zone or in an inaccessible page.
  bool covers(const void* address) const;

 private:
  void begin_with_large_page(int64_t bytes);
  char* map_ = nullptr;  // address of the mapping: guard page, red zone, data, red zone, guard page
  int64_t map_bytes_ = 0;
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Fills an output with a pattern ("poison") before a checked run, so that elements that the kernel never writes are
// found. The poison of floats is a quiet NaN with a payload that no operation produces. The poison of integers is bytes
// 0xA5 or, with `other`, bytes 0x5A. A correct element may equal one of these two, but not both, so two runs with
// different poison find every element that is never written.
void poison(DType dtype, void* data, int64_t elements, bool other = false);
bool is_poison(DType dtype, const void* data, int64_t index, bool other = false);
// Returns how many elements still have the poison. `first`, unless null, receives the index of the first such element.
int64_t count_poison(DType dtype, const void* data, int64_t elements, int64_t* first = nullptr, bool other = false);

}  // namespace wl
