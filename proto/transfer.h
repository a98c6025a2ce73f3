// Records and objects between a coordinator and whoever calls it: what arrives is checked here before anybody uses it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "compiler/base/status.h"
#include "proto/trust/signing.h"
#include "warploom/v1/blob.grpc.pb.h"
#include "warploom/v1/kernel_store.pb.h"

namespace wl {

namespace v1 = ::warploom::v1;

inline constexpr size_t kMostObjectBytes = 256 << 20;

// What was asked for: a record by its digest or, if that is empty, by its key and environment (empty: any).
struct AskedRecord {
  std::string key = {}, environment = {}, digest = {};
};

// The record of an answer of `where`. Errors of from_proto(), such as DataLoss for a digest that is not of its fields;
// DataLoss: it is none that was asked for; DataLoss, PermissionDenied: those of check_signature().
absl::StatusOr<KernelRecord> arrived_record(const v1::KernelRecord& answer, const AskedRecord& asked,
                                            const std::vector<Signer>& signers, const std::string& where);

// The bytes whose SHA-256 is the digest. DataLoss: what came from `where` are others, more than `most`, or in wrong
// messages. Otherwise the error of the call as gRPC gave it.
absl::StatusOr<std::string> download(v1::BlobStore::Stub& stub, grpc::ClientContext* context, const std::string& digest,
                                     size_t most, const std::string& where);

// Uploads bytes under their digest.
grpc::Status upload(v1::BlobStore::Stub& stub, grpc::ClientContext* context, const std::string& digest,
                    const std::string& bytes);

}  // namespace wl
