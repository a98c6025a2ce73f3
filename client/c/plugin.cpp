#include "client/c/plugin.h"

#include "client/c/warploom.h"

namespace wl {

Plugin::Plugin(const std::string& name, const char* what) {
  const std::string file = cat("libwarploom-", name, "-", WARPLOOM_VERSION, ".so");
  object_ = SharedObject::open_beside(reinterpret_cast<const void*>(&warploom_version), file);
  if (!object_.ok()) object_ = absl::FailedPreconditionError(cat(what, " ", file, ": ", object_.status().message()));
}

absl::StatusOr<void*> Plugin::symbol(const char* name) const {
  WL_RETURN_IF_ERROR(object_.status());
  return object_->symbol(name);
}

}  // namespace wl
