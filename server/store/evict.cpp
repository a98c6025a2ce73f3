// Eviction: removes rows and files that can be made again, least recently used or oldest first, until the store is
// within its limits.
#include <algorithm>

#include "server/store/impl.h"
#include "server/store/sql/functions.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

constexpr int kGroup = 256;  // most rows removed in one transaction, so that other writes get in between
// Milliseconds for which an object that no record names is kept after its last use, since a record that names it may be
// stored soon.
constexpr int64_t kUnusedMs = 3'600'000;

// Returns the bytes of the database's pages that are in use. SQLite reuses free pages before the file grows.
absl::StatusOr<int64_t> used_bytes(Sql& sql) {
  WL_ASSIGN_OR_RETURN(const int64_t pages, sql.number("PRAGMA page_count"));
  WL_ASSIGN_OR_RETURN(const int64_t unused, sql.number("PRAGMA freelist_count"));
  WL_ASSIGN_OR_RETURN(const int64_t size, sql.number("PRAGMA page_size"));
  return (pages - unused) * size;
}

absl::StatusOr<int64_t> bytes_of_objects(Sql& sql) {
  return sql.number("SELECT coalesce(sum(size), 0) FROM objects");
}

// Returns the different integers in the first `columns` columns of a query's rows, in ascending order.
template <typename... Args>
absl::StatusOr<std::vector<int64_t>> ids_of(Sql& sql, const char* query, int columns, const Args&... args) {
  std::vector<int64_t> ids;
  WL_RETURN_IF_ERROR(sql.each(
      query,
      [&](const Sql::Row& row) {
        for (int i = 0; i < columns; ++i) ids.push_back(row.integer(i));
        return true;
      },
      args...));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

absl::Status drop_record(Sql& sql, int64_t id) {
  WL_ASSIGN_OR_RETURN(const std::vector<int64_t> texts,
                      ids_of(sql, "SELECT prelude, source FROM payloads WHERE record = ?", 2, id));
  WL_RETURN_IF_ERROR(sql.run("DELETE FROM records WHERE id = ?", id));
  for (const int64_t text : texts) {
    WL_RETURN_IF_ERROR(
        sql.run("DELETE FROM texts WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM payloads WHERE prelude = ?1) AND NOT "
                "EXISTS (SELECT 1 FROM payloads WHERE source = ?1)",
                text));
  }
  return absl::OkStatus();
}

namespace {

// Deletes a search unless a record or a job refers to it. The trials of the search are the evidence for the record, and
// the job may continue the search.
absl::Status drop_search_if_unused(Sql& sql, int64_t id) {
  WL_ASSIGN_OR_RETURN(
      const int64_t needed,
      sql.number("SELECT EXISTS (SELECT 1 FROM records WHERE search_id = ?1) OR EXISTS (SELECT 1 FROM job_groups "
                 "WHERE search_id = ?1)",
                 id));
  if (needed != 0) return absl::OkStatus();
  for (const char* drop : {"DELETE FROM batches WHERE search_id = ?", "DELETE FROM trials WHERE search_id = ?",
                           "DELETE FROM searches WHERE id = ?"})
    WL_RETURN_IF_ERROR(sql.run(drop, id));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> drop_records(Sql& sql) {
  WL_ASSIGN_OR_RETURN(
      const std::vector<int64_t> ids,
      ids_of(sql, "SELECT id FROM records WHERE blessed = 0 AND pinned = 0 ORDER BY used_ms LIMIT ?", 1, kGroup));
  for (const int64_t id : ids) WL_RETURN_IF_ERROR(drop_record(sql, id));
  return static_cast<int64_t>(ids.size());
}

absl::StatusOr<int64_t> drop_jobs(Sql& sql) {
  WL_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                      ids_of(sql, "SELECT id FROM jobs WHERE state >= 2 ORDER BY id LIMIT ?", 1, kGroup));
  for (const int64_t id : ids) {
    WL_ASSIGN_OR_RETURN(const std::vector<int64_t> searches,
                        ids_of(sql, "SELECT search_id FROM job_groups WHERE job_id = ?", 1, id));
    WL_RETURN_IF_ERROR(sql.run("DELETE FROM jobs WHERE id = ?", id));
    for (const int64_t search : searches) WL_RETURN_IF_ERROR(drop_search_if_unused(sql, search));
  }
  return static_cast<int64_t>(ids.size());
}

absl::StatusOr<int64_t> drop_answers(Sql& sql) {
  WL_RETURN_IF_ERROR(
      sql.run("DELETE FROM results WHERE rowid IN (SELECT rowid FROM results ORDER BY rowid LIMIT ?)", kGroup));
  return sql.changes();
}

// The kinds of rows that are removed from the database, in this order, each with its function and its count.
struct Kind {
  absl::StatusOr<int64_t> (*drop)(Sql& sql);
  int64_t Evicted::*count;
};
constexpr Kind kKinds[] = {
    {&drop_records, &Evicted::records}, {&drop_jobs, &Evicted::jobs}, {&drop_answers, &Evicted::answers}};

// The queries for objects to be removed, in order: first objects that no record names and that were not used for a
// while, then objects of records that are neither served (blessed) nor pinned.
constexpr const char* kFindObjects[] = {
    "SELECT o.digest, o.size FROM objects o WHERE o.used_ms < ?1 AND NOT EXISTS (SELECT 1 FROM records r WHERE "
    "r.object "
    "= o.digest) ORDER BY o.used_ms LIMIT ?2",
    "SELECT o.digest, o.size FROM objects o JOIN records r ON r.object = o.digest WHERE ?1 IS NOT NULL GROUP BY "
    "o.digest "
    "HAVING max(r.blessed) = 0 AND max(r.pinned) = 0 ORDER BY max(r.used_ms) LIMIT ?2"};

struct Going {
  std::vector<std::string> objects;  // digests of the objects to be removed, as bytes
  int64_t records = 0, bytes = 0;
};

absl::StatusOr<Going> drop_objects(Sql& sql, const char* find, int64_t bound) {
  Going going;
  WL_ASSIGN_OR_RETURN(const int64_t used, bytes_of_objects(sql));
  int64_t excess = used - bound;
  if (excess <= 0) return going;
  WL_RETURN_IF_ERROR(sql.each(
      find,
      [&](const Sql::Row& row) {
        going.objects.push_back(row.text(0));
        going.bytes += row.integer(1);
        excess -= row.integer(1);
        return excess > 0;
      },
      unix_ms_now() - kUnusedMs, kGroup));
  for (const std::string& digest : going.objects) {
    WL_ASSIGN_OR_RETURN(const std::vector<int64_t> records,
                        ids_of(sql, "SELECT id FROM records WHERE object = ?", 1, Blob{digest}));
    for (const int64_t record : records) WL_RETURN_IF_ERROR(drop_record(sql, record));
    going.records += static_cast<int64_t>(records.size());
    WL_RETURN_IF_ERROR(sql.run("DELETE FROM objects WHERE digest = ?", Blob{digest}));
  }
  return going;
}

}  // namespace

absl::Status Store::Impl::evict_rows(int64_t bound, Evicted* out) {
  for (const Kind& kind : kKinds) {
    int64_t dropped = 1;
    while (dropped > 0) {
      bool within = false;
      WL_RETURN_IF_ERROR(writer->write([&](Sql& sql) -> absl::Status {
        dropped = 0;
        WL_ASSIGN_OR_RETURN(const int64_t used, used_bytes(sql));
        within = used <= bound;
        if (within) return absl::OkStatus();
        WL_ASSIGN_OR_RETURN(dropped, kind.drop(sql));
        return absl::OkStatus();
      }));
      if (within) return absl::OkStatus();
      out->*kind.count += dropped;
    }
  }
  return absl::OkStatus();
}

absl::Status Store::Impl::evict_objects(int64_t bound, Evicted* out) {
  for (const char* find : kFindObjects) {
    Going going;
    do {
      const std::unique_lock alone(objects_mutex);
      WL_RETURN_IF_ERROR(writer->write([&](Sql& sql) -> absl::Status {
        WL_ASSIGN_OR_RETURN(going, drop_objects(sql, find, bound));
        return absl::OkStatus();
      }));
      for (const std::string& digest : going.objects) {
        const absl::Status removed = objects->remove(hex_of(digest));
        if (!removed.ok()) spdlog::warn("{}", std::string(removed.message()));
      }
      object_bytes -= going.bytes;
      out->objects += static_cast<int64_t>(going.objects.size());
      out->records += going.records;
    } while (!going.objects.empty());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Store::object_bytes() {
  int64_t bytes = 0;
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(bytes, bytes_of_objects(sql));
    return absl::OkStatus();
  }));
  return bytes;
}

absl::StatusOr<Evicted> Store::evict(const StoreBounds& bounds) {
  Evicted out;
  WL_RETURN_IF_ERROR(impl_->store_used());
  if (bounds.object_bytes > 0) WL_RETURN_IF_ERROR(impl_->evict_objects(bounds.object_bytes, &out));
  if (bounds.database_bytes > 0) WL_RETURN_IF_ERROR(impl_->evict_rows(bounds.database_bytes, &out));
  WL_RETURN_IF_ERROR(read([&](Sql& sql) -> absl::Status {
    WL_ASSIGN_OR_RETURN(out.database_bytes, used_bytes(sql));
    WL_ASSIGN_OR_RETURN(out.object_bytes, bytes_of_objects(sql));
    return absl::OkStatus();
  }));
  return out;
}

}  // namespace wl
