// Reads records from the store. A record that does not match its digest, or is not the one that was asked for, counts
// as missing.
#include <limits>

#include "compiler/base/names.h"
#include "compiler/base/sha256.h"
#include "proto/wire.h"
#include "server/store/impl.h"
#include "server/store/sql/functions.h"

namespace wl {
namespace {

constexpr int64_t kUsedStepMs = 3'600'000;  // milliseconds: a record's last use is noted at most once an hour

// SQL conditions that a row is the record that was asked for, and that the reader may see it. Parameter ?3 is the
// reader's team; ?4 says whether the reader sees the records of all teams.
constexpr std::string_view kOwn = "(SELECT id FROM namespaces WHERE name = ?3)";
const std::string kSeen = cat("(?4 OR r.namespace = 0 OR r.namespace = ", kOwn, ")");
const std::string kByDigest = cat("WHERE r.digest = ?1 AND ?2 = '' AND ", kSeen);
const std::string kByKey = cat(
    "WHERE r.key = ?1 AND r.blessed = 1 AND (?2 = '' OR r.environment = (SELECT id FROM environments WHERE name = ?2)) "
    "AND ",
    kSeen, " ORDER BY r.namespace IS ", kOwn, " DESC, r.namespace = 0 DESC, r.created_ms DESC, r.digest DESC");
// SQL conditions for a page of a listing. Parameter ?5 is a machine, ?6 is a model, and the keys lie between ?7 and ?8.
// The query compares only with those filters that are set, so that SQLite can use an index for them.
std::string of_page(bool machine, bool model, bool keys) {
  return cat("WHERE r.blessed = 1 AND (r.created_ms, r.digest) < (?1, ?2) AND ", kSeen, " AND ",
             machine ? "r.machine = (SELECT id FROM machines WHERE name = ?5)" : "?5 = ''", " AND ",
             model ? "r.key IN (SELECT key_bytes(g.key) FROM jobs j JOIN job_groups g ON g.job_id = j.id WHERE j.label "
                     "= ?6 AND (?4 OR j.team = ?3))"
                   : "?6 = ''",
             " AND ", keys ? "r.key BETWEEN key_bytes(?7) AND key_bytes(?8)" : "?7 = '' AND ?8 = ''",
             " ORDER BY r.created_ms DESC, r.digest DESC");
}

// How much of a record is read: its payload alone, also the digests of its texts, or also the texts themselves. Each
// depth has the columns of the depths before it.
enum Depth { kManifest, kDigests, kWhole };
enum {
  kPayload,
  kPayloadDigest,
  kDigest,
  kId,
  kUsed,
  kSearch,
  kCreated,
  kPinned,
  kTeam,
  kTexts,
  kPreludeDigest,
  kSourceDigest,
  kPrelude,
  kSource
};

// Returns the text of a query. `row`: whether it also reads the columns that only a RecordRow needs.
std::string select(Depth depth, bool row, std::string_view where) {
  return cat("SELECT p.bytes, p.digest, r.digest, r.id, r.used_ms, ",
             row ? "r.search_id, r.created_ms, r.pinned, (SELECT name FROM namespaces n WHERE n.id = r.namespace)"
                 : "NULL, NULL, NULL, NULL",
             depth == kManifest ? "" : ", p.texts, t.digest, s.digest", depth == kWhole ? ", t.bytes, s.bytes" : "",
             " FROM records r JOIN payloads p ON p.record = r.id ",
             depth == kManifest ? "" : "JOIN texts t ON t.id = p.prelude JOIN texts s ON s.id = p.source ", where);
}
// The queries for one record, indexed by Depth and by whether the record is named by its digest instead of its key.
const std::string kSelect[][2] = {{select(kManifest, false, kByKey), select(kManifest, false, kByDigest)},
                                  {select(kDigests, false, kByKey), select(kDigests, false, kByDigest)},
                                  {select(kWhole, true, kByKey), select(kWhole, true, kByDigest)}};

RecordNames names_of(const v1::KernelRecord& message) {
  return {message.digest(), message.key(), message.environment()};
}

// Checks that the payload has its digest, that the payload and the texts (if read) belong to this row, and that the
// record is the one that was asked for by digest, or by key and environment. `asked` null: any record is right.
// DataLoss: a check fails.
absl::Status check_row(const Sql::Row& row, Depth depth, const std::string& payload, const RecordNames& names,
                       const RecordName* asked) {
  const std::string digest = row.text(kDigest);
  if (sha256_bytes(payload) != row.text(kPayloadDigest))
    return absl::DataLossError("its payload does not have its digest");
  if (key_bytes(names.digest) != digest) return absl::DataLossError("it has the digest of another record");
  if (depth != kManifest &&
      row_digest({digest, row.text(kPreludeDigest), row.text(kSourceDigest)}) != row.text(kTexts)) {
    return absl::DataLossError("it refers to the text of another record");
  }
  if (asked == nullptr) return absl::OkStatus();
  if (!asked->digest.empty()
          ? names.digest != asked->digest
          : names.key != asked->key || (!asked->environment.empty() && names.environment != asked->environment)) {
    return absl::DataLossError("its row has the key, environment or digest of another record");
  }
  return absl::OkStatus();
}

// Appends the texts to a serialized record, as a second field `source`, which parsers merge with the first one.
void append_source(std::string prelude, std::string text, std::string* bytes) {
  v1::KernelRecord record;
  record.mutable_source()->set_prelude(std::move(prelude));
  record.mutable_source()->set_text(std::move(text));
  record.AppendToString(bytes);
}

}  // namespace

bool Store::Impl::sound(const Sql::Row& row, const absl::Status& status) {
  if (!status.ok()) {
    note_damage(cat("record ", hex_of(row.text(kDigest)), ": ", status.message()));
    return false;
  }
  if (unix_ms_now() - row.integer(kUsed) > kUsedStepMs) used_records.note(row.integer(kId));
  return true;
}

std::optional<RecordRow> Store::Impl::take_record(const Sql::Row& row, const RecordName* name) {
  const Depth depth = name != nullptr ? kWhole : kManifest;
  const auto read = [&]() -> absl::StatusOr<RecordRow> {
    const std::string payload = row.text(kPayload);
    v1::KernelRecord message;
    if (!message.ParseFromString(payload)) return absl::DataLossError("its payload cannot be read");
    WL_RETURN_IF_ERROR(check_row(row, depth, payload, names_of(message), name));
    if (depth == kWhole) {
      message.mutable_source()->set_prelude(row.text(kPrelude));
      message.mutable_source()->set_text(row.text(kSource));
    }
    WL_ASSIGN_OR_RETURN(KernelRecord record, depth == kWhole ? from_proto(message) : manifest_from_proto(message));
    return RecordRow{std::move(record), row.integer(kSearch), row.integer(kCreated), row.integer(kPinned) != 0,
                     row.text(kTeam)};
  };
  auto record = read();
  if (!sound(row, record.status())) return std::nullopt;
  return *std::move(record);
}

// Returns the record that `name` means. `with_object`: records whose object cannot be read are skipped.
absl::StatusOr<std::optional<RecordRow>> Store::record(const RecordName& name, bool with_object) {
  std::optional<RecordRow> found;
  const bool by_digest = !name.digest.empty();
  const std::string bytes = key_bytes(by_digest ? name.digest : name.key);
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        kSelect[kWhole][by_digest].c_str(),
        [&](const Sql::Row& row) {
          found = impl_->take_record(row, &name);
          if (found && with_object && !impl_->has_object(found->record.object_sha256)) found.reset();
          return !found.has_value();
        },
        Blob{bytes}, name.environment, name.reader.team, name.reader.every);
  }));
  return found;
}

bool Store::Impl::has_object(const std::string& digest) {
  if (digest.empty()) return true;
  const absl::StatusOr<std::string> bytes = objects->get(digest);
  if (!bytes.ok()) note_damage(std::string(bytes.status().message()));
  return bytes.ok();
}

absl::StatusOr<std::optional<RecordRow>> Store::record_by_key(const std::string& key, const std::string& environment,
                                                              const Reader& reader) {
  return record({key, environment, "", reader}, /*with_object=*/true);
}
absl::StatusOr<bool> Store::has_record_without_object(const std::string& key, const std::string& environment,
                                                      const Reader& reader) {
  const RecordName name{key, environment, "", reader};
  WL_ASSIGN_OR_RETURN(const auto whole, record(name, /*with_object=*/true));
  if (whole) return false;
  WL_ASSIGN_OR_RETURN(const auto any, record(name, /*with_object=*/false));
  return any.has_value();
}
absl::StatusOr<std::optional<RecordRow>> Store::record_by_digest(const std::string& digest) {
  if (digest.empty()) return std::nullopt;
  return record({"", "", digest, {.every = true}}, /*with_object=*/false);
}

absl::StatusOr<std::optional<std::string>> Store::Impl::text(Sql& sql, const std::string& digest, bool keep) {
  if (auto known = texts.find(digest)) return known;
  std::optional<std::string> found;
  WL_RETURN_IF_ERROR(sql.each(
      "SELECT bytes FROM texts WHERE digest = ?",
      [&](const Sql::Row& row) {
        found = row.text(0);
        return false;
      },
      Blob{digest}));
  if (found && sha256_bytes(*found) != digest) {
    note_damage(cat("text ", hex_of(digest), ": it does not have its digest"));
    return std::nullopt;
  }
  if (found && keep) texts.keep(digest, *found);
  return found;
}

absl::StatusOr<std::optional<RecordMessage>> Store::record_message(const RecordName& name, bool with_texts) {
  std::optional<RecordMessage> found;
  std::string prelude, source;  // digests of the record's prelude and source text
  const bool by_digest = !name.digest.empty();
  const Depth depth = with_texts ? kDigests : kManifest;
  const std::string bytes = key_bytes(by_digest ? name.digest : name.key);
  const auto take = [&](const Sql::Row& row) {
    std::string payload = row.text(kPayload);
    const absl::StatusOr<RecordNames> names = decode_names(payload);
    if (!impl_->sound(row, names.ok() ? check_row(row, depth, payload, *names, &name) : names.status())) return true;
    found = RecordMessage{names->key, std::move(payload)};
    if (with_texts) {
      prelude = row.text(kPreludeDigest);
      source = row.text(kSourceDigest);
    }
    return false;
  };
  const absl::Status done = read([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.each(kSelect[depth][by_digest].c_str(), take, Blob{bytes}, name.environment,
                                name.reader.team, name.reader.every));
    if (!found || !with_texts) return absl::OkStatus();
    WL_ASSIGN_OR_RETURN(std::optional<std::string> before, impl_->text(sql, prelude, true));
    WL_ASSIGN_OR_RETURN(std::optional<std::string> text, impl_->text(sql, source, false));
    if (before && text) {
      append_source(*std::move(before), *std::move(text), &found->bytes);
    } else {
      found.reset();
    }
    return absl::OkStatus();
  });
  WL_RETURN_IF_ERROR(done);
  return found;
}

absl::StatusOr<std::vector<RecordRow>> Store::list_records(const std::optional<RecordCursor>& after, int limit,
                                                           const Reader& reader, const RecordFilter& filter) {
  std::vector<RecordRow> records;
  if (limit <= 0) return records;
  const int64_t created = after ? after->created_ms : std::numeric_limits<int64_t>::max();
  const std::string digest = after && !after->digest.empty() ? key_bytes(after->digest) : std::string();
  const std::string& prefix = filter.key_prefix;
  const auto padded = [&](char digit) {
    return prefix.empty() ? prefix
                          : prefix + std::string(kDigestDigits - std::min(kDigestDigits, prefix.size()), digit);
  };
  const std::string page =
      select(kManifest, true, of_page(!filter.machine.empty(), !filter.model.empty(), !prefix.empty()));
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        page.c_str(),
        [&](const Sql::Row& row) {
          if (auto record = impl_->take_record(row, nullptr)) records.push_back(*std::move(record));
          return static_cast<int>(records.size()) < limit;
        },
        created, Blob{digest}, reader.team, reader.every, filter.machine, filter.model, padded('0'), padded('f'));
  }));
  return records;
}

absl::StatusOr<RecordCounts> Store::record_counts(int limit, const Reader& reader) {
  RecordCounts counts;
  const auto count = [&](const std::string& text, RecordCounts::Names* out) {
    return read([&](Sql& sql) {
      return sql.each(
          text.c_str(),
          [&](const Sql::Row& row) {
            out->emplace_back(row.text(0), row.integer(1));
            return true;
          },
          limit, std::string(), reader.team, reader.every);
    });
  };
  WL_RETURN_IF_ERROR(count(cat("SELECT m.name, count(*) FROM records r JOIN machines m ON m.id = r.machine WHERE "
                               "r.blessed = 1 AND ?2 = '' AND ",
                               kSeen, " GROUP BY m.id ORDER BY m.name LIMIT ?1"),
                           &counts.machines));
  WL_RETURN_IF_ERROR(
      count("SELECT j.label, count(DISTINCT g.key) FROM jobs j JOIN job_groups g ON g.job_id = j.id WHERE (?4 OR "
            "j.team = ?3) AND ?2 = '' AND j.label <> '' GROUP BY j.label ORDER BY j.label LIMIT ?1",
            &counts.models));
  return counts;
}

}  // namespace wl
