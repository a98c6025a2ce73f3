// Records, blobs, workers and devices.
#include "compiler/base/sha256.h"
#include "proto/wire.h"
#include "server/store/sql.h"
#include "server/store/store.h"

namespace wl {
namespace {

// A record that cannot be decoded, or does not match its digest, counts as missing.
std::optional<RecordRow> record_of(const Sql::Row& row) {
  auto record = decode_record(row.text(0));
  if (!record.ok()) return std::nullopt;
  return RecordRow{*std::move(record), row.integer(1), row.integer(2)};
}

}  // namespace

absl::Status Store::promote(const KernelRecord& record, int64_t search_id) {
  return write([&](Sql& sql) -> absl::Status {
    bool stored = record.object_sha256.empty();
    WL_RETURN_IF_ERROR(sql.each(
        "SELECT 1 FROM blobs WHERE digest = ?",
        [&](const Sql::Row&) {
          stored = true;
          return false;
        },
        record.object_sha256));
    if (!stored) {
      return absl::FailedPreconditionError(cat("record of key ", record.key, ": its object ", record.object_sha256,
                                               " is not in the store; upload it first"));
    }
    WL_RETURN_IF_ERROR(sql.run("UPDATE records SET blessed = 0 WHERE key = ? AND environment = ? AND blessed = 1",
                               record.key, record.environment));
    const std::string payload = encode(record);
    WL_RETURN_IF_ERROR(
        sql.run("INSERT INTO records (digest, key, environment, search_id, blessed, payload, created_ms) VALUES (?, ?, "
                "?, ?, 1, ?, ?) "
                "ON CONFLICT (digest) DO UPDATE SET blessed = 1",
                record.digest, record.key, record.environment, search_id, Blob{payload}, unix_ms_now()));
    return sql.run("DELETE FROM results WHERE id IN (SELECT result_id FROM result_keys WHERE key = ?)", record.key);
  });
}

absl::StatusOr<std::optional<RecordRow>> Store::record_by_key(const std::string& key, const std::string& environment) {
  std::optional<RecordRow> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT payload, search_id, created_ms FROM records WHERE key = ?1 AND (?2 = '' OR environment = ?2) AND "
        "blessed = 1 "
        "ORDER BY created_ms DESC LIMIT 1",
        [&](const Sql::Row& row) {
          found = record_of(row);
          return false;
        },
        key, environment);
  }));
  return found;
}

absl::StatusOr<std::optional<RecordRow>> Store::record_by_digest(const std::string& digest) {
  std::optional<RecordRow> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT payload, search_id, created_ms FROM records WHERE digest = ?",
        [&](const Sql::Row& row) {
          found = record_of(row);
          return false;
        },
        digest);
  }));
  return found;
}

absl::StatusOr<std::vector<RecordRow>> Store::list_records(int64_t before_ms, int limit) {
  std::vector<RecordRow> records;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT payload, search_id, created_ms FROM records WHERE blessed = 1 AND (?1 = 0 OR created_ms < ?1) "
        "ORDER BY created_ms DESC LIMIT ?2",
        [&](const Sql::Row& row) {
          if (auto record = record_of(row)) records.push_back(*std::move(record));
          return true;
        },
        before_ms, limit);
  }));
  return records;
}

absl::StatusOr<int64_t> Store::invalidate(const std::string& key) {
  int64_t changed = 0;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_RETURN_IF_ERROR(sql.run("UPDATE records SET blessed = 0 WHERE key = ? AND blessed = 1", key));
    changed = sql.changes();
    return sql.run("DELETE FROM results WHERE id IN (SELECT result_id FROM result_keys WHERE key = ?)", key);
  });
  WL_RETURN_IF_ERROR(done);
  return changed;
}

absl::Status Store::put_blob(const std::string& digest, const std::string& bytes) {
  if (const std::string found = sha256_hex(bytes); found != digest) {
    return invalid("blob: its ", bytes.size(), " bytes have the digest ", found, ", expected ", digest,
                   "; send it again");
  }
  return write([&](Sql& sql) {
    // Also repairs a blob that was damaged on disk.
    return sql.run(
        "INSERT INTO blobs (digest, bytes) VALUES (?, ?) ON CONFLICT (digest) DO UPDATE SET bytes = excluded.bytes",
        digest, Blob{bytes});
  });
}

absl::StatusOr<std::optional<std::string>> Store::blob(const std::string& digest) {
  std::optional<std::string> found;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "SELECT bytes FROM blobs WHERE digest = ?",
        [&](const Sql::Row& row) {
          found = row.text(0);
          return false;
        },
        digest);
  }));
  if (found && sha256_hex(*found) != digest) found.reset();
  return found;
}

absl::StatusOr<std::vector<std::string>> Store::missing_blobs(const std::vector<std::string>& digests) {
  std::vector<std::string> missing;
  for (const std::string& digest : digests) {
    WL_ASSIGN_OR_RETURN(std::optional<std::string> bytes, blob(digest));
    if (!bytes) missing.push_back(digest);
  }
  return missing;
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
