#include "client/remote/trust.h"

#include "client/remote/report.h"
#include "compiler/base/status.h"

namespace wl {

std::string doubt_about(const KernelRecord& record, const std::vector<Signer>& signers) {
  if (record.measured_by == kEmbeddedWorker || is_confirmed(record) || is_built(record, signers)) return "";
  return cat("the object of the kernel ", record.source.entry, " of key ", record.key, " is what the worker ",
             record.measured_by.empty() ? "of an older version" : shown_name(record.measured_by),
             " sent: the coordinator has not built it itself, and no worker of another caller agrees");
}

bool is_doubted(const GroupResult& group) {
  return group.measured_by != kEmbeddedWorker && !group.built && !is_confirmed(group.measured_by, group.confirmed_by);
}

}  // namespace wl
