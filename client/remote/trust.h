// Decides whether a client may load the compiled object of a record: loading it runs its code, and the worker that sent
// it need not be trustworthy.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "proto/trust/signing.h"

namespace wl {

// Returns why the object of a record is not to be trusted, as a message for people. Empty: a coordinator (one of
// `signers`, if there are any) has built the same object from the source, two workers of different known callers agree
// on it, or the embedded worker made it.
std::string doubt_about(const KernelRecord& record, const std::vector<Signer>& signers);

// Whether the kernel of a group is not to be trusted, as in doubt_about(), judged by the group's result alone and
// without checking signatures; for reports.
bool is_doubted(const GroupResult& group);

}  // namespace wl
