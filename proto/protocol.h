// The files of the protocol as their descriptors say what is in them, for tables of all messages or of all calls.
#pragma once

#include <vector>

namespace google::protobuf {
class FileDescriptor;
}

namespace wl {

// Every proto/warploom/v1/*.proto that has messages or services.
std::vector<const google::protobuf::FileDescriptor*> protocol_files();

}  // namespace wl
