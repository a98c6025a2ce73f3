// A fixture with a chain of coordinators, each on a unix socket in one folder, for tests of what one coordinator asks
// of the next.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/dial.h"
#include "proto/transfer.h"
#include "proto/trust/signing.h"
#include "tests/server/outside.h"
#include "tests/server/raw_call.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {

class Chain : public ::testing::Test {
 protected:
  std::string address(const std::string& name) const { return "unix:" + scratch.path(name); }
  std::string store(const std::string& name) const { return scratch.path(name + ".db"); }
  // Returns options of the coordinator NAME, with a signing key of its own. `upstream`: a coordinator's name, or empty.
  CoordinatorOptions options(const std::string& name, const std::string& upstream = "") const {
    CoordinatorOptions out;
    out.store = store(name);
    out.listen = address(name);
    out.signing_key = scratch.path(name + ".key");
    out.lease_s = 0.5;  // the lease is short, so that a worker that has disconnected is soon considered lost
    if (!upstream.empty()) out.upstream.address = address(upstream);
    return out;
  }
  // Writes a --signers file with the public keys of these coordinators. Makes the keys that do not exist yet.
  std::string signers(const std::vector<std::string>& names) const {
    const std::string file = scratch.path("signers");
    std::ofstream out(file);
    for (const std::string& name : names)
      out << SigningKey::open(scratch.path(name + ".key")).value()->public_key() << " " << name << "\n";
    return file;
  }
  // Returns the answer to a GetKernel call as the bytes that were received.
  static std::string bytes_of(const std::shared_ptr<grpc::Channel>& channel, const v1::GetKernelRequest& request) {
    grpc::ByteBuffer answer;
    const grpc::Status status =
        raw_call(channel, "/warploom.v1.KernelStore/GetKernel", request.SerializeAsString(), &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::string bytes;
    grpc::Slice slice;
    if (status.ok() && answer.DumpToSingleSlice(&slice).ok())
      bytes.assign(reinterpret_cast<const char*>(slice.begin()), slice.size());
    return bytes;
  }
  static std::string bytes_of(const std::shared_ptr<grpc::Channel>& channel, const std::string& key) {
    v1::GetKernelRequest request;
    request.set_key(key);
    return bytes_of(channel, request);
  }
  static absl::StatusOr<std::string> object(const std::shared_ptr<grpc::Channel>& channel, const std::string& digest) {
    const auto stub = v1::BlobStore::NewStub(channel);
    grpc::ClientContext context;
    return download(*stub, &context, digest, kMostObjectBytes, "the coordinator");
  }
  // Returns, for every key that the coordinator lists, the record that it serves for the key.
  static std::vector<KernelRecord> all_records(Service& at) {
    grpc::ClientContext context;
    v1::ListKernelsResponse page;
    EXPECT_TRUE(at.kernels->ListKernels(&context, {}, &page).ok());
    std::vector<KernelRecord> out;
    for (const v1::KernelSummary& kernel : page.kernels()) out.push_back(at.record(kernel.key()).value());
    return out;
  }
  // Returns the head of the coordinator NAME as the coordinator `at` gives it out. The head states which generations
  // of NAME's records are valid.
  std::optional<StoreHead> head(Service& at, const std::string& name) {
    grpc::ClientContext context;
    v1::GetHeadsResponse answer;
    EXPECT_TRUE(at.kernels->GetHeads(&context, {}, &answer).ok());
    const std::string key = SigningKey::open(scratch.path(name + ".key")).value()->public_key();
    for (const v1::StoreHead& message : answer.heads())
      if (message.signed_by() == key) return from_proto(message);
    return std::nullopt;
  }
  static TuneOptions only_cached() {
    TuneOptions out = trials(8);
    out.require_cached = true;
    return out;
  }

  Scratch scratch;
};

}  // namespace wl
