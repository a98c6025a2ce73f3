#include "runtime/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr unsigned char kRed = 0xff;
constexpr int64_t kLargePageBytes = int64_t{2} << 20;

const char* first_changed(const char* begin, const char* end) {
  return std::find_if(begin, end, [](char c) { return static_cast<unsigned char>(c) != kRed; });
}

uint64_t poison_pattern(DType dtype, bool other) {
  if (is_float(dtype)) {
    switch (size_of(dtype)) {
      case 8:
        return 0x7ffda5a5a5a5a5a5;
      case 4:
        return 0x7fe5a5a5;
      case 2:
        return dtype == DType::f16 ? 0x7ea5 : 0x7fe5;
      // 8-bit floats: a NaN with the sign set, which no kernel stores, because kernels store NaNs without a sign.
      default:
        return dtype == DType::f8e5m2 ? 0xfd : 0xff;
    }
  }
  return other ? 0x5a5a5a5a5a5a5a5a : 0xa5a5a5a5a5a5a5a5;
}

template <typename F>
auto with_words(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 8:
      return f(uint64_t{});
    case 4:
      return f(uint32_t{});
    case 2:
      return f(uint16_t{});
    default:
      return f(uint8_t{});
  }
}

}  // namespace

absl::StatusOr<Buffer> Buffer::create(int64_t bytes, int64_t stagger) {
  WL_CHECK(bytes >= 0 && stagger >= 0 && stagger < kPageBytes && stagger % 64 == 0, bytes, " bytes, stagger ", stagger);
  Buffer buffer;
  const int64_t inner = (kPageBytes + stagger + bytes + kPageBytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const int64_t total = inner + 2 * kPageBytes;
  // Large pages are used for large buffers if the system has them: there are fewer page faults, each of which can cost
  // microseconds on a virtual machine, and fewer address translations. Large pages need aligned memory, so the memory
  // between the guard pages begins at a large-page boundary.
  const bool large = bytes >= 2 * kLargePageBytes;
  const int64_t mapped = total + (large ? kLargePageBytes : 0);
  void* map = mmap(nullptr, static_cast<size_t>(mapped), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrCat("cannot map ", bytes, " bytes: ", std::strerror(errno)));
  buffer.map_ = static_cast<char*>(map);
  buffer.map_bytes_ = mapped;
  if (large) buffer.begin_with_large_page(total);
  buffer.data_ = buffer.map_ + 2 * kPageBytes + stagger;
  buffer.bytes_ = bytes;
  if (large) (void)madvise(buffer.map_, static_cast<size_t>(total), MADV_HUGEPAGE);
  WL_RETURN_IF_ERROR(buffer.set_read_only(false));
  char* begin = buffer.map_ + kPageBytes;
  std::memset(begin, kRed, static_cast<size_t>(buffer.data_ - begin));
  std::memset(buffer.data_ + bytes, kRed, static_cast<size_t>(begin + inner - (buffer.data_ + bytes)));
  return buffer;
}

// Unmaps all but `bytes` bytes of the mapping. The first page that stays is the guard page; the second one, where the
// usable memory begins, is at a large-page boundary.
void Buffer::begin_with_large_page(int64_t bytes) {
  const auto second = static_cast<int64_t>(reinterpret_cast<uintptr_t>(map_) + kPageBytes);
  const int64_t before = (kLargePageBytes - second % kLargePageBytes) % kLargePageBytes;
  const int64_t after = map_bytes_ - before - bytes;
  if (before > 0) munmap(map_, static_cast<size_t>(before));
  if (after > 0) munmap(map_ + before + bytes, static_cast<size_t>(after));
  map_ += before;
  map_bytes_ = bytes;
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(map_, other.map_);
  std::swap(map_bytes_, other.map_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (map_) munmap(map_, static_cast<size_t>(map_bytes_));
}

absl::Status Buffer::set_read_only(bool read_only) {
  if (!map_) return absl::OkStatus();
  const int protection = read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  if (mprotect(map_ + kPageBytes, static_cast<size_t>(map_bytes_ - 2 * kPageBytes), protection) == 0)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("cannot protect ", bytes_, " bytes: ", std::strerror(errno)));
}

absl::Status Buffer::check_red_zones() const {
  if (!map_) return absl::OkStatus();
  const char* begin = map_ + kPageBytes;
  const char* end = map_ + map_bytes_ - kPageBytes;
  if (const char* at = first_changed(begin, data_); at != data_)
    return absl::DataLossError(absl::StrCat("wrote ", data_ - at, " bytes before its begin"));
  if (const char* at = first_changed(data_ + bytes_, end); at != end)
    return absl::DataLossError(absl::StrCat("byte ", at - data_, " was written; it has ", bytes_, " bytes"));
  return absl::OkStatus();
}

bool Buffer::covers(const void* address) const {
  const auto* at = static_cast<const char*>(address);
  return map_ && at >= map_ && at < map_ + map_bytes_;
}

void poison(DType dtype, void* data, int64_t elements, bool other) {
  with_words(dtype, [&](auto word) {
    using Word = decltype(word);
    std::fill_n(static_cast<Word*>(data), elements, static_cast<Word>(poison_pattern(dtype, other)));
  });
}

bool is_poison(DType dtype, const void* data, int64_t index, bool other) {
  return count_poison(dtype, static_cast<const char*>(data) + index * size_of(dtype), 1, nullptr, other) == 1;
}

int64_t count_poison(DType dtype, const void* data, int64_t elements, int64_t* first, bool other) {
  return with_words(dtype, [&](auto word) {
    using Word = decltype(word);
    const auto* words = static_cast<const Word*>(data);
    const auto pattern = static_cast<Word>(poison_pattern(dtype, other));
    int64_t count = 0;
    // The inner loop has constant length, so compilers vectorise it. `hits` has the size of an element, at least one
    // byte, and cannot overflow in so few iterations.
    constexpr int64_t kBlock = 128;
    int64_t i = 0;
    for (; i + kBlock <= elements; i += kBlock) {
      Word hits = 0;
      for (int64_t k = 0; k < kBlock; ++k) hits = static_cast<Word>(hits + (words[i + k] == pattern ? 1 : 0));
      if (hits && count == 0 && first) *first = std::find(words + i, words + i + kBlock, pattern) - words;
      count += hits;
    }
    for (; i < elements; ++i) {
      if (words[i] != pattern) continue;
      if (count == 0 && first) *first = i;
      ++count;
    }
    return count;
  });
}

}  // namespace wl
