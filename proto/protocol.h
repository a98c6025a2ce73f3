// The descriptors of the protocol's files, from which limits.cpp and roles.cpp make tables of all messages and rpcs.
#pragma once

#include <vector>

namespace google::protobuf {
class FileDescriptor;
}

namespace wl {

// Returns the descriptors of every proto/warploom/v1/*.proto except access.proto.
std::vector<const google::protobuf::FileDescriptor*> protocol_files();

}  // namespace wl
