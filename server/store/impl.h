// The parts of a store, for the files that define the functions of Store.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/store/disk.h"
#include "server/store/objects.h"
#include "server/store/readers.h"
#include "server/store/store.h"
#include "server/store/writer.h"

namespace wl {

// Ids of records that were served but whose last use is not stored yet. Thread-safe.
class UsedRecords {
 public:
  void note(int64_t id) {
    const std::lock_guard lock(mutex_);
    if (ids_.size() < kMost) ids_.insert(id);
  }
  std::set<int64_t> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(ids_, {});
  }

 private:
  static constexpr size_t kMost = 1 << 16;
  std::mutex mutex_;
  std::set<int64_t> ids_;
};

// A cache of preludes (the common texts before kernels) by digest. Many records share one prelude, and each prelude was
// checked when it was read. Thread-safe.
class KnownTexts {
 public:
  std::optional<std::string> find(const std::string& digest) {
    const std::lock_guard lock(mutex_);
    const auto known = texts_.find(digest);
    return known == texts_.end() ? std::nullopt : std::optional(known->second);
  }
  void keep(const std::string& digest, const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (texts_.size() >= kMost) texts_.clear();
    if (text.size() <= kMostBytes) texts_[digest] = text;
  }

 private:
  // Most texts, and most bytes of one text: together at most 16 MiB.
  static constexpr size_t kMost = 64, kMostBytes = 1 << 18;
  std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

// The contents of a record's rows. They are made before the write is queued, so that this work does not occupy the
// writer's thread, for which all writes wait. They refer to the texts of the record, which must outlive them.
struct RecordParts {
  struct Text {
    std::string_view bytes;
    std::string digest;
  };
  explicit RecordParts(const KernelRecord& record);
  // Returns the digest of the record's object; nullopt: the record has no object.
  std::optional<Blob> object_row() const { return object.empty() ? std::nullopt : std::optional(Blob{object}); }

  void set_payload(const KernelRecord& manifest);  // sets the payload from a record; texts of the record are ignored

  std::string digest, key, object;  // SHA-256 hashes of 32 bytes each; `object` is empty if the record has no object
  Text prelude, source;
  std::string payload, payload_digest, texts;
};

// The contents of a record's rows for a record that is signed in the transaction which writes it, so that its
// generation is above every floor (lowest valid generation) that exists by then.
class SignedParts : public RecordParts {
 public:
  // `signing`: the key that signs the record; null: the record is not signed.
  SignedParts(const KernelRecord& record, std::shared_ptr<const SigningKey> signing);
  absl::Status sign(Sql& sql);

 private:
  std::shared_ptr<const SigningKey> signing_;
  KernelRecord manifest_;  // the record without its texts
};

// Generations (generations.cpp). next_generation() returns a generation that is higher than all earlier ones.
// forget_older() makes a new generation the floor (lowest valid generation) of a key, so that the older records of the
// key are no longer valid.
absl::StatusOr<int64_t> next_generation(Sql& sql);
absl::Status forget_older(Sql& sql, const std::string& key, bool is_signed);

// Returns the id of a name in the table `environments`, `namespaces` or `machines`; a new name is added.
absl::StatusOr<int64_t> id_of(Sql& sql, const char* table, const std::string& name);
// Returns the id, in the table `machines`, of the machine that a record is for.
absl::StatusOr<int64_t> machine_of(Sql& sql, const KernelRecord& record);
// Checks a record's object. FailedPrecondition: the record names an object that is not stored.
absl::Status check_object(Sql& sql, const KernelRecord& record, const std::optional<Blob>& object);
// Stores the payload and the texts of a record whose row is stored already.
absl::Status put_payload(Sql& sql, const RecordParts& parts);
// Deletes the stored answers to those whole jobs that use the kernel of this key.
absl::Status drop_answers_of(Sql& sql, const std::string& key);

// Programs and replaced kernels (in_place.cpp). note_program() notes the keys of a job's answer, so that
// programs_with() finds the job. note_replaced() is called before a record is promoted into a namespace.
absl::Status note_program(Sql& sql, int64_t job_id, const std::string& graph, const JobResult& result);
absl::Status note_replaced(Sql& sql, const RecordParts& parts, const KernelRecord& record, int64_t environment,
                           int64_t into);

// Deletes a record, and those of its texts that no other one has (evict.cpp).
absl::Status drop_record(Sql& sql, int64_t id);

// The rows of jobs that verify winners again (reverified.cpp). not_verified_yet() returns those of `rows` whose records
// are not verified yet in the environment of the row (Store::verified_in()); put_reverified() stores rows of a job.
absl::StatusOr<std::vector<ReverifiedRow>> not_verified_yet(Sql& sql, const std::vector<ReverifiedRow>& rows,
                                                            bool again);
absl::Status put_reverified(Sql& sql, int64_t job_id, const std::vector<ReverifiedRow>& rows);

// Adds the times of reported trials to the sums of their search's team and of the present day (uses.cpp).
absl::Status add_search_time(Sql& sql, int64_t search_id, const std::vector<Trial>& trials);

struct Store::Impl {
  StoreOptions options;
  std::string file;  // name of the database file, with symbolic links resolved
  // The order of these members matters, since they are destroyed in reverse: the readers close before the writer, which
  // checkpoints, and the lock outlives all connections.
  std::optional<StoreLock> lock;
  std::unique_ptr<StoreWriter> writer;
  std::unique_ptr<StoreReaders> readers;
  std::unique_ptr<ObjectFolder> objects;
  std::shared_mutex objects_mutex;        // locked shared to store a file and its row, exclusively to remove both
  std::atomic<int64_t> object_bytes = 0;  // bytes of all objects; counted only if max_object_bytes is set
  UsedRecords used_records;
  KnownTexts texts;
  std::shared_ptr<const SigningKey> signing;  // the key that signs records; null: records are not signed
  bool unclean = false, checked = false;
  std::atomic<int64_t> damaged = 0;

  const FileCalls& file_calls() const { return options.files != nullptr ? *options.files : system_calls(); }
  absl::Status open();
  absl::StatusOr<std::unique_ptr<Sql>> connect_writer();
  absl::Status move_blobs(Sql& sql);
  // Stores the row of an object, or notes the object's use. Returns true if the row is new.
  static absl::StatusOr<bool> put_object_row(Sql& sql, const std::string& digest, int64_t size);
  absl::Status make_room(int64_t size);
  // Returns the record of a row if the row is undamaged and has the record that `name` asks for. If `name` is null, any
  // record is right, and the record's texts are not read.
  std::optional<RecordRow> take_record(const Sql::Row& row, const RecordName* name);
  // Returns whether `status`, the outcome of reading a record's row, is OK. If it is, notes that the record was used;
  // otherwise notes the damage.
  bool sound(const Sql::Row& row, const absl::Status& status);
  // Returns true if an object exists and is undamaged, or if the digest is empty (no object). Reads the object, and
  // notes damage.
  bool has_object(const std::string& digest);
  absl::StatusOr<std::optional<std::string>> text(Sql& sql, const std::string& digest, bool keep);
  // Counts damage that was found while reading, and logs it; the more damage there is, the more rarely.
  void note_damage(const std::string& what);
  absl::Status evict_rows(int64_t bound, Evicted* out);
  absl::Status evict_objects(int64_t bound, Evicted* out);
  // Writes the noted times of the records' last uses to the database.
  absl::Status store_used();
};

}  // namespace wl
