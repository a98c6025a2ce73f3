// Parts of the C library that are shared objects of their own, libwarploom-NAME-VERSION.so beside the library. They are
// loaded when they are first needed, because they depend on libraries that most programs do not need. C++ types pass
// between such an object and the C library, so both must be of one build; therefore the file's name has the version.
#pragma once

#include <string>

#include "compiler/base/status.h"
#include "runtime/object.h"

namespace wl {

class Plugin {
 public:
  // Loads libwarploom-NAME-VERSION.so. symbol() returns the error if that fails; the error's message begins with
  // `what`, such as "ONNX files are read by".
  Plugin(const std::string& name, const char* what);
  // Returns the address of a symbol. FailedPrecondition: the shared object is missing or could not be loaded.
  absl::StatusOr<void*> symbol(const char* name) const;

 private:
  absl::StatusOr<SharedObject> object_;
};

}  // namespace wl
