// An sqlite3_vfs over that of the system, for tests. It can make one call fail, and it can log what is written and
// synced, so that a power cut at any moment of the log can be simulated.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace wl::testing {

enum class Fault { kIoError, kFullDisk, kShortWrite };
enum class VfsCall { kOpen, kDelete, kAccess, kRead, kWrite, kTruncate, kSync, kFileSize, kLock, kSharedMemory };

struct DiskEvent {
  enum Kind { kWrite, kTruncate, kSync, kDelete, kNote } kind = kNote;
  std::string file;  // path of the file
  // for a write: the offset in bytes; for a truncation: the new size; for a note: its number; 1 for a durable deletion
  int64_t offset = 0;
  std::string bytes;
};

class FaultVfs {
 public:
  // Registers itself with SQLite under `name` until it is destroyed. When it is destroyed, no connection may use it any
  // more.
  explicit FaultVfs(std::string name);
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  const std::string& name() const { return name_; }

  // Begins to count the calls in which `fault` can occur, and makes call `number` fail (counted from 1). With 0 it only
  // counts.
  void arm(Fault fault, int64_t number);
  // Like the other arm(), but only for calls of one kind, on files whose names end with `file_ends`.
  void arm(Fault fault, VfsCall only, const std::string& file_ends, int64_t number);
  int64_t calls() const;
  bool failed() const;
  // `hook` is called before each call that changes what is on the disk: a write, truncation, sync or removal.
  void before_change(std::function<void()> hook) { before_change_ = std::move(hook); }

  void log(bool on);  // begins an empty log if `on`, else ends the log
  void note(int64_t number);
  std::vector<DiskEvent> events() const;
  // Returns the contents of files when they were first opened while the log was on; these are taken as durable.
  std::map<std::string, std::string> files_before() const;

  // The following functions are for the functions of the VFS in fault_vfs.cpp.
  bool fails(VfsCall call, const std::string& file, int* code);
  int written_of(int size) const;  // how many bytes a failing write writes nevertheless
  void add(DiskEvent event);
  void seen(const std::string& file);
  sqlite3_vfs* system() const { return system_; }

 private:
  const std::string name_;
  std::function<void()> before_change_;
  sqlite3_vfs* const system_;
  std::unique_ptr<sqlite3_vfs> vfs_;
  mutable std::mutex mutex_;
  Fault fault_ = Fault::kIoError;
  bool one_kind_ = false, logging_ = false, failed_ = false;
  VfsCall only_ = VfsCall::kRead;
  std::string file_ends_;
  int64_t number_ = 0, calls_ = 0;
  std::vector<DiskEvent> events_;
  std::map<std::string, std::string> before_;
};

// Returns the files as a power cut after the first `count` events could leave them. All synced bytes are there. Of the
// bytes written since the last sync, chance decides whether none are there, the first ones, or any sectors of 512
// bytes.
std::map<std::string, std::string> after_power_cut(const std::map<std::string, std::string>& before,
                                                   const std::vector<DiskEvent>& events, size_t count,
                                                   std::mt19937_64& random);

}  // namespace wl::testing
