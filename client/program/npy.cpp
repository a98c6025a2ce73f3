#include "client/program/npy.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "files/read.h"

namespace wl {
namespace {

struct Descr {
  DType dtype;
  std::string_view text;
};
constexpr Descr kDescrs[] = {{DType::f64, "<f8"},    {DType::f32, "<f4"},      {DType::f16, "<f2"},
                             {DType::bf16, "|V2"},   {DType::i64, "<i8"},      {DType::i32, "<i4"},
                             {DType::i16, "<i2"},    {DType::i8, "|i1"},       {DType::u64, "<u8"},
                             {DType::u32, "<u4"},    {DType::u16, "<u2"},      {DType::u8, "|u1"},
                             {DType::b1, "|b1"},     {DType::bf16, "<V2"},     {DType::f8e4m3fn, "|V1"},
                             {DType::f8e5m2, "|f1"}, {DType::f8e4m3fn, "<V1"}, {DType::f8e5m2, "<f1"}};

constexpr std::string_view kMagic("\x93NUMPY", 6);

uint64_t little_endian(std::string_view bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)]);
  return value;
}

// Returns the text that follows `'key':` in the header's dictionary.
std::optional<std::string_view> entry(std::string_view header, std::string_view key) {
  size_t at = header.find(cat("'", key, "':"));
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = header.substr(at + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

absl::StatusOr<std::vector<int64_t>> parse_shape(std::string_view text, std::string_view name) {
  std::vector<int64_t> shape;
  if (text.empty() || text[0] != '(') return invalid(name, ": the .npy header's shape is not a tuple");
  text.remove_prefix(1);
  for (;;) {
    while (!text.empty() && (text[0] == ' ' || text[0] == ',')) text.remove_prefix(1);
    if (!text.empty() && text[0] == ')') return shape;
    int64_t extent = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0) return invalid(name, ": the .npy header's shape is not a tuple of extents");
    shape.push_back(extent);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
}

absl::StatusOr<std::string> inflate_raw(std::string_view bytes, size_t size, std::string_view name) {
  // Deflate compresses at most 1032 to 1, so a larger size is wrong and memory must not be allocated for it.
  if (size / 1100 > bytes.size()) return invalid(name, ": the zip entry's size cannot be right");
  std::string out(size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return absl::InternalError("zlib does not start");
  size_t consumed = 0, produced = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    constexpr size_t kStep = 1u << 30;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + consumed));
    stream.avail_in = static_cast<uInt>(std::min(kStep, bytes.size() - consumed));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + produced);
    stream.avail_out = static_cast<uInt>(std::min(kStep, out.size() - produced));
    uInt in = stream.avail_in, room = stream.avail_out;
    result = inflate(&stream, Z_NO_FLUSH);
    consumed += in - stream.avail_in;
    produced += room - stream.avail_out;
    if (in == stream.avail_in && room == stream.avail_out) break;
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END || produced != size) return invalid(name, ": the compressed data is damaged");
  return out;
}

// An entry of a zip file: its compression method (0: stored, 8: deflated), the offsets of its header and of its data in
// the file, and the numbers of bytes before and after unpacking.
struct ZipEntry {
  std::string name;
  size_t method = 0;
  uint64_t local = 0, data = 0, packed = 0, size = 0;
};

absl::Status damaged_directory(std::string_view name) {
  return invalid(name, ": the zip directory is damaged");
}

// Reads the entry at offset `*at`, in the central directory, and advances `*at` to the next one.
absl::StatusOr<ZipEntry> zip_entry(std::string_view bytes, size_t* at, std::string_view name) {
  constexpr std::string_view kCentral("PK\x01\x02", 4), kLocal("PK\x03\x04", 4);
  if (bytes.size() < 46 || *at > bytes.size() - 46 || bytes.substr(*at, 4) != kCentral) return damaged_directory(name);
  ZipEntry entry;
  entry.method = little_endian(bytes, *at + 10, 2);
  entry.packed = little_endian(bytes, *at + 20, 4);
  entry.size = little_endian(bytes, *at + 24, 4);
  const size_t name_size = little_endian(bytes, *at + 28, 2), extra_size = little_endian(bytes, *at + 30, 2);
  const size_t comment_size = little_endian(bytes, *at + 32, 2);
  entry.local = little_endian(bytes, *at + 42, 4);
  if (name_size + extra_size > bytes.size() - 46 - *at) return damaged_directory(name);
  entry.name = std::string(bytes.substr(*at + 46, name_size));
  std::string_view extra = bytes.substr(*at + 46 + name_size, extra_size);
  if (entry.packed == 0xffffffff || entry.size == 0xffffffff || entry.local == 0xffffffff) {
    // Zip64: numbers that do not fit into 32 bits are in the extra field with id 1, in the order in which the loop
    // below reads them.
    while (extra.size() >= 4 && little_endian(extra, 0, 2) != 1) {
      extra.remove_prefix(std::min<size_t>(extra.size(), 4 + little_endian(extra, 2, 2)));
    }
    size_t field = 4;
    for (uint64_t* value : {&entry.size, &entry.packed, &entry.local}) {
      if (*value != 0xffffffff) continue;
      if (extra.size() < field + 8) return damaged_directory(name);
      *value = little_endian(extra, field, 8);
      field += 8;
    }
  }
  *at += 46 + name_size + extra_size + comment_size;
  if (bytes.size() < 30 || entry.local > bytes.size() - 30 || bytes.substr(entry.local, 4) != kLocal) {
    return invalid(name, ": the zip entry ", entry.name, " is damaged");
  }
  entry.data = entry.local + 30 + little_endian(bytes, entry.local + 26, 2) + little_endian(bytes, entry.local + 28, 2);
  if (entry.data > bytes.size() || entry.packed > bytes.size() - entry.data) {
    return invalid(name, ": the zip entry ", entry.name, " is cut off");
  }
  if (entry.method == 0 && entry.size != entry.packed)
    return invalid(name, ": the zip entry ", entry.name, " says two sizes of the same bytes");
  return entry;
}

// Reads the entries of a zip file. Entries that overlap are an error (InvalidArgument): with such entries, a small file
// could unpack to any amount of memory.
absl::StatusOr<std::vector<ZipEntry>> zip_entries(std::string_view bytes, std::string_view name) {
  // The central directory is found from its end record; see PKWARE's APPNOTE 4.3.
  constexpr std::string_view kEnd("PK\x05\x06", 4);
  const size_t end = bytes.rfind(kEnd);
  if (end == std::string_view::npos || bytes.size() - end < 22) return invalid(name, ": not a .npz file");
  const size_t count = little_endian(bytes, end + 10, 2);
  size_t at = little_endian(bytes, end + 16, 4);
  std::vector<ZipEntry> entries;
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    WL_ASSIGN_OR_RETURN(ZipEntry entry, zip_entry(bytes, &at, name));
    if (__builtin_add_overflow(total, entry.size, &total))
      return invalid(name, ": the sizes of its zip entries cannot be right");
    entries.push_back(std::move(entry));
  }
  WL_RETURN_IF_ERROR(check_array_bytes(cat(name, ": what its zip entries unpack to"), total));
  std::vector<const ZipEntry*> in_order;
  for (const ZipEntry& entry : entries) in_order.push_back(&entry);
  std::sort(in_order.begin(), in_order.end(), [](const auto* a, const auto* b) { return a->local < b->local; });
  for (size_t i = 1; i < in_order.size(); ++i) {
    if (in_order[i - 1]->data + in_order[i - 1]->packed > in_order[i]->local)
      return invalid(name, ": the zip entries ", in_order[i - 1]->name, " and ", in_order[i]->name, " overlap");
  }
  return entries;
}

}  // namespace

absl::StatusOr<Array> parse_npy(std::string_view bytes, std::string_view name) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != kMagic) return invalid(name, ": not a .npy file");
  int version = bytes[6];
  size_t length_bytes = version == 1 ? 2 : 4;
  if (version < 1 || version > 3)
    return unimplemented(name, ": .npy version ", version, "; versions 1 to 3 are supported");
  if (bytes.size() < 8 + length_bytes) return invalid(name, ": the .npy header is cut off");
  size_t length = little_endian(bytes, 8, static_cast<int>(length_bytes));
  if (bytes.size() - 8 - length_bytes < length) return invalid(name, ": the .npy header is cut off");
  std::string_view header = bytes.substr(8 + length_bytes, length);

  auto descr = entry(header, "descr"), order = entry(header, "fortran_order"), shape = entry(header, "shape");
  if (!descr || !order || !shape) return invalid(name, ": the .npy header lacks descr, fortran_order or shape");
  Array array;
  const Descr* found = nullptr;
  for (const Descr& row : kDescrs) {
    if (descr->size() >= 5 && descr->substr(1, 3) == row.text && (*descr)[4] == (*descr)[0]) found = &row;
  }
  if (found == nullptr) {
    return unimplemented(name, ": element type ", descr->substr(0, descr->find(',')),
                         " is not known; use little-endian f2, f4, f8, i1-i8, u1-u8 or b1");
  }
  array.dtype = found->dtype;
  WL_ASSIGN_OR_RETURN(array.shape, parse_shape(*shape, name));
  if (!order->starts_with("False") && array.shape.size() > 1) {
    return unimplemented(name, ": Fortran order; save numpy.ascontiguousarray(x) instead");
  }
  std::string_view data = bytes.substr(8 + length_bytes + length);
  int64_t size = size_of(array.dtype);
  for (int64_t extent : array.shape) {
    if (__builtin_mul_overflow(size, extent, &size)) return invalid(name, ": the shape is too large");
  }
  if (static_cast<uint64_t>(size) != data.size()) {
    return invalid(name, ": the shape needs ", size, " bytes of data, the file has ", data.size());
  }
  array.bytes = std::string(data);
  return array;
}

std::string npy_bytes(DType dtype, const std::vector<int64_t>& shape, std::string_view bytes) {
  std::string_view descr;
  for (const Descr& row : kDescrs) {
    if (row.dtype == dtype && descr.empty()) descr = row.text;
  }
  std::string header = cat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (");
  for (int64_t extent : shape) append(&header, extent, ",");
  append(&header, "), }");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string out(kMagic);
  out += std::string_view("\x01\x00", 2);
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out += bytes;
  return out;
}

absl::StatusOr<std::map<std::string, Array>> parse_npz(std::string_view bytes, std::string_view name) {
  WL_ASSIGN_OR_RETURN(std::vector<ZipEntry> entries, zip_entries(bytes, name));
  std::map<std::string, Array> arrays;
  for (ZipEntry& entry : entries) {
    std::string_view raw = bytes.substr(entry.data, entry.packed);
    std::string inflated;
    const std::string label = cat(name, ":", entry.name);
    if (entry.method == 8) {
      WL_ASSIGN_OR_RETURN(inflated, inflate_raw(raw, entry.size, label));
      raw = inflated;
    } else if (entry.method != 0) {
      return unimplemented(label, ": zip method ", entry.method, "; stored and deflated are supported");
    }
    WL_ASSIGN_OR_RETURN(Array array, parse_npy(raw, label));
    if (entry.name.ends_with(".npy")) entry.name.resize(entry.name.size() - 4);
    arrays[entry.name] = std::move(array);
  }
  return arrays;
}

}  // namespace wl
