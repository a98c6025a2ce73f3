// One graph at several sizes: a bundle whose sub-folders, called buckets, are bundles that were each tuned for other
// extents of the graph's symbolic dimensions. Kernels serve exactly the extents that they were tuned for.
//
//   buckets.json       extents, sub-folder and manifest digest of each bucket; the last key is the digest of this file
//   n=64/, n=128/ ...  bundles (client/program/bundle.h)
//
// All functions here treat a plain bundle as a single bucket.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/program/program.h"

namespace wl {

using Bind = std::map<std::string, int64_t>;  // extents of a graph's symbolic dimensions, by name

// Returns every combination of one extent for each name; a single empty Bind if there are no names.
std::vector<Bind> combinations(const std::map<std::string, std::vector<int64_t>>& values);
std::string bind_text(const Bind& bind);  // formats extents as "batch=8,n=64"; "" if there are none

struct TunedProgram {
  Program program;
  std::string report;
};
// Writes a bundle as write_bundle() does; several programs become a folder of buckets.
absl::Status write_buckets(const std::string& folder, const std::vector<TunedProgram>& programs);

struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  // extents of the tensor's axes; its elements are in row-major order
};
struct Bucket {
  Bind bind;
  std::string folder;  // folder that contains the bundle of this size
  std::vector<TensorInfo> inputs, outputs;
};
// Returns the buckets of a bundle, of which only the manifests are read. Errors are those of load_bundle().
absl::StatusOr<std::vector<Bucket>> list_buckets(const std::string& folder);

// Returns the index of the bucket with exactly these extents and input shapes. Without extents in `bind`, a single
// bucket is returned for any shapes. InvalidArgument lists the tuned sizes if no bucket fits, or more than one.
absl::StatusOr<size_t> pick_bucket(const std::vector<Bucket>& buckets, const Bind& bind,
                                   const std::map<std::string, Shape>& inputs);

}  // namespace wl
