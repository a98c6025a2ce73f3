// The descriptors of the protocol's files. Tables of all messages and of all calls are made from them.
#pragma once

#include <vector>

namespace google::protobuf {
class FileDescriptor;
}

namespace wl {

// Returns the descriptors of every proto/warploom/v1/*.proto except access.proto.
std::vector<const google::protobuf::FileDescriptor*> protocol_files();

}  // namespace wl
