// Records of other coordinators, and the records that are still to be offered to the upstream.
#include "proto/wire.h"
#include "server/store/impl.h"
#include "server/store/sql/functions.h"

namespace wl {
namespace {

// Finds served records (blessed) that meet `condition` and have ids above `after`: the first `limit` of them in
// ascending order of ids.
absl::Status numbered(Sql& sql, const char* condition, int64_t after, int limit, std::vector<NumberedRecord>* found) {
  return sql.each(
      cat("SELECT r.id, r.digest, r.key, e.name FROM records r JOIN environments e ON e.id = r.environment WHERE "
          "r.blessed = 1 AND ",
          condition, " AND r.id > ? ORDER BY r.id LIMIT ?")
          .c_str(),
      [&](const Sql::Row& row) {
        found->push_back({row.integer(0), hex_of(row.text(1)), hex_of(row.text(2)), row.text(3)});
        return true;
      },
      after, limit);
}

// Whether a record from another coordinator is to become the one that is served for its key (blessed) in the
// namespace `into`. An offered record that is already in another namespace stays there, unless it becomes shared. A
// record from the upstream replaces only records from the upstream.
absl::StatusOr<bool> may_be_blessed(Sql& sql, const RecordParts& parts, int64_t environment, int64_t into,
                                    RecordOrigin origin) {
  if (origin == RecordOrigin::kBelow) {
    WL_ASSIGN_OR_RETURN(const int64_t elsewhere,
                        sql.number("SELECT count(*) FROM records WHERE digest = ?1 AND namespace <> ?2 AND ?2 <> 0",
                                   Blob{parts.digest}, into));
    return elsewhere == 0;
  }
  WL_ASSIGN_OR_RETURN(const int64_t others,
                      sql.number("SELECT count(*) FROM records WHERE key = ? AND environment = ? AND namespace = ? AND "
                                 "blessed = 1 AND origin <> 1 AND digest <> ?",
                                 Blob{parts.key}, environment, into, Blob{parts.digest}));
  return others == 0;
}

}  // namespace

absl::Status Store::take_record(const KernelRecord& record, RecordOrigin origin, bool by_key, const std::string& team) {
  const RecordParts parts(record);
  const std::optional<Blob> object = parts.object_row();
  return write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(check_object(sql, record, object));
    WL_RETURN_IF_ERROR(sql.run(
        "INSERT INTO searches (id, key, environment, generation, strategy, seed, team) VALUES (?, '', '', 0, '', "
        "0, '') ON CONFLICT DO NOTHING",
        kSearchElsewhere));
    WL_ASSIGN_OR_RETURN(const int64_t environment, id_of(sql, "environments", record.environment));
    WL_ASSIGN_OR_RETURN(const int64_t machine, machine_of(sql, record));
    WL_ASSIGN_OR_RETURN(const int64_t into, id_of(sql, "namespaces", team));
    bool blessed = by_key;
    if (blessed) {
      WL_ASSIGN_OR_RETURN(blessed, may_be_blessed(sql, parts, environment, into, origin));
    }
    if (blessed) {
      WL_RETURN_IF_ERROR(
          sql.run("UPDATE records SET blessed = 0 WHERE key = ? AND environment = ? AND namespace = ? AND blessed = 1",
                  Blob{parts.key}, environment, into));
    }
    // If the record is stored already, it keeps its origin.
    WL_RETURN_IF_ERROR(sql.run(
        "INSERT INTO records (digest, key, namespace, environment, machine, search_id, object, blessed, created_ms, "
        "used_ms, origin, offered) VALUES (?1, ?2, ?3, ?4, ?11, ?5, ?6, ?7, ?8, ?8, ?9, ?10) ON CONFLICT (digest) DO "
        "UPDATE SET "
        "used_ms = ?8, blessed = max(blessed, ?7), namespace = CASE WHEN ?7 THEN ?3 ELSE namespace END, offered = "
        "max(offered, ?10)",
        Blob{parts.digest}, Blob{parts.key}, into, environment, kSearchElsewhere, object, blessed, unix_ms_now(),
        static_cast<int64_t>(origin), origin == RecordOrigin::kUpstream, machine));
    WL_RETURN_IF_ERROR(put_payload(sql, parts));
    return blessed ? drop_answers_of(sql, record.key) : absl::OkStatus();
  });
}

absl::StatusOr<std::vector<NumberedRecord>> Store::unoffered_records(int64_t after, int limit) {
  std::vector<NumberedRecord> found;
  WL_RETURN_IF_ERROR(
      read([&](Sql& sql) { return numbered(sql, "r.namespace = 0 AND r.offered = 0", after, limit, &found); }));
  return found;
}

absl::StatusOr<std::vector<NumberedRecord>> Store::served_records(int64_t after, int limit) {
  std::vector<NumberedRecord> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) { return numbered(sql, "1", after, limit, &found); }));
  return found;
}

absl::Status Store::put_words(const KernelRecord& record) {
  const RecordParts parts(record);
  return write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(const int64_t known,
                        sql.number("SELECT count(*) FROM records WHERE digest = ?", Blob{parts.digest}));
    if (known == 0) return absl::OkStatus();
    WL_RETURN_IF_ERROR(put_payload(sql, parts));
    return drop_answers_of(sql, record.key);
  });
}

absl::StatusOr<bool> Store::take_signature(const KernelRecord& record, RecordOrigin origin) {
  bool taken = false;
  const absl::Status written = write([&](Sql& sql) -> absl::Status {
    int64_t id = 0;
    v1::KernelRecord known;
    WL_RETURN_IF_ERROR(sql.each(
        "SELECT r.id, p.bytes FROM records r JOIN payloads p ON p.record = r.id WHERE r.digest = ? AND r.origin = ?",
        [&](const Sql::Row& row) {
          const std::string bytes = row.text(1);
          if (known.ParseFromString(bytes)) id = row.integer(0);
          return false;
        },
        Blob{key_bytes(record.digest)}, static_cast<int64_t>(origin)));
    taken = id != 0 && known.generation() < record.generation;
    if (!taken) return absl::OkStatus();
    known.set_signed_by(record.signed_by);
    known.set_signature(record.signature);
    known.set_generation(record.generation);
    const std::string bytes = known.SerializeAsString();
    WL_RETURN_IF_ERROR(sql.run("UPDATE payloads SET bytes = ?, digest = ? WHERE record = ?", Blob{bytes},
                               Blob{sha256_bytes(bytes)}, id));
    return sql.run("UPDATE records SET offered = 0 WHERE id = ? AND origin <> ?", id,
                   static_cast<int64_t>(RecordOrigin::kUpstream));
  });
  WL_RETURN_IF_ERROR(written);
  return taken;
}

absl::Status Store::set_offered(const std::string& digest) {
  return write(
      [&](Sql& sql) { return sql.run("UPDATE records SET offered = 1 WHERE digest = ?", Blob{key_bytes(digest)}); });
}

absl::StatusOr<std::vector<NumberedRecord>> Store::fetched_records(int64_t after, int limit) {
  std::vector<NumberedRecord> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) { return numbered(sql, "r.origin = 1", after, limit, &found); }));
  return found;
}

absl::Status Store::drop_fetched(const std::string& digest) {
  return write([&](Sql& sql) -> absl::Status {
    int64_t id = 0;
    std::string key;
    WL_RETURN_IF_ERROR(sql.each(
        "SELECT id, key FROM records WHERE digest = ? AND origin = 1",
        [&](const Sql::Row& row) {
          id = row.integer(0);
          key = hex_of(row.text(1));
          return false;
        },
        Blob{key_bytes(digest)}));
    if (id == 0) return absl::OkStatus();
    WL_RETURN_IF_ERROR(drop_record(sql, id));
    return drop_answers_of(sql, key);
  });
}

absl::Status Store::put_devices(const std::vector<Device>& devices) {
  return write([&](Sql& sql) -> absl::Status {
    for (const Device& device : devices) {
      const std::string payload = encode(device);
      WL_RETURN_IF_ERROR(
          sql.run("INSERT INTO devices (fingerprint, environment, payload, seen_ms) VALUES (?, ?, ?, 0) ON CONFLICT "
                  "DO NOTHING",
                  device.fingerprint(), device.compiler_versions, Blob{payload}));
    }
    return absl::OkStatus();
  });
}

}  // namespace wl
