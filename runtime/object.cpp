#include "runtime/object.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "compiler/base/libraries.h"
#include "compiler/base/records.h"
#include "compiler/base/status.h"
#include "files/read.h"
#include "runtime/tile_registers.h"

namespace wl {

absl::StatusOr<SharedObject> SharedObject::open(const std::string& path) {
  // A name without a slash gets one, since dlopen() would search the system's library folders for it.
  const std::string place = path.find('/') == std::string::npos ? absl::StrCat("./", path) : path;
  if (const absl::Status status = check_file(place); !status.ok()) return status;
  may_use_tile_registers();  // asks Linux for permission to use the CPU's tile registers, which a kernel may need
  SharedObject object;
  object.handle_ = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object.handle_) return invalid("cannot load ", path, ": ", dlerror());
  return object;
}

absl::StatusOr<SharedObject> SharedObject::open_beside(const void* symbol, const std::string& file) {
  Dl_info info = {};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr)
    return invalid("nothing is known of the place of ", file);
  const std::string self = info.dli_fname;
  const size_t slash = self.rfind('/');
  return open(slash == std::string::npos ? file : cat(self.substr(0, slash + 1), file));
}

SharedObject::~SharedObject() {
  if (handle_) dlclose(handle_);
}

absl::StatusOr<void*> SharedObject::symbol(const std::string& name) const {
  if (!handle_) return invalid("no shared object is loaded, so it has no '", name, "'");
  void* address = dlsym(handle_, name.c_str());
  if (!address) return invalid("the shared object does not define '", name, "'");
  return address;
}

int64_t SharedObject::outside_of(const std::string& entry, int64_t scratch_bytes) const {
  const auto* const at = static_cast<const long*>(dlsym(handle_, absl::StrCat(entry, "_outside").c_str()));
  return at != nullptr && *at >= 0 && *at % 64 == 0 && *at <= scratch_bytes - kOutsideBytes ? *at : -1;
}

absl::Status SharedObject::prepare(const std::string& entry, const std::string& library) const {
  if (library.empty()) return absl::OkStatus();
  const Library* const known = library_named(library);
  if (known == nullptr) return invalid("the kernel ", entry, " needs the library ", library, ", which is unknown here");
  WL_ASSIGN_OR_RETURN(void* const address, symbol(absl::StrCat(entry, "_prepare")));
  const char* const problem = reinterpret_cast<const char* (*)()>(address)();
  if (problem == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the kernel ", entry, " needs the library ", library, ": ", problem,
                                                    "; ", std::string(known->package),
                                                    " has it, and --libraries none makes kernels without it"));
}

}  // namespace wl
