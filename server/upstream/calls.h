// The calls of a coordinator to its upstream, with plain data. Each call blocks and has a deadline. What arrives is
// checked as a client checks it (proto/transfer.h): digests, signatures, limits. Thread-safe.
//
// Errors: Unavailable, DeadlineExceeded and Unauthenticated say that the upstream cannot be reached or used now. Other
// errors are the upstream's answer, or say what is wrong with that answer.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "compiler/base/status.h"
#include "proto/transfer.h"
#include "proto/trust/signing.h"
#include "server/store/store.h"
#include "server/upstream/via.h"
#include "warploom/v1/admin.grpc.pb.h"
#include "warploom/v1/blob.grpc.pb.h"
#include "warploom/v1/kernel_store.grpc.pb.h"

namespace wl {

class UpstreamCalls {
 public:
  // `signers`: every record must be signed by one of them; empty: records may be signed with any key, or unsigned.
  UpstreamCalls(const std::shared_ptr<grpc::Channel>& channel, std::string where, std::vector<Signer> signers);

  template <typename T>
  struct Answer {
    T value;
    // Why the upstream could not ask its own upstream for missing records; empty: it could, or did not need to.
    std::string problem;
  };
  // Fetches a record; nullopt: the upstream has no such record.
  absl::StatusOr<Answer<std::optional<KernelRecord>>> record(const AskedRecord& asked, const Via& via);
  // Fetches an object; NotFound: the upstream does not have it.
  absl::StatusOr<std::string> object(const std::string& digest, const Via& via);
  absl::StatusOr<std::vector<Device>> devices(const Via& via);
  // Returns digest, key and signature of the records that the upstream now serves for the keys and environments of
  // `records`. An empty digest means that it serves none. The answer may cover only the first few of `records`.
  absl::StatusOr<Answer<std::vector<KernelRecord>>> serves(const std::vector<NumberedRecord>& records, const Via& via);
  // Returns the heads that the upstream gives (StoreHead: which records of a signer are no longer valid), without
  // those that are damaged or are of none of the signers.
  absl::StatusOr<std::vector<StoreHead>> heads(const Via& via);
  absl::Status offer_heads(const std::vector<StoreHead>& heads);
  // Uploads the object, unless the upstream has it already, and offers the record.
  struct Offered {
    enum Outcome { kAccepted, kKnown, kRefused } outcome = kRefused;
    std::string why;
  };
  absl::StatusOr<Offered> offer(const KernelRecord& record, const std::string& object);
  absl::Status ping();

  // Cancels all running calls. Later calls fail at once.
  void cancel();

 private:
  template <typename Call>
  absl::Status limited(std::chrono::milliseconds limit, const Via& via, const Call& call);

  const std::string where_;
  const std::vector<Signer> signers_;
  const std::unique_ptr<v1::KernelStore::Stub> kernels_;
  const std::unique_ptr<v1::BlobStore::Stub> blobs_;
  const std::unique_ptr<v1::Admin::Stub> admin_;
  std::mutex mutex_;  // guards the members declared below
  std::set<grpc::ClientContext*> open_;
  bool cancelled_ = false;
};

}  // namespace wl
