#include "server/services/asking.h"

#include <algorithm>
#include <atomic>

#include "spdlog/spdlog.h"

namespace wl {
namespace {

using std::chrono::milliseconds;

// A caller that is a coordinator itself has somebody waiting, so some of its time is left to it.
constexpr auto kPatience = milliseconds(1000);
constexpr double kShareOfPatience = 0.7;

milliseconds patience_of(const grpc::CallbackServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  const auto share = std::chrono::duration<double>(left) * kShareOfPatience;
  return share >= kPatience ? kPatience : std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(share));
}

Via via_of(const grpc::CallbackServerContext& context) {
  const auto found = context.client_metadata().find(kViaHeader);
  if (found == context.client_metadata().end()) return {};
  return parse_via({found->second.data(), found->second.size()});
}

}  // namespace

void ask_upstream(const Serving& serving, const grpc::CallbackServerContext& context,
                  const std::vector<Question>& questions, Upstream::Done done) {
  Upstream* const upstream = serving.upstream;
  if (upstream == nullptr || questions.empty()) return done({});
  const auto named = [where = upstream->address(), done = std::move(done)](Asked asked) {
    if (!asked.problem.empty()) asked.problem = cat("the upstream ", where, " ", asked.problem);
    done(asked);
  };
  const Via via = via_of(context);
  if (const std::string why = upstream->why_not_ask(via); !why.empty()) {
    static std::atomic<bool> said = false;
    if (!said.exchange(true)) spdlog::error("upstream {}: is not asked: {}", upstream->address(), why);
    return named({.found = false, .problem = cat("is not asked: ", why)});
  }
  upstream->ask(questions, via, patience_of(context), named);
}

}  // namespace wl
