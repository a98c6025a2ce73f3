// Answers for the page of usage: what programs ran, and what tuning has saved and may still save.
#include "proto/usage.h"

#include "server/web/api.h"

namespace wl {
namespace {

WebJson share_json(const std::string& name, const UseSum& sum) {
  WebJson json = {{"name", name}};
  json.update(json_of(sum));
  return json;
}

WebJson shares_json(const std::vector<UsageShare>& shares) {
  WebJson json = WebJson::array();
  for (const UsageShare& share : shares) json.push_back(share_json(share.name, share.sum));
  return json;
}

WebJson kernel_json(const KernelUsage& kernel) {
  WebJson json = json_of(kernel);
  for (const char* name : {"best_ns", "default_ns", "bound_ns"}) json[name] = number_or_null(json[name].get<double>());
  return json;
}

}  // namespace

absl::StatusOr<WebJson> usage_json(WebData& data, const WebQuery& query) {
  WL_ASSIGN_OR_RETURN(const int64_t limit, number_parameter(query, "limit", 1, kMostUsageItems, kUsageItems));
  WL_ASSIGN_OR_RETURN(const Usage usage, data.serving.engine->usage(query.reader, static_cast<int>(limit)));
  WebJson teams = WebJson::array(), kernels = WebJson::array(), missed = WebJson::array();
  for (const TeamUsage& team : usage.teams) {
    WebJson json = share_json(team.team, team.sum);
    json["saved_s"] = team.saved_ns / 1e9;
    json["cost_s"] = team.cost_s;
    json["trials"] = team.trials;
    json["missed"] = team.missed;
    teams.push_back(std::move(json));
  }
  for (const KernelUsage& kernel : usage.kernels) kernels.push_back(kernel_json(kernel));
  for (const MissedUsage& one : usage.missed) missed.push_back(json_of(one));
  return WebJson{
      {"days", usage.days},
      {"total", share_json("", usage.total)},
      {"saved_s", usage.saved_ns / 1e9},
      {"cost_s", usage.cost_s},
      {"trials", usage.trials},
      {"teams", std::move(teams)},
      {"devices", shares_json(usage.devices)},
      {"models", shares_json(usage.models)},
      {"kernels", std::move(kernels)},
      {"missed", std::move(missed)},
      {"kernels_in_all", usage.kernels_in_all},
      {"missed_in_all", usage.missed_in_all},
      {"left_out", usage.left_out},
      {"background", usage.background},
      {"more", {{"teams", usage.more_teams}, {"devices", usage.more_devices}, {"models", usage.more_models}}}};
}

}  // namespace wl
