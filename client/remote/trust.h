// Whose objects a client loads: loading one runs its code, and the worker that sent it may be anybody.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "proto/trust/signing.h"

namespace wl {

// Why nobody but its workers gives a word for the object of a record, for people; empty: a coordinator (one of
// `signers`, if there are any) built the same object of the source itself, two workers agree on it whose callers are
// known, or it was made in the coordinator's own process.
std::string doubt_about(const KernelRecord& record, const std::vector<Signer>& signers);

// The same of a result, for reports; what a coordinator says of itself is not checked.
bool is_doubted(const GroupResult& group);

}  // namespace wl
