// check-access FILE: fails unless every rpc in the descriptors of FILE (protoc --descriptor_set_out --include_imports
// --include_source_info) has the option `access`, which names the roles that may call the rpc. The build runs this
// program before it compiles the protocol.
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace pb = ::google::protobuf;

// Returns the field number of the option `access`, or -1 if no file defines it.
int number_of_option(const pb::FileDescriptorSet& files) {
  for (const pb::FileDescriptorProto& file : files.file()) {
    for (const pb::FieldDescriptorProto& field : file.extension()) {
      if (file.package() == "warploom.v1" && field.name() == "access") return field.number();
    }
  }
  return -1;
}

// Whether the option `access` of an rpc is set and not empty. This program is built before the protocol, so the option
// is an unknown field here.
bool says_who(const pb::MethodOptions& options, int option) {
  const pb::UnknownFieldSet& fields = options.GetReflection()->GetUnknownFields(options);
  for (int i = 0; i < fields.field_count(); ++i) {
    const pb::UnknownField& field = fields.field(i);
    if (field.number() == option && field.type() == pb::UnknownField::TYPE_LENGTH_DELIMITED &&
        !field.length_delimited().empty())
      return true;
  }
  return false;
}

int line_of(const pb::FileDescriptorProto& file, int service, int method) {
  const std::vector<int> path = {pb::FileDescriptorProto::kServiceFieldNumber, service,
                                 pb::ServiceDescriptorProto::kMethodFieldNumber, method};
  for (const auto& at : file.source_code_info().location()) {
    if (std::equal(path.begin(), path.end(), at.path().begin(), at.path().end()) && at.span_size() > 0)
      return at.span(0) + 1;
  }
  return 0;
}

int check(const pb::FileDescriptorProto& file, int option) {
  int wrong = 0;
  for (int i = 0; i < file.service_size(); ++i) {
    for (int k = 0; k < file.service(i).method_size(); ++k) {
      const pb::MethodDescriptorProto& method = file.service(i).method(k);
      if (says_who(method.options(), option)) continue;
      std::fprintf(stderr,
                   "proto/%s:%d: rpc %s.%s does not say who may call it; add `option (access) = {roles: [...]};` with "
                   "CLIENT, WORKER, OPERATOR or CACHE\n",
                   file.name().c_str(), line_of(file, i, k), file.service(i).name().c_str(), method.name().c_str());
      ++wrong;
    }
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  pb::FileDescriptorSet files;
  std::ifstream in(argc == 2 ? argv[1] : "", std::ios::binary);
  if (!in || !files.ParseFromIstream(&in) || files.file().empty()) {
    std::fprintf(stderr, "check_access: expected one file of descriptors, as protoc writes them\n");
    return 1;
  }
  const int option = number_of_option(files);
  int wrong = 0;
  for (const pb::FileDescriptorProto& file : files.file()) wrong += check(file, option);
  return wrong == 0 ? 0 : 1;
}
