// Records, workers and devices.
#include <limits>

#include "proto/wire.h"
#include "server/store/functions.h"
#include "server/store/impl.h"

namespace wl {
namespace {

constexpr int64_t kUsedStepMs = 3'600'000;  // last use is noted once an hour

// A payload and its texts beside the narrow row. Namespace 0 is the only one so far.
constexpr std::string_view kSelectRecord =
    "SELECT p.bytes, p.digest, t.bytes, s.bytes, r.digest, r.search_id, r.created_ms, r.id, r.used_ms FROM records r "
    "JOIN payloads p ON p.record = r.id JOIN texts t ON t.id = p.prelude JOIN texts s ON s.id = p.source WHERE ";

// The record as it was promoted. DataLoss when anything of it does not have its digest.
absl::StatusOr<RecordRow> record_of(const Sql::Row& row) {
  const std::string payload = row.text(0);
  v1::KernelRecord message;
  if (sha256_bytes(payload) != row.text(1) || !message.ParseFromString(payload)) {
    return absl::DataLossError("its payload does not have its digest");
  }
  message.mutable_source()->set_prelude(row.text(2));
  message.mutable_source()->set_text(row.text(3));
  WL_ASSIGN_OR_RETURN(KernelRecord record, from_proto(message));
  if (key_bytes(record.digest) != row.text(4)) return absl::DataLossError("it has the digest of another record");
  return RecordRow{std::move(record), row.integer(5), row.integer(6)};
}

struct Text {
  std::string_view bytes;
  std::string digest;
};

// What a record is as rows. It is made before the writer's turn comes: there everybody waits for it.
struct RecordParts {
  explicit RecordParts(const KernelRecord& record)
      : digest(key_bytes(record.digest)),
        key(key_bytes(record.key)),
        object(record.object_sha256.empty() ? std::string() : key_bytes(record.object_sha256)),
        prelude{record.source.prelude, sha256_bytes(record.source.prelude)},
        source{record.source.text, sha256_bytes(record.source.text)} {
    v1::KernelRecord message = to_proto(record);
    message.mutable_source()->clear_prelude();
    message.mutable_source()->clear_text();
    payload = message.SerializeAsString();
    payload_digest = sha256_bytes(payload);
  }
  std::string digest, key, object;
  Text prelude, source;
  std::string payload, payload_digest;
};

absl::StatusOr<int64_t> text_id(Sql& sql, const Text& text) {
  // Also repairs a text that was damaged on disk. What is the same is not written again.
  WL_RETURN_IF_ERROR(
      sql.run("INSERT INTO texts (digest, bytes) VALUES (?1, ?2) ON CONFLICT (digest) DO UPDATE SET bytes = "
              "excluded.bytes WHERE bytes IS NOT excluded.bytes",
              Blob{text.digest}, Blob{text.bytes}));
  return sql.number("SELECT id FROM texts WHERE digest = ?", Blob{text.digest});
}

absl::StatusOr<int64_t> environment_id(Sql& sql, const std::string& name) {
  WL_RETURN_IF_ERROR(sql.run("INSERT INTO environments (name) VALUES (?) ON CONFLICT DO NOTHING", name));
  return sql.number("SELECT id FROM environments WHERE name = ?", name);
}

absl::Status put_payload(Sql& sql, const RecordParts& parts) {
  WL_ASSIGN_OR_RETURN(const int64_t id, sql.number("SELECT id FROM records WHERE digest = ?", Blob{parts.digest}));
  WL_ASSIGN_OR_RETURN(const int64_t prelude, text_id(sql, parts.prelude));
  WL_ASSIGN_OR_RETURN(const int64_t source, text_id(sql, parts.source));
  return sql.run(
      "INSERT INTO payloads (record, prelude, source, digest, bytes) VALUES (?, ?, ?, ?, ?) ON CONFLICT (record) DO "
      "UPDATE SET prelude = excluded.prelude, source = excluded.source, digest = excluded.digest, bytes = "
      "excluded.bytes",
      id, prelude, source, Blob{parts.payload_digest}, Blob{parts.payload});
}

}  // namespace

std::optional<RecordRow> Store::Impl::take_record(const Sql::Row& row) {
  auto record = record_of(row);
  if (!record.ok()) {
    note_damage(cat("record ", hex_of(row.text(4)), ": ", record.status().message()));
    return std::nullopt;
  }
  const int64_t now = unix_ms_now();
  if (now - row.integer(8) > kUsedStepMs) used_records.note(row.integer(7));
  return *std::move(record);
}

absl::Status Store::promote(const KernelRecord& record, int64_t search_id) {
  const RecordParts parts(record);
  const std::optional<Blob> object = parts.object.empty() ? std::nullopt : std::optional(Blob{parts.object});
  return write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(const int64_t known, sql.number("SELECT count(*) FROM objects WHERE digest = ?", object));
    if (object && known == 0) {
      return absl::FailedPreconditionError(cat("record of key ", record.key, ": its object ", record.object_sha256,
                                               " is not in the store; upload it first"));
    }
    WL_ASSIGN_OR_RETURN(const int64_t environment, environment_id(sql, record.environment));
    WL_RETURN_IF_ERROR(
        sql.run("UPDATE records SET blessed = 0 WHERE key = ? AND environment = ? AND namespace = 0 AND blessed = 1",
                Blob{parts.key}, environment));
    WL_RETURN_IF_ERROR(sql.run(
        "INSERT INTO records (digest, key, environment, search_id, object, blessed, created_ms, used_ms) VALUES "
        "(?1, ?2, ?3, ?4, ?5, 1, ?6, ?6) ON CONFLICT (digest) DO UPDATE SET blessed = 1, used_ms = ?6",
        Blob{parts.digest}, Blob{parts.key}, environment, search_id, object, unix_ms_now()));
    WL_RETURN_IF_ERROR(put_payload(sql, parts));
    return sql.run("DELETE FROM results WHERE id IN (SELECT result_id FROM result_keys WHERE key = ?)", record.key);
  });
}

absl::StatusOr<std::optional<RecordRow>> Store::record_by_key(const std::string& key, const std::string& environment) {
  std::optional<RecordRow> found;
  const std::string bytes = key_bytes(key);
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        cat(kSelectRecord,
            "r.key = ?1 AND r.namespace = 0 AND r.blessed = 1 AND (?2 = '' OR r.environment = (SELECT id FROM "
            "environments WHERE name = ?2)) ORDER BY r.created_ms DESC, r.digest DESC")
            .c_str(),
        [&](const Sql::Row& row) {
          found = impl_->take_record(row);
          if (!found) return true;
          if (found->record.key == key && (environment.empty() || found->record.environment == environment))
            return false;
          impl_->note_damage(cat("record ", found->record.digest, ": its row has the key or environment of another"));
          found.reset();
          return true;
        },
        Blob{bytes}, environment);
  }));
  return found;
}

absl::StatusOr<std::optional<RecordRow>> Store::record_by_digest(const std::string& digest) {
  std::optional<RecordRow> found;
  const std::string bytes = key_bytes(digest);
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        cat(kSelectRecord, "r.digest = ?").c_str(),
        [&](const Sql::Row& row) {
          found = impl_->take_record(row);
          return false;
        },
        Blob{bytes});
  }));
  if (found && found->record.digest != digest) found.reset();
  return found;
}

absl::StatusOr<std::vector<RecordRow>> Store::list_records(const std::optional<RecordCursor>& after, int limit) {
  std::vector<RecordRow> records;
  if (limit <= 0) return records;
  const int64_t created = after ? after->created_ms : std::numeric_limits<int64_t>::max();
  const std::string digest = after && !after->digest.empty() ? key_bytes(after->digest) : std::string();
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        cat(kSelectRecord,
            "r.blessed = 1 AND (r.created_ms, r.digest) < (?1, ?2) ORDER BY r.created_ms DESC, r.digest DESC")
            .c_str(),
        [&](const Sql::Row& row) {
          if (auto record = impl_->take_record(row)) records.push_back(*std::move(record));
          return static_cast<int>(records.size()) < limit;
        },
        created, Blob{digest});
  }));
  return records;
}

absl::StatusOr<int64_t> Store::invalidate(const std::string& key) {
  int64_t changed = 0;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.run("UPDATE records SET blessed = 0 WHERE key = ? AND namespace = 0 AND blessed = 1",
                               Blob{key_bytes(key)}));
    changed = sql.changes();
    return sql.run("DELETE FROM results WHERE id IN (SELECT result_id FROM result_keys WHERE key = ?)", key);
  });
  WL_RETURN_IF_ERROR(done);
  return changed;
}

absl::StatusOr<bool> Store::pin(const std::string& digest, bool pinned) {
  bool found = false;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.run("UPDATE records SET pinned = ? WHERE digest = ?", pinned, Blob{key_bytes(digest)}));
    found = sql.changes() > 0;
    return absl::OkStatus();
  });
  WL_RETURN_IF_ERROR(done);
  return found;
}

absl::StatusOr<uint64_t> Store::put_worker(const std::string& name, uint64_t epoch, const std::vector<Device>& devices,
                                           int64_t now_ms) {
  uint64_t given = 0;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    uint64_t newest = 0;
    WL_RETURN_IF_ERROR(sql.each(
        "SELECT epoch FROM workers WHERE name = ?",
        [&](const Sql::Row& row) {
          newest = static_cast<uint64_t>(row.integer(0));
          return false;
        },
        name));
    if (epoch != 0 && epoch < newest) {
      return absl::FailedPreconditionError(
          cat("worker ", name, ": a newer process has this name; give this one another"));
    }
    // What a process says of its epoch is compared and never stored, so no process can use the numbers up.
    given = epoch != 0 && epoch == newest ? epoch : newest + 1;
    WL_RETURN_IF_ERROR(sql.run(
        "INSERT INTO workers (name, epoch) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch", name,
        given));
    for (const Device& device : devices) {
      const std::string payload = encode(device);
      WL_RETURN_IF_ERROR(
          sql.run("INSERT INTO devices (fingerprint, environment, payload, seen_ms) VALUES (?, ?, ?, ?) ON CONFLICT "
                  "(fingerprint, environment) DO UPDATE SET payload = excluded.payload, seen_ms = excluded.seen_ms",
                  device.fingerprint(), device.compiler_versions, Blob{payload}, now_ms));
    }
    return absl::OkStatus();
  });
  WL_RETURN_IF_ERROR(done);
  return given;
}

absl::StatusOr<std::vector<Device>> Store::devices() {
  std::vector<Device> devices;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each("SELECT payload FROM devices ORDER BY seen_ms DESC, fingerprint, environment",
                    [&](const Sql::Row& row) {
                      if (auto device = decode_device(row.text(0)); device.ok()) devices.push_back(*std::move(device));
                      return true;
                    });
  }));
  return devices;
}

}  // namespace wl
