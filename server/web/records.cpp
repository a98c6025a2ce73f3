// Answers for the pages of records.
#include "compiler/ir/text.h"
#include "proto/wire.h"
#include "server/web/api.h"

namespace wl {
namespace {

constexpr int64_t kRecordsOfPage = 50, kMostRecordsOfPage = 200;
constexpr int kMostNames = 500;
constexpr int kMostTried = 8;  // number of the last replacements of a record that its page shows

// Returns what was seen when a record, or one of the same key, replaced another one in programs.
absl::StatusOr<WebJson> in_place_json(Store& store, const std::string& key, const Reader& reader) {
  WL_ASSIGN_OR_RETURN(const std::vector<ReplacedRow> rows, store.replacements_of(key, reader, kMostTried));
  WebJson out = WebJson::array();
  for (const ReplacedRow& row : rows)
    out.push_back({{"before", row.before},
                   {"after", row.after},
                   {"outcome", kInPlaceNames[static_cast<size_t>(row.outcome)]},
                   {"seen", row.message},
                   {"calls", row.calls},
                   {"made_ms", row.made_ms}});
  return out;
}

}  // namespace

WebJson record_row_json(const RecordRow& row) {
  const KernelRecord& record = row.record;
  return {{"digest", record.digest},
          {"key", record.key},
          {"name", describe_group(record.graph)},
          {"target", record.device.target},
          {"device", record.device.name},
          {"environment", record.environment},
          {"plan", record.plan},
          {"default_plan", record.default_plan},
          {"ops", record.ops},
          {"best_ns", number_or_null(median_of(record.samples_ns))},
          {"default_ns", number_or_null(median_of(record.default_samples_ns))},
          {"created_ms", row.created_ms},
          {"pinned", row.pinned},
          {"team", row.team},
          {"measured_by", shown_name(record.measured_by)},
          {"confirmed_by", shown_name(record.confirmed_by)}};
}

absl::StatusOr<WebJson> records_json(WebData& data, const WebQuery& query) {
  WL_ASSIGN_OR_RETURN(const int64_t limit, number_parameter(query, "limit", 1, kMostRecordsOfPage, kRecordsOfPage));
  const auto named = [&](const char* name) {
    const auto found = query.parameters.find(name);
    return found == query.parameters.end() ? std::string() : found->second;
  };
  WL_ASSIGN_OR_RETURN(const std::optional<RecordCursor> cursor, record_cursor(named("after")));
  WL_ASSIGN_OR_RETURN(const std::vector<RecordRow> rows,
                      data.serving.store->list_records(cursor, static_cast<int>(limit) + 1, query.reader,
                                                       {.machine = named("machine"), .model = named("model")}));
  WebJson records = WebJson::array();
  for (const RecordRow& row : rows) {
    if (records.size() == static_cast<size_t>(limit)) break;
    WebJson json = record_row_json(row);
    json.erase("plan");
    json.erase("default_plan");
    records.push_back(std::move(json));
  }
  WebJson out = {{"records", std::move(records)}};
  out["next"] = rows.size() > static_cast<size_t>(limit) ? WebJson(record_token(rows[limit - 1])) : WebJson();
  return out;
}

absl::StatusOr<WebJson> records_by_json(WebData& data, const WebQuery& query) {
  WL_ASSIGN_OR_RETURN(const RecordCounts counts, data.serving.store->record_counts(kMostNames, query.reader));
  const auto json_of = [](const RecordCounts::Names& names) {
    WebJson json = WebJson::array();
    for (const auto& [name, count] : names) json.push_back({{"name", name}, {"count", count}});
    return json;
  };
  return WebJson{{"machines", json_of(counts.machines)}, {"models", json_of(counts.models)}};
}

absl::StatusOr<WebJson> record_json(WebData& data, const WebQuery& query) {
  const std::string& digest = query.parts.front();
  WL_ASSIGN_OR_RETURN(const auto found,
                      data.serving.store->record_message({.digest = digest, .reader = query.reader}, true));
  if (!found) return absl::NotFoundError(cat("no record of ", digest));
  WL_ASSIGN_OR_RETURN(KernelRecord record, decode_record(found->bytes));
  RecordRow row;
  row.record = std::move(record);
  WebJson json = record_row_json(row);
  // The row was read by record_message(), which leaves these fields empty, so the JSON must not show them.
  for (const char* name : {"created_ms", "pinned", "team"}) json.erase(name);
  json["samples_ns"] = row.record.samples_ns;
  json["default_samples_ns"] = row.record.default_samples_ns;
  json["max_error"] = row.record.max_error;
  json["bound"] = row.record.bound;
  json["bytes"] = row.record.bytes;
  json["flops"] = row.record.flops;
  json["strategy"] = row.record.strategy;
  json["outcomes"] = outcomes_json(row.record.outcomes);
  json["graph"] = row.record.graph;
  json["compiler"] = row.record.source.compiler;
  json["source"] = row.record.source.text;
  json["signed_by"] = row.record.signed_by;
  WL_ASSIGN_OR_RETURN(json["in_place"], in_place_json(*data.serving.store, row.record.key, query.reader));
  return json;
}

}  // namespace wl
