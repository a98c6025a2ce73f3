#include <algorithm>

#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/services/services.h"
#include "warploom/v1/blob.grpc.pb.h"

namespace wl {
namespace {

constexpr size_t kMaxBlobBytes = 256 << 20;

class BlobService final : public v1::BlobStore::Service {
 public:
  BlobService(Engine* engine, Store* store) : engine_(engine), store_(store) {}
  grpc::Status FindMissing(grpc::ServerContext*, const v1::FindMissingRequest*, v1::FindMissingResponse*) override;
  grpc::Status Upload(grpc::ServerContext*, grpc::ServerReader<v1::UploadRequest>*, v1::UploadResponse*) override;
  grpc::Status Download(grpc::ServerContext*, const v1::DownloadRequest*,
                        grpc::ServerWriter<v1::DownloadResponse>*) override;

 private:
  Engine* engine_;
  Store* store_;
};

grpc::Status BlobService::FindMissing(grpc::ServerContext*, const v1::FindMissingRequest* request,
                                      v1::FindMissingResponse* out) {
  const auto missing = store_->missing_blobs({request->digests().begin(), request->digests().end()});
  if (!missing.ok()) return to_grpc(missing.status());
  for (const std::string& digest : *missing) out->add_digests(digest);
  return grpc::Status::OK;
}

grpc::Status BlobService::Upload(grpc::ServerContext*, grpc::ServerReader<v1::UploadRequest>* reader,
                                 v1::UploadResponse* out) {
  v1::UploadRequest chunk;
  std::string digest, bytes;
  while (reader->Read(&chunk)) {
    if (digest.empty()) digest = chunk.digest();
    bytes += chunk.data();
    if (bytes.size() > kMaxBlobBytes) return to_grpc(invalid("blob: expected at most ", kMaxBlobBytes, " bytes"));
  }
  out->set_size(static_cast<int64_t>(bytes.size()));
  return to_grpc(engine_->put_blob(digest, bytes));
}

grpc::Status BlobService::Download(grpc::ServerContext*, const v1::DownloadRequest* request,
                                   grpc::ServerWriter<v1::DownloadResponse>* writer) {
  const auto bytes = store_->blob(request->digest());
  if (!bytes.ok()) return to_grpc(bytes.status());
  if (!*bytes) return {grpc::StatusCode::NOT_FOUND, cat("no blob ", request->digest())};
  if (request->offset() < 0) return to_grpc(invalid("offset: expected 0 or more, found ", request->offset()));
  for (size_t at = static_cast<size_t>(request->offset()); at < (*bytes)->size(); at += kBlobChunkBytes) {
    v1::DownloadResponse chunk;
    chunk.set_data((*bytes)->substr(at, kBlobChunkBytes));
    if (!writer->Write(chunk)) break;
  }
  return grpc::Status::OK;
}

}  // namespace

std::unique_ptr<grpc::Service> make_blob_service(Engine* engine, Store* store) {
  return std::make_unique<BlobService>(engine, store);
}

}  // namespace wl
