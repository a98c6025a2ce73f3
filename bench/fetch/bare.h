// Baselines for fetching kernels from a coordinator: gRPC services and reads of an SQLite file that do nothing else;
// and a client of the services.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <sqlite3.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "compiler/base/status.h"
#include "proto/dial.h"
#include "proto/rpc.h"
#include "proto/wire.h"
#include "warploom/v1/kernel_store.grpc.pb.h"

namespace wl {

inline constexpr char kGet[] = "/warploom.v1.KernelStore/GetKernel";

inline void must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "fetch_load: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

template <typename T>
T must(absl::StatusOr<T> value) {
  must(value.status());
  return *std::move(value);
}

// A GetKernel service that answers every call with the same serialised reply.
class Echo final : public v1::KernelStore::WithRawCallbackMethod_GetKernel<v1::KernelStore::Service> {
 public:
  explicit Echo(const std::string& bytes) : slice_(bytes) {}
  grpc::ServerUnaryReactor* GetKernel(grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
                                      grpc::ByteBuffer* out) override {
    *out = grpc::ByteBuffer(&slice_, 1);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const grpc::Slice slice_;
};

// Reads values by their keys from a table of an SQLite file, on a connection of its own.
class BareReader {
 public:
  explicit BareReader(const std::string& file) {
    sqlite3_open_v2(file.c_str(), &connection_, SQLITE_OPEN_READONLY, nullptr);
    sqlite3_busy_timeout(connection_, 5'000);
    sqlite3_prepare_v2(connection_, "SELECT bytes FROM bare WHERE key = ?", -1, &statement_, nullptr);
  }
  ~BareReader() {
    sqlite3_finalize(statement_);
    sqlite3_close(connection_);
  }
  BareReader(const BareReader&) = delete;
  BareReader& operator=(const BareReader&) = delete;
  std::string get(const std::string& key) {
    sqlite3_bind_text(statement_, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
    if (sqlite3_step(statement_) != SQLITE_ROW) must(absl::InternalError("no row"));
    std::string bytes(static_cast<const char*>(sqlite3_column_blob(statement_, 0)),
                      static_cast<size_t>(sqlite3_column_bytes(statement_, 0)));
    sqlite3_reset(statement_);
    return bytes;
  }
  // Makes a database with `rows` rows. row(i) returns the key and the value (the column "bytes") of row i.
  static void fill(const std::string& file, int64_t rows,
                   const std::function<std::pair<std::string, std::string>(int64_t)>& row) {
    sqlite3* connection = nullptr;
    sqlite3_open(file.c_str(), &connection);
    sqlite3_exec(connection, "PRAGMA journal_mode=WAL; CREATE TABLE bare (key TEXT PRIMARY KEY, bytes BLOB); BEGIN",
                 nullptr, nullptr, nullptr);
    sqlite3_stmt* insert = nullptr;
    sqlite3_prepare_v2(connection, "INSERT INTO bare VALUES (?, ?)", -1, &insert, nullptr);
    for (int64_t i = 0; i < rows; ++i) {
      const auto [key, bytes] = row(i);
      sqlite3_bind_text(insert, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
      sqlite3_bind_blob(insert, 2, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
      sqlite3_step(insert);
      sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    sqlite3_exec(connection, "COMMIT", nullptr, nullptr, nullptr);
    sqlite3_close(connection);
  }

 private:
  sqlite3* connection_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

// A GetKernel service that answers with the value that the calling thread's BareReader reads for the requested key, and
// does nothing else.
class BareStore final : public v1::KernelStore::WithRawCallbackMethod_GetKernel<v1::KernelStore::Service> {
 public:
  explicit BareStore(std::string file) : file_(std::move(file)) {}
  grpc::ServerUnaryReactor* GetKernel(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* out) override {
    thread_local BareReader reader(file_);
    v1::GetKernelRequest message;
    grpc::ByteBuffer bytes = *request;
    must(from_grpc(grpc::SerializationTraits<v1::GetKernelRequest>::Deserialize(&bytes, &message)));
    const grpc::Slice slice(reader.get(message.key()));
    *out = grpc::ByteBuffer(&slice, 1);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const std::string file_;
};

struct BareServer {
  explicit BareServer(grpc::Service* service) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service);
    server = builder.BuildAndStart();
  }
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

// A client with a connection of its own. It makes one call at a time, and does not decode the reply.
class Client {
 public:
  explicit Client(int port) : stub_(connect(port)) {}
  // Connects by TLS, with a certificate or a token. The connection is not shared with other clients, because gRPC
  // shares none between channels whose credentials are separate objects.
  Client(const std::string& address, const DialOptions& how) : stub_(dial(address, how).value()) {}
  size_t get(const std::string& request) {
    const grpc::Slice slice(request);
    const grpc::ByteBuffer bytes(&slice, 1);
    grpc::ClientContext context;
    const auto call = stub_.PrepareUnaryCall(&context, kGet, bytes, &queue_);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    must(from_grpc(status));
    return reply.Length();
  }

 private:
  static std::shared_ptr<grpc::Channel> connect(int port) {
    grpc::ChannelArguments arguments = channel_arguments();
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(cat("127.0.0.1:", port), grpc::InsecureChannelCredentials(), arguments);
  }
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
};

}  // namespace wl
