#include "proto/usage.h"

#include <algorithm>

#include "compiler/base/names.h"
#include "nlohmann/json.hpp"
#include "proto/limits.h"

namespace wl {
namespace {

v1::Usage::Share share_to_proto(const std::string& name, const UseSum& sum) {
  v1::Usage::Share out;
  out.set_name(fitted(name, TextKind::kName, kMostName));
  out.set_tuned_ns(sum.ns[0]);
  out.set_predicted_ns(sum.ns[1]);
  out.set_default_ns(sum.ns[2]);
  out.set_tuned_calls(sum.calls[0]);
  out.set_predicted_calls(sum.calls[1]);
  out.set_default_calls(sum.calls[2]);
  return out;
}

UseSum sum_of(const v1::Usage::Share& in) {
  return {.ns = {in.tuned_ns(), in.predicted_ns(), in.default_ns()},
          .calls = {in.tuned_calls(), in.predicted_calls(), in.default_calls()}};
}

v1::Usage::Kernel kernel_to_proto(const KernelUsage& kernel) {
  v1::Usage::Kernel out;
  out.set_key(kernel.key);
  out.set_digest(kernel.digest);
  out.set_name(fitted(kernel.name, TextKind::kName, kMostName));
  out.set_team(kernel.team);
  out.set_target(kernel.target);
  out.set_device(kernel.device);
  out.set_model(fitted(kernel.model, TextKind::kName, kMostName));
  out.set_kind(kUseKindNames[static_cast<size_t>(kernel.kind)]);
  out.set_calls_per_day(kernel.calls_per_day);
  out.set_ns_per_day(kernel.ns_per_day);
  out.set_best_ns(kernel.best_ns);
  out.set_default_ns(kernel.default_ns);
  out.set_bound_ns(kernel.bound_ns);
  out.set_saving_per_day(kernel.saving_per_day);
  out.set_trials(kernel.trials);
  out.set_stopped(kernel.stopped);
  return out;
}

absl::StatusOr<KernelUsage> kernel_from_proto(const v1::Usage::Kernel& in) {
  KernelUsage out;
  const auto kind = std::find(std::begin(kUseKindNames), std::end(kUseKindNames), in.kind());
  if (kind == std::end(kUseKindNames))
    return invalid("message field Usage.Kernel.kind: expected tuned, predicted or default, found \"", in.kind(), "\"");
  out.kind = static_cast<UseKind>(kind - std::begin(kUseKindNames));
  out.key = in.key();
  out.digest = in.digest();
  out.name = in.name();
  out.team = in.team();
  out.target = in.target();
  out.device = in.device();
  out.model = in.model();
  out.calls_per_day = in.calls_per_day();
  out.ns_per_day = in.ns_per_day();
  out.best_ns = in.best_ns();
  out.default_ns = in.default_ns();
  out.bound_ns = in.bound_ns();
  out.saving_per_day = in.saving_per_day();
  out.trials = in.trials();
  out.stopped = in.stopped();
  return out;
}

}  // namespace

v1::Usage to_proto(const Usage& usage) {
  v1::Usage out;
  out.set_days(usage.days);
  *out.mutable_total() = share_to_proto("", usage.total);
  for (const TeamUsage& team : usage.teams) {
    v1::Usage::Team* item = out.add_teams();
    *item->mutable_share() = share_to_proto(team.team, team.sum);
    item->set_saved_ns(team.saved_ns);
    item->set_cost_s(team.cost_s);
    item->set_trials(team.trials);
    item->set_missed(team.missed);
  }
  for (const UsageShare& share : usage.devices) *out.add_devices() = share_to_proto(share.name, share.sum);
  for (const UsageShare& share : usage.models) *out.add_models() = share_to_proto(share.name, share.sum);
  out.set_saved_ns(usage.saved_ns);
  out.set_cost_s(usage.cost_s);
  out.set_trials(usage.trials);
  for (const KernelUsage& kernel : usage.kernels) *out.add_kernels() = kernel_to_proto(kernel);
  for (const MissedUsage& missed : usage.missed) {
    v1::Usage::Missed* item = out.add_missed();
    item->set_team(missed.team);
    item->set_model(fitted(missed.model, TextKind::kName, kMostName));
    item->set_target(missed.target);
    item->set_device(missed.device);
    item->set_count(missed.count);
    item->set_last_unix_ms(missed.last_unix_ms);
    item->set_job(missed.job);
    item->set_why(fitted(missed.why, TextKind::kText, kMostMessage));
  }
  out.set_kernels_in_all(usage.kernels_in_all);
  out.set_missed_in_all(usage.missed_in_all);
  out.set_left_out(usage.left_out);
  out.set_background(usage.background);
  out.set_more_teams(usage.more_teams);
  out.set_more_devices(usage.more_devices);
  out.set_more_models(usage.more_models);
  return out;
}

absl::StatusOr<Usage> from_proto(const v1::Usage& message) {
  Usage out;
  out.days = message.days();
  out.total = sum_of(message.total());
  for (const auto& item : message.teams())
    out.teams.push_back({.team = item.share().name(),
                         .sum = sum_of(item.share()),
                         .saved_ns = item.saved_ns(),
                         .cost_s = item.cost_s(),
                         .trials = item.trials(),
                         .missed = item.missed()});
  for (const auto& item : message.devices()) out.devices.push_back({item.name(), sum_of(item)});
  for (const auto& item : message.models()) out.models.push_back({item.name(), sum_of(item)});
  out.saved_ns = message.saved_ns();
  out.cost_s = message.cost_s();
  out.trials = message.trials();
  for (const auto& item : message.kernels()) {
    WL_ASSIGN_OR_RETURN(KernelUsage kernel, kernel_from_proto(item));
    out.kernels.push_back(std::move(kernel));
  }
  for (const auto& item : message.missed())
    out.missed.push_back({.team = item.team(),
                          .model = item.model(),
                          .target = item.target(),
                          .device = item.device(),
                          .count = item.count(),
                          .last_unix_ms = item.last_unix_ms(),
                          .job = item.job(),
                          .why = item.why()});
  out.kernels_in_all = message.kernels_in_all();
  out.missed_in_all = message.missed_in_all();
  out.left_out = message.left_out();
  out.background = message.background();
  out.more_teams = message.more_teams();
  out.more_devices = message.more_devices();
  out.more_models = message.more_models();
  return out;
}

nlohmann::ordered_json json_of(const UseSum& sum) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (size_t i = 0; i < kUseKinds; ++i) json[kUseKindNames[i]] = {{"s", sum.ns[i] / 1e9}, {"calls", sum.calls[i]}};
  return json;
}

nlohmann::ordered_json json_of(const KernelUsage& kernel) {
  return {{"key", kernel.key},
          {"digest", kernel.digest},
          {"name", kernel.name},
          {"team", kernel.team},
          {"target", kernel.target},
          {"device", kernel.device},
          {"model", kernel.model},
          {"kind", kUseKindNames[static_cast<size_t>(kernel.kind)]},
          {"calls_per_day", kernel.calls_per_day},
          {"s_per_day", kernel.ns_per_day / 1e9},
          {"saving_s_per_day", kernel.saving_per_day / 1e9},
          {"best_ns", kernel.best_ns},
          {"default_ns", kernel.default_ns},
          {"bound_ns", kernel.bound_ns},
          {"trials", kernel.trials},
          {"stopped", kernel.stopped}};
}

nlohmann::ordered_json json_of(const MissedUsage& missed) {
  return {{"team", missed.team},     {"model", missed.model}, {"target", missed.target},
          {"device", missed.device}, {"count", missed.count}, {"last_unix_ms", missed.last_unix_ms},
          {"job", missed.job},       {"why", missed.why}};
}

}  // namespace wl
