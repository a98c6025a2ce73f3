// The calls of a coordinator to its upstream, as plain data. Each blocks and has a deadline. What arrives is checked as
// a client checks it (proto/transfer.h): digests, signatures, limits. Any thread.
//
// Errors: Unavailable, DeadlineExceeded and Unauthenticated say that the upstream cannot be reached or used now. Others
// are its answer, or say what is wrong with it.
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
  // `signers`: one of them must have signed every record; empty: anybody, or nobody.
  UpstreamCalls(const std::shared_ptr<grpc::Channel>& channel, std::string where, std::vector<Signer> signers);

  template <typename T>
  struct Answer {
    T value;
    std::string problem;  // why the upstream could not ask its own upstream for what is absent; empty: it did
  };
  // Nothing: it has no such record.
  absl::StatusOr<Answer<std::optional<KernelRecord>>> record(const AskedRecord& asked, const Via& via);
  absl::StatusOr<std::string> object(const std::string& digest, const Via& via);  // NotFound
  absl::StatusOr<std::vector<Device>> devices(const Via& via);
  // The records that it serves now under these keys and environments, of each its digest and what is signed beside it;
  // a digest of "": none. Perhaps of the first of them only.
  absl::StatusOr<Answer<std::vector<KernelRecord>>> serves(const std::vector<NumberedRecord>& records, const Via& via);
  // What it says of heads: those that are sound, and of a signer.
  absl::StatusOr<std::vector<StoreHead>> heads(const Via& via);
  absl::Status offer_heads(const std::vector<StoreHead>& heads);
  // Uploads the object, unless it is there, and offers the record.
  struct Offered {
    enum Outcome { kAccepted, kKnown, kRefused } outcome = kRefused;
    std::string why;
  };
  absl::StatusOr<Offered> offer(const KernelRecord& record, const std::string& object);
  absl::Status ping();

  // Ends all calls, now and from now on.
  void cancel();

 private:
  template <typename Call>
  absl::Status limited(std::chrono::milliseconds limit, const Via& via, const Call& call);

  const std::string where_;
  const std::vector<Signer> signers_;
  const std::unique_ptr<v1::KernelStore::Stub> kernels_;
  const std::unique_ptr<v1::BlobStore::Stub> blobs_;
  const std::unique_ptr<v1::Admin::Stub> admin_;
  std::mutex mutex_;  // guards the rest
  std::set<grpc::ClientContext*> open_;
  bool cancelled_ = false;
};

}  // namespace wl
