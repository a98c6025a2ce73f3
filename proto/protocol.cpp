#include "proto/protocol.h"

#include "warploom/v1/admin.pb.h"
#include "warploom/v1/blob.pb.h"
#include "warploom/v1/kernel_store.pb.h"
#include "warploom/v1/records.pb.h"
#include "warploom/v1/tuning.pb.h"
#include "warploom/v1/worker.pb.h"

namespace wl {

std::vector<const google::protobuf::FileDescriptor*> protocol_files() {
  namespace v1 = ::warploom::v1;
  return {v1::Source::descriptor()->file(),     v1::KernelRecord::descriptor()->file(),
          v1::Job::descriptor()->file(),        v1::Lease::descriptor()->file(),
          v1::WorkerInfo::descriptor()->file(), v1::UploadRequest::descriptor()->file()};
}

}  // namespace wl
