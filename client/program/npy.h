// Reads and writes NumPy's file formats, as far as arrays of Warploom's dtypes need them: .npy versions 1 to 3, and
// .npz (a zip of .npy, stored or deflated). NumPy has no type for bf16 and float8; they are written as ml_dtypes saves
// them: bf16 as "|V2", f8e4m3fn as "|V1", f8e5m2 as "|f1".
// numpy.org/doc/stable/reference/generated/numpy.lib.format.html describes the format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/dtype.h"
#include "compiler/base/status.h"

namespace wl {

struct Array {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::string bytes;  // the array's elements in row-major order and little endian
};

// Reads a .npy file; any bytes are safe. Error messages begin with `name`. InvalidArgument: the file is damaged.
// Unimplemented: Fortran order, big endian, or another type of elements.
absl::StatusOr<Array> parse_npy(std::string_view bytes, std::string_view name);
std::string npy_bytes(DType dtype, const std::vector<int64_t>& shape, std::string_view bytes);

// Reads an .npz file. Returns arrays by name, without the ".npy" of the zip's entries. Errors are as of parse_npy().
absl::StatusOr<std::map<std::string, Array>> parse_npz(std::string_view bytes, std::string_view name);

}  // namespace wl
