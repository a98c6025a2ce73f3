// Compares the objects of workers with those of this coordinator's own compilers before a kernel is promoted
// (docs/design/trust.md#object-provenance).
#include <spdlog/spdlog.h>

#include "server/engine/searches.h"

namespace wl {

// Starts compiling the kernel's source on this machine, unless that was done already. Returns whether the promotion has
// to wait for the compiler; on_built() continues it then. A cancelled search does not wait for compilers.
bool Searches::awaits_build(Search& search, const KernelRecord& record, bool may_ask) {
  search.default_plan = record.default_plan;
  if (!options_.build || search.cancelled || search.built.contains(record.plan)) return false;
  search.working = search.building = true;
  loop_->compute([this, id = search.row.id, token = search.token, plan = record.plan, source = record.source, may_ask] {
    auto made = std::make_shared<const Built>(options_.build(source, loop_->leaving_flag()));
    loop_->post([this, id, token, plan, made, may_ask] {
      Search* const live = find(id, token);
      if (made->object_sha256.empty() && !std::exchange(said_why_not_built_, true))
        spdlog::warn("what is promoted cannot be built here, so clients build it: {}", made->why);
      if (live == nullptr || !live->building) return;
      live->built[plan] = *made;
      on_built(*live, may_ask);
    });
  });
  return true;
}

void Searches::on_built(Search& search, bool may_ask) {
  search.working = search.building = false;
  const absl::Status status = conclude(search, may_ask);
  if (!status.ok()) observer_->on_failure(search, status);
}

bool Searches::is_built_here(const Search& search, const KernelRecord& record) {
  const auto made = search.built.find(record.plan);
  return made != search.built.end() && !record.object_sha256.empty() &&
         made->second.object_sha256 == record.object_sha256;
}

// Removes the claims of workers whose object differs from this coordinator's own. The same compiler makes the same
// bytes of a source on every machine, so such a worker has measured another kernel. If the worker that promoted the
// kernel is among them, returns what is wrong with its object; otherwise returns nullopt.
std::optional<std::string> Searches::drop_foreign_objects(Search& search, const KernelRecord& record,
                                                          std::vector<Claim>* claims) {
  const auto made = search.built.find(record.plan);
  if (made == search.built.end() || made->second.object_sha256.empty() || claims->empty()) return std::nullopt;
  const Built& own = made->second;
  if (own.compiler.empty() || own.compiler != compiler_of(record.environment, record.source)) return std::nullopt;
  const auto is_foreign = [&](const Claim& claim) {
    return claim.winner.outcome == Outcome::kCorrect && claim.winner.object_sha256 != own.object_sha256;
  };
  const auto text = [&](const Claim& claim) {
    return cat("worker ", claim.worker, " says that it built the object ", claim.winner.object_sha256,
               ", and this coordinator builds ", own.object_sha256, " by the same compiler (", own.compiler, ")");
  };
  std::optional<std::string> promoter;
  if (is_foreign(claims->front())) promoter = text(claims->front());
  for (const Claim& claim : *claims) {
    if (!is_foreign(claim)) continue;
    spdlog::warn("audit: kernel {}, plan {}: {}", record.key, record.plan, text(claim));
    if (&claim != &claims->front()) search.refuted.insert(principal_of(claim.worker));
  }
  std::erase_if(*claims, is_foreign);
  return promoter;
}

// Whether the default schedule may be served although workers disagree on it, since this coordinator made its object.
bool Searches::may_settle(const Search& search) {
  const auto made = search.built.find(search.default_plan);
  return !search.settle && search.disputed.contains(search.default_plan) && made != search.built.end() &&
         !made->second.object_sha256.empty();
}

}  // namespace wl
