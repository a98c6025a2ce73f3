#include "compiler/base/work.h"

namespace wl {

void Work::look() {
  next_look_ = steps_ + kLookEvery;
  if (!status_.ok()) return;
  if (gone_) status_ = gone_();
  if (status_.ok() && steps_ > most_)
    status_ = absl::ResourceExhaustedError(cat("the graph takes more than ", most_,
                                               " steps of work; cut it into smaller ones, or choose another --cover"));
}

}  // namespace wl
