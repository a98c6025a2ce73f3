// Writes records, and stores workers and devices.
#include "proto/wire.h"
#include "server/store/impl.h"
#include "server/store/sql/functions.h"

namespace wl {
namespace {

absl::StatusOr<int64_t> text_id(Sql& sql, const RecordParts::Text& text) {
  // This statement also repairs a stored text that was damaged on the disk. A text that is stored undamaged is not
  // written again.
  WL_RETURN_IF_ERROR(
      sql.run("INSERT INTO texts (digest, bytes) VALUES (?1, ?2) ON CONFLICT (digest) DO UPDATE SET bytes = "
              "excluded.bytes WHERE bytes IS NOT excluded.bytes",
              Blob{text.digest}, Blob{text.bytes}));
  return sql.number("SELECT id FROM texts WHERE digest = ?", Blob{text.digest});
}

absl::StatusOr<int64_t> namespace_of_search(Sql& sql, int64_t search_id) {
  std::string team;
  WL_RETURN_IF_ERROR(sql.each(
      "SELECT team FROM searches WHERE id = ?",
      [&](const Sql::Row& row) {
        team = row.text(0);
        return false;
      },
      search_id));
  return id_of(sql, "namespaces", team);
}

}  // namespace

RecordParts::RecordParts(const KernelRecord& record)
    : digest(key_bytes(record.digest)),
      key(key_bytes(record.key)),
      object(record.object_sha256.empty() ? std::string() : key_bytes(record.object_sha256)),
      prelude{record.source.prelude, sha256_bytes(record.source.prelude)},
      source{record.source.text, sha256_bytes(record.source.text)} {
  set_payload(record);
  texts = row_digest({digest, prelude.digest, source.digest});
}

void RecordParts::set_payload(const KernelRecord& manifest) {
  v1::KernelRecord message = to_proto(manifest);
  message.mutable_source()->clear_prelude();
  message.mutable_source()->clear_text();
  payload = message.SerializeAsString();
  payload_digest = sha256_bytes(payload);
}

absl::Status put_payload(Sql& sql, const RecordParts& parts) {
  WL_ASSIGN_OR_RETURN(const int64_t id, sql.number("SELECT id FROM records WHERE digest = ?", Blob{parts.digest}));
  WL_ASSIGN_OR_RETURN(const int64_t prelude, text_id(sql, parts.prelude));
  WL_ASSIGN_OR_RETURN(const int64_t source, text_id(sql, parts.source));
  return sql.run(
      "INSERT INTO payloads (record, prelude, source, texts, digest, bytes) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT "
      "(record) DO UPDATE SET prelude = excluded.prelude, source = excluded.source, texts = excluded.texts, digest = "
      "excluded.digest, bytes = excluded.bytes",
      id, prelude, source, Blob{parts.texts}, Blob{parts.payload_digest}, Blob{parts.payload});
}

absl::StatusOr<int64_t> id_of(Sql& sql, const char* table, const std::string& name) {
  WL_RETURN_IF_ERROR(sql.run(cat("INSERT INTO ", table, " (name) VALUES (?) ON CONFLICT DO NOTHING").c_str(), name));
  return sql.number(cat("SELECT id FROM ", table, " WHERE name = ?").c_str(), name);
}

absl::Status check_object(Sql& sql, const KernelRecord& record, const std::optional<Blob>& object) {
  if (!object) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(const int64_t known, sql.number("SELECT count(*) FROM objects WHERE digest = ?", object));
  if (known > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(cat("record of key ", record.key, ": its object ", record.object_sha256,
                                           " is not in the store; upload it first"));
}

absl::StatusOr<int64_t> machine_of(Sql& sql, const KernelRecord& record) {
  return id_of(sql, "machines", machine_name(record.device.target, record.device.name));
}

absl::Status drop_answers_of(Sql& sql, const std::string& key) {
  return sql.run("DELETE FROM results WHERE id IN (SELECT result_id FROM result_keys WHERE key = ?)", key);
}

absl::Status Store::promote(const KernelRecord& record, int64_t search_id, bool shared) {
  SignedParts parts(record, impl_->signing);
  const std::optional<Blob> object = parts.object_row();
  return write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(parts.sign(sql));
    WL_RETURN_IF_ERROR(check_object(sql, record, object));
    WL_ASSIGN_OR_RETURN(const int64_t environment, id_of(sql, "environments", record.environment));
    WL_ASSIGN_OR_RETURN(const int64_t machine, machine_of(sql, record));
    WL_ASSIGN_OR_RETURN(const int64_t own, namespace_of_search(sql, search_id));
    const int64_t into = shared ? 0 : own;
    WL_RETURN_IF_ERROR(note_replaced(sql, parts, record, environment, into));
    WL_RETURN_IF_ERROR(sql.run(
        "UPDATE records SET blessed = 0 WHERE key = ? AND environment = ? AND namespace IN (?, ?) AND blessed = 1",
        Blob{parts.key}, environment, own, into));
    WL_RETURN_IF_ERROR(sql.run(
        "INSERT INTO records (digest, key, namespace, environment, machine, search_id, object, blessed, created_ms, "
        "used_ms) VALUES (?1, ?2, ?7, ?3, ?8, ?4, ?5, 1, ?6, ?6) ON CONFLICT (digest) DO UPDATE SET blessed = 1, "
        "used_ms = ?6, namespace = ?7",
        Blob{parts.digest}, Blob{parts.key}, environment, search_id, object, unix_ms_now(), into, machine));
    WL_RETURN_IF_ERROR(put_payload(sql, parts));
    WL_RETURN_IF_ERROR(
        sql.run("UPDATE batches SET check_seed = 0 WHERE search_id = ? AND state = 'done' AND phase > 0", search_id));
    return drop_answers_of(sql, record.key);
  });
}

absl::StatusOr<int64_t> Store::invalidate(const std::string& key) {
  int64_t changed = 0;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.run("UPDATE records SET blessed = 0 WHERE key = ? AND blessed = 1", Blob{key_bytes(key)}));
    changed = sql.changes();
    if (changed > 0) WL_RETURN_IF_ERROR(forget_older(sql, key, impl_->signing != nullptr));
    return drop_answers_of(sql, key);
  });
  WL_RETURN_IF_ERROR(done);
  return changed;
}

absl::StatusOr<int64_t> Store::pin(const RecordName& name, bool pinned) {
  int64_t found = 0;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    if (!name.digest.empty()) {
      WL_RETURN_IF_ERROR(
          sql.run("UPDATE records SET pinned = ? WHERE digest = ?", pinned, Blob{key_bytes(name.digest)}));
    } else {
      WL_RETURN_IF_ERROR(
          sql.run("UPDATE records SET pinned = ?1 WHERE key = ?2 AND blessed = 1 AND (?3 = '' OR "
                  "environment = (SELECT id FROM environments WHERE name = ?3))",
                  pinned, Blob{key_bytes(name.key)}, name.environment));
    }
    found = sql.changes();
    return absl::OkStatus();
  });
  WL_RETURN_IF_ERROR(done);
  return found;
}

absl::StatusOr<uint64_t> Store::put_worker(const std::string& name, uint64_t epoch, const std::vector<Device>& devices,
                                           const std::string& machine, int64_t now_ms) {
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
    // The epoch that a process claims is only compared and never stored, so no process can exhaust the epochs by
    // claiming the highest one.
    given = epoch != 0 && epoch == newest ? epoch : newest + 1;
    WL_RETURN_IF_ERROR(
        sql.run("INSERT INTO workers (name, epoch, machine) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                "epoch = excluded.epoch, machine = excluded.machine",
                name, given, machine));
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

absl::StatusOr<std::string> Store::worker_machine(const std::string& name) {
  std::string machine;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT machine FROM workers WHERE name = ?",
        [&](const Sql::Row& row) {
          machine = row.text(0);
          return false;
        },
        name);
  }));
  return machine;
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
