#include "proto/transfer.h"

#include "compiler/base/sha256.h"
#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/wire.h"

namespace wl {

absl::StatusOr<KernelRecord> arrived_record(const v1::KernelRecord& answer, const AskedRecord& asked,
                                            const std::vector<Signer>& signers, const std::string& where) {
  WL_ASSIGN_OR_RETURN(KernelRecord record, from_proto(answer));
  const std::string unusable = cat("the answer of ", where, " cannot be used: ");
  if (!asked.digest.empty()) {
    if (record.digest != asked.digest)
      return absl::DataLossError(cat(unusable, "it has the record ", record.digest, ", asked for was ", asked.digest));
  } else if (record.key != asked.key) {
    return absl::DataLossError(
        cat(unusable, "it is the record of the key ", record.key, ", asked for was ", asked.key));
  } else if (!asked.environment.empty() && record.environment != asked.environment) {
    return absl::DataLossError(
        cat(unusable, "it is of the environment ", record.environment, ", asked for was ", asked.environment));
  }
  WL_RETURN_IF_ERROR(check_signature(record, signers));
  return record;
}

absl::StatusOr<std::string> download(v1::BlobStore::Stub& stub, grpc::ClientContext* context, const std::string& digest,
                                     size_t most, const std::string& where) {
  v1::DownloadRequest request;
  request.set_digest(digest);
  auto stream = stub.Download(context, request);
  std::string bytes;
  v1::DownloadResponse chunk;
  absl::Status wrong;
  while (wrong.ok() && stream->Read(&chunk)) {
    wrong = check_fields(chunk);
    bytes += chunk.data();
    if (bytes.size() > most) wrong = invalid("the object ", digest, " has more than ", most, " bytes");
  }
  if (!wrong.ok()) context->TryCancel();
  const absl::Status call = from_grpc(stream->Finish());
  if (!wrong.ok())
    return absl::DataLossError(cat("the answer of ", where, " cannot be used: ", std::string(wrong.message())));
  WL_RETURN_IF_ERROR(call);
  if (sha256_hex(bytes) != digest)
    return absl::DataLossError(cat("the object ", digest, " arrived damaged from ", where));
  return bytes;
}

grpc::Status upload(v1::BlobStore::Stub& stub, grpc::ClientContext* context, const std::string& digest,
                    const std::string& bytes) {
  v1::UploadResponse answer;
  auto writer = stub.Upload(context, &answer);
  size_t at = 0;
  do {
    v1::UploadRequest chunk;
    if (at == 0) chunk.set_digest(digest);
    chunk.set_data(bytes.substr(at, kBlobChunkBytes));
    at += kBlobChunkBytes;
    if (!writer->Write(chunk)) break;
  } while (at < bytes.size());
  writer->WritesDone();
  return writer->Finish();
}

}  // namespace wl
