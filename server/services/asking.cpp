#include "server/services/asking.h"

#include <algorithm>
#include <atomic>

#include "spdlog/spdlog.h"

namespace wl {
namespace {

using std::chrono::milliseconds;

constexpr auto kJobPatience = std::chrono::seconds(5);  // how long a new job waits for the upstream before a search

// The longest time that a call waits for the upstream, and the largest share of the time until the call's own deadline
// that this wait may take. The rest is left to the caller, which may be a coordinator with a caller of its own.
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

Elsewhere elsewhere_of(Upstream* upstream) {
  Elsewhere out;
  if (upstream == nullptr) return out;
  const auto tell = [where = upstream->address()](const Elsewhere::Done& done) {
    return [=](const Asked& asked) {
      done(asked.problem.empty() ? std::string() : cat("the upstream ", where, " ", asked.problem));
    };
  };
  out.find_records = [asked = upstream, tell](const std::vector<RecordName>& names, const Elsewhere::Done& done) {
    std::vector<Question> questions;
    for (const RecordName& name : names) questions.push_back({Question::kKey, name.key, name.environment});
    asked->ask(questions, {}, kJobPatience, tell(done));
  };
  out.find_devices = [asked = upstream, tell](const Elsewhere::Done& done) {
    asked->ask({{Question::kDevices, "", ""}}, {}, kJobPatience, tell(done));
  };
  return out;
}

}  // namespace wl
