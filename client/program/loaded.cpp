#include "client/program/loaded.h"

#include <utility>

#include "client/program/bundle.h"
#include "client/program/uses.h"

namespace wl {

absl::StatusOr<std::shared_ptr<const LoadedBundle>> LoadedBundle::load(const std::string& folder,
                                                                       std::shared_ptr<const void> hold,
                                                                       Metered metered) {
  const std::shared_ptr<LoadedBundle> bundle(new LoadedBundle);
  bundle->hold_ = std::move(hold);
  bundle->metered_ = std::move(metered);
  WL_ASSIGN_OR_RETURN(bundle->buckets_, list_buckets(folder));
  bundle->programs_.resize(bundle->buckets_.size());
  WL_RETURN_IF_ERROR(bundle->program(0).status());
  return bundle;
}

absl::StatusOr<const Program*> LoadedBundle::program(size_t size) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const Program>& program = programs_.at(size);
  if (program == nullptr) {
    WL_ASSIGN_OR_RETURN(Program loaded, load_bundle(buckets_[size].folder));
    if (metered_) metered_(loaded.meter = std::make_shared<UseMeter>(loaded));
    program = std::make_unique<const Program>(std::move(loaded));
  }
  return program.get();
}

}  // namespace wl
