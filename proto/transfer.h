// The transfer of records and objects between a coordinator and its callers. Whatever arrives is checked here before it
// is used.
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

// The record that a caller asked for: by its digest or, if `digest` is empty, by its key and environment (empty: any
// environment).
struct AskedRecord {
  std::string key = {}, environment = {}, digest = {};
};

// Checks and converts the record in an answer. `where`: the peer's name in messages. DataLoss: the record is not the
// one that was asked for. Other errors are those of check_signature() and of from_proto(), such as DataLoss if the
// digest does not match the record's fields.
absl::StatusOr<KernelRecord> arrived_record(const v1::KernelRecord& answer, const AskedRecord& asked,
                                            const std::vector<Signer>& signers, const std::string& where);

// Downloads the object with this SHA-256. `where`: the peer's name in messages. DataLoss: the bytes have another
// SHA-256, or are more than `most`, or a message is not valid. Other errors are those of the call.
absl::StatusOr<std::string> download(v1::BlobStore::Stub& stub, grpc::ClientContext* context, const std::string& digest,
                                     size_t most, const std::string& where);

// Uploads an object; `digest` is the SHA-256 of `bytes`. Returns the status of the call.
grpc::Status upload(v1::BlobStore::Stub& stub, grpc::ClientContext* context, const std::string& digest,
                    const std::string& bytes);

}  // namespace wl
