// Parts of the library in shared objects of their own, which lie beside it and are loaded when they are first needed,
// since they need libraries that others do not: warploom-NAME-VERSION. The name has the version: C++ types pass
// between the two, so both are of one build.
#pragma once

#include <string>

#include "compiler/base/status.h"
#include "runtime/object.h"

namespace wl {

class Plugin {
 public:
  // Loads the object. FailedPrecondition: there is none, or it cannot be loaded; `what` it does is said.
  Plugin(const std::string& name, const char* what);
  absl::StatusOr<void*> symbol(const char* name) const;

 private:
  absl::StatusOr<SharedObject> object_;
};

}  // namespace wl
