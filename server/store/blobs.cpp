// Compiled objects (blobs). Their bytes are files; a row of the database says that a file is complete and on the disk.
#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "compiler/base/sha256.h"
#include "server/store/impl.h"
#include "server/store/sql/functions.h"

namespace wl {

absl::StatusOr<bool> Store::Impl::put_object_row(Sql& sql, const std::string& digest, int64_t size) {
  const std::string bytes = key_bytes(digest);
  WL_ASSIGN_OR_RETURN(const int64_t known, sql.number("SELECT count(*) FROM objects WHERE digest = ?", Blob{bytes}));
  WL_RETURN_IF_ERROR(
      sql.run("INSERT INTO objects (digest, size, used_ms) VALUES (?1, ?2, ?3) ON CONFLICT (digest) DO UPDATE SET "
              "used_ms = ?3",
              Blob{bytes}, size, unix_ms_now()));
  return known == 0;
}

absl::Status Store::Impl::make_room(int64_t size) {
  const int64_t bound = options.max_object_bytes;
  if (bound == 0 || object_bytes + size <= bound) return absl::OkStatus();
  Evicted gone;
  WL_RETURN_IF_ERROR(evict_objects(std::max<int64_t>(bound - size, 0), &gone));
  if (object_bytes + size <= bound) return absl::OkStatus();
  return absl::ResourceExhaustedError(cat("object of ", size, " bytes: the objects of store ", file, " take ",
                                          object_bytes.load(), " of at most ", bound,
                                          " bytes and are all in use; allow more, or invalidate records"));
}

absl::Status Store::put_blob(const std::string& digest, const std::string& bytes) {
  if (const std::string found = sha256_hex(bytes); found != digest) {
    return invalid("blob: its ", bytes.size(), " bytes have the digest ", found, ", expected ", digest,
                   "; send it again");
  }
  const auto size = static_cast<int64_t>(bytes.size());
  if (!impl_->objects->has(digest, size)) WL_RETURN_IF_ERROR(impl_->make_room(size));
  // An object's file and row are stored while objects_mutex is held shared. Eviction holds this mutex exclusively, so
  // it sees either both the file and the row, or neither.
  const std::shared_lock together(impl_->objects_mutex);
  // put() also repairs an object that was damaged on the disk.
  const absl::Status stored = impl_->objects->put(digest, bytes);
  if (absl::IsDataLoss(stored)) {
    impl_->writer->break_down(stored);
    return impl_->writer->broken();
  }
  WL_RETURN_IF_ERROR(stored);
  bool made = false;
  const absl::Status done = write([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(made, Impl::put_object_row(sql, digest, size));
    return absl::OkStatus();
  });
  WL_RETURN_IF_ERROR(done);
  if (made) impl_->object_bytes += size;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> Store::blob(const std::string& digest) {
  int64_t known = 0;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(known, sql.number("SELECT count(*) FROM objects WHERE digest = ?", Blob{key_bytes(digest)}));
    return absl::OkStatus();
  }));
  if (known == 0) return std::nullopt;
  absl::StatusOr<std::string> bytes = impl_->objects->get(digest);
  if (absl::IsDataLoss(bytes.status())) impl_->note_damage(std::string(bytes.status().message()));
  if (absl::IsDataLoss(bytes.status()) || absl::IsNotFound(bytes.status())) return std::nullopt;
  WL_RETURN_IF_ERROR(bytes.status());
  return *std::move(bytes);
}

absl::StatusOr<std::set<std::string>> Store::seen_objects(const std::vector<std::string>& digests,
                                                          const Reader& reader) {
  std::set<std::string> seen;
  std::string keys;  // the digests as bytes, 32 for each digest, one after another
  for (const std::string& digest : digests) keys += key_bytes(digest);
  if (keys.empty()) return seen;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) {
    return sql.each(
        "WITH RECURSIVE asked(at, digest) AS (SELECT 1, substr(?1, 1, 32) "
        "UNION ALL SELECT at + 32, substr(?1, at + 32, 32) FROM asked WHERE at + 32 <= length(?1)) "
        "SELECT digest FROM asked WHERE EXISTS (SELECT 1 FROM records WHERE object = asked.digest AND "
        "(?3 OR namespace = 0 OR namespace = (SELECT id FROM namespaces WHERE name = ?2)))",
        [&](const Sql::Row& row) {
          seen.insert(hex_of(row.text(0)));
          return true;
        },
        Blob{keys}, reader.team, static_cast<int64_t>(reader.every));
  }));
  return seen;
}

absl::StatusOr<int64_t> Store::sweep_blobs() {
  constexpr int kFolders = 256;
  int64_t removed = 0;
  for (int number = 0; number < kFolders; ++number) {
    // put_blob() holds objects_mutex shared while it stores a file and its row. While this mutex is held exclusively
    // here, no file is being stored, so a file without a row is a left-over.
    const std::unique_lock alone(impl_->objects_mutex);
    std::vector<std::string> unknown = impl_->objects->names(absl::StrFormat("%02x", number));
    const absl::Status looked = read([&](Sql& sql) -> absl::Status {
      absl::Status status;
      std::erase_if(unknown, [&](const std::string& digest) {
        const auto rows = sql.number("SELECT count(*) FROM objects WHERE digest = ?", Blob{key_bytes(digest)});
        if (!rows.ok()) status = rows.status();
        return !rows.ok() || *rows > 0;
      });
      return status;
    });
    WL_RETURN_IF_ERROR(looked);
    for (const std::string& digest : unknown) WL_RETURN_IF_ERROR(impl_->objects->remove(digest));
    removed += static_cast<int64_t>(unknown.size());
  }
  return removed;
}

absl::StatusOr<std::vector<std::string>> Store::missing_blobs(const std::vector<std::string>& digests) {
  std::vector<std::string> missing;
  for (const std::string& digest : digests) {
    WL_ASSIGN_OR_RETURN(std::optional<std::string> bytes, blob(digest));
    if (!bytes) missing.push_back(digest);
  }
  return missing;
}

// Moves objects from the database, where older formats kept them, to files: at most kGroup objects in a transaction.
absl::Status Store::Impl::move_blobs(Sql& sql) {
  constexpr int kGroup = 64;
  for (;;) {
    std::vector<std::pair<std::string, std::string>> group;
    WL_RETURN_IF_ERROR(sql.each(
        "SELECT digest, bytes FROM blobs LIMIT ?",
        [&](const Sql::Row& row) {
          group.emplace_back(row.text(0), row.text(1));
          return true;
        },
        kGroup));
    if (group.empty()) return absl::OkStatus();
    for (const auto& [digest, bytes] : group) {
      if (sha256_hex(bytes) == digest) WL_RETURN_IF_ERROR(objects->put(digest, bytes));
    }
    absl::Status done = sql.script("BEGIN IMMEDIATE");
    for (const auto& [digest, bytes] : group) {
      if (done.ok() && objects->has(digest, static_cast<int64_t>(bytes.size())))
        done = put_object_row(sql, digest, static_cast<int64_t>(bytes.size())).status();
      if (done.ok()) done = sql.run("DELETE FROM blobs WHERE digest = ?", digest);
    }
    if (done.ok()) done = sql.script("COMMIT");
    if (!done.ok()) {
      (void)sql.script("ROLLBACK");
      return done;
    }
  }
}

}  // namespace wl
