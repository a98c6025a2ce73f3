#include "tests/server/store/fault_vfs.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

namespace wl::testing {
namespace {

struct File {
  sqlite3_file base;
  FaultVfs* owner;
  std::string* path;
  sqlite3_file* real;  // the system's file object, which lies behind this struct in memory
};

File* of(sqlite3_file* file) {
  return reinterpret_cast<File*>(file);
}
sqlite3_file* real(sqlite3_file* file) {
  return of(file)->real;
}
bool fails(sqlite3_file* file, VfsCall call, int* code) {
  return of(file)->owner->fails(call, *of(file)->path, code);
}

int close_file(sqlite3_file* file) {
  const int code = real(file)->pMethods->xClose(real(file));
  delete of(file)->path;
  return code;
}
int read_file(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
  int code = 0;
  if (fails(file, VfsCall::kRead, &code)) return code;
  return real(file)->pMethods->xRead(real(file), out, size, offset);
}
int write_file(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  int code = 0;
  const bool failing = fails(file, VfsCall::kWrite, &code);
  const int written = !failing ? size : of(file)->owner->written_of(size);
  if (written > 0) {
    of(file)->owner->add(
        {DiskEvent::kWrite, *of(file)->path, offset, std::string(static_cast<const char*>(bytes), written)});
    const int done = real(file)->pMethods->xWrite(real(file), bytes, written, offset);
    if (done != SQLITE_OK) return done;
  }
  return failing ? code : SQLITE_OK;
}
int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  int code = 0;
  if (fails(file, VfsCall::kTruncate, &code)) return code;
  of(file)->owner->add({DiskEvent::kTruncate, *of(file)->path, size, {}});
  return real(file)->pMethods->xTruncate(real(file), size);
}
int sync_file(sqlite3_file* file, int flags) {
  int code = 0;
  if (fails(file, VfsCall::kSync, &code)) return code;
  const int done = real(file)->pMethods->xSync(real(file), flags);
  if (done == SQLITE_OK) of(file)->owner->add({DiskEvent::kSync, *of(file)->path, 0, {}});
  return done;
}
int file_size(sqlite3_file* file, sqlite3_int64* size) {
  int code = 0;
  if (fails(file, VfsCall::kFileSize, &code)) return code;
  return real(file)->pMethods->xFileSize(real(file), size);
}
int lock_file(sqlite3_file* file, int level) {
  int code = 0;
  if (fails(file, VfsCall::kLock, &code)) return code;
  return real(file)->pMethods->xLock(real(file), level);
}
int unlock_file(sqlite3_file* file, int level) {
  return real(file)->pMethods->xUnlock(real(file), level);
}
int check_reserved(sqlite3_file* file, int* out) {
  return real(file)->pMethods->xCheckReservedLock(real(file), out);
}
int control(sqlite3_file* file, int op, void* argument) {
  return real(file)->pMethods->xFileControl(real(file), op, argument);
}
int sector_size(sqlite3_file* file) {
  return real(file)->pMethods->xSectorSize(real(file));
}
int characteristics(sqlite3_file* file) {
  return real(file)->pMethods->xDeviceCharacteristics(real(file));
}
int map_shared(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  int code = 0;
  if (fails(file, VfsCall::kSharedMemory, &code)) return code;
  return real(file)->pMethods->xShmMap(real(file), page, size, extend, out);
}
int lock_shared(sqlite3_file* file, int offset, int n, int flags) {
  return real(file)->pMethods->xShmLock(real(file), offset, n, flags);
}
void barrier(sqlite3_file* file) {
  real(file)->pMethods->xShmBarrier(real(file));
}
int unmap_shared(sqlite3_file* file, int remove) {
  return real(file)->pMethods->xShmUnmap(real(file), remove);
}

const sqlite3_io_methods kMethods = {2,          &close_file,   &read_file,       &write_file,  &truncate_file,
                                     &sync_file, &file_size,    &lock_file,       &unlock_file, &check_reserved,
                                     &control,   &sector_size,  &characteristics, &map_shared,  &lock_shared,
                                     &barrier,   &unmap_shared, nullptr,          nullptr};

FaultVfs* owner_of(sqlite3_vfs* vfs) {
  return static_cast<FaultVfs*>(vfs->pAppData);
}

int open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  FaultVfs* owner = owner_of(vfs);
  file->pMethods = nullptr;
  const std::string path = name == nullptr ? "" : name;
  int code = 0;
  if (owner->fails(VfsCall::kOpen, path, &code)) return code;
  owner->seen(path);
  File* mine = of(file);
  mine->owner = owner;
  mine->real = reinterpret_cast<sqlite3_file*>(mine + 1);
  const int opened = owner->system()->xOpen(owner->system(), name, mine->real, flags, out_flags);
  if (opened != SQLITE_OK) {
    if (mine->real->pMethods != nullptr) mine->real->pMethods->xClose(mine->real);
    return opened;
  }
  mine->path = new std::string(path);
  file->pMethods = &kMethods;
  return SQLITE_OK;
}

int delete_file(sqlite3_vfs* vfs, const char* name, int sync) {
  FaultVfs* owner = owner_of(vfs);
  int code = 0;
  if (owner->fails(VfsCall::kDelete, name, &code)) return code;
  owner->add({DiskEvent::kDelete, name, sync, {}});
  return owner->system()->xDelete(owner->system(), name, sync);
}

int access_file(sqlite3_vfs* vfs, const char* name, int flags, int* out) {
  FaultVfs* owner = owner_of(vfs);
  int code = 0;
  if (owner->fails(VfsCall::kAccess, name, &code)) return code;
  return owner->system()->xAccess(owner->system(), name, flags, out);
}

int full_path(sqlite3_vfs* vfs, const char* name, int size, char* out) {
  sqlite3_vfs* system = owner_of(vfs)->system();
  return system->xFullPathname(system, name, size, out);
}

// Returns the SQLite error of a call in which this fault occurs, or 0 if it cannot occur in such a call.
int code_of(VfsCall call, Fault fault) {
  if (fault != Fault::kIoError) return call == VfsCall::kWrite ? SQLITE_FULL : 0;
  switch (call) {
    case VfsCall::kOpen:
      return SQLITE_CANTOPEN;
    case VfsCall::kDelete:
      return SQLITE_IOERR_DELETE;
    case VfsCall::kAccess:
      return SQLITE_IOERR_ACCESS;
    case VfsCall::kRead:
      return SQLITE_IOERR_READ;
    case VfsCall::kWrite:
      return SQLITE_IOERR_WRITE;
    case VfsCall::kTruncate:
      return SQLITE_IOERR_TRUNCATE;
    case VfsCall::kSync:
      return SQLITE_IOERR_FSYNC;
    case VfsCall::kFileSize:
      return SQLITE_IOERR_FSTAT;
    case VfsCall::kLock:
      return SQLITE_IOERR_LOCK;
    case VfsCall::kSharedMemory:
      return SQLITE_IOERR_SHMMAP;
  }
  return 0;
}

}  // namespace

FaultVfs::FaultVfs(std::string name)
    : name_(std::move(name)), system_(sqlite3_vfs_find(nullptr)), vfs_(std::make_unique<sqlite3_vfs>(*system_)) {
  vfs_->iVersion = 2;
  vfs_->szOsFile = static_cast<int>(sizeof(File)) + system_->szOsFile;
  vfs_->zName = name_.c_str();
  vfs_->pAppData = this;
  vfs_->xOpen = &open_file;
  vfs_->xDelete = &delete_file;
  vfs_->xAccess = &access_file;
  vfs_->xFullPathname = &full_path;
  sqlite3_vfs_register(vfs_.get(), 0);
}

FaultVfs::~FaultVfs() {
  sqlite3_vfs_unregister(vfs_.get());
}

void FaultVfs::arm(Fault fault, int64_t number) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  number_ = number;
  one_kind_ = failed_ = false;
  calls_ = 0;
}

void FaultVfs::arm(Fault fault, VfsCall only, const std::string& file_ends, int64_t number) {
  arm(fault, number);
  const std::lock_guard lock(mutex_);
  one_kind_ = true;
  only_ = only;
  file_ends_ = file_ends;
}

int64_t FaultVfs::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}
bool FaultVfs::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

bool FaultVfs::fails(VfsCall call, const std::string& file, int* code) {
  constexpr VfsCall kChanges[] = {VfsCall::kWrite, VfsCall::kTruncate, VfsCall::kSync, VfsCall::kDelete};
  if (before_change_ && std::find(std::begin(kChanges), std::end(kChanges), call) != std::end(kChanges))
    before_change_();
  const std::lock_guard lock(mutex_);
  *code = code_of(call, fault_);
  if (*code == 0 || (one_kind_ && (call != only_ || !file.ends_with(file_ends_)))) return false;
  if (++calls_ != number_) return false;
  failed_ = true;
  return true;
}

int FaultVfs::written_of(int size) const {
  const std::lock_guard lock(mutex_);
  return fault_ == Fault::kShortWrite ? size / 2 : 0;
}

void FaultVfs::log(bool on) {
  const std::lock_guard lock(mutex_);
  logging_ = on;
  if (on) {
    events_.clear();
    before_.clear();
  }
}
void FaultVfs::note(int64_t number) {
  add({DiskEvent::kNote, {}, number, {}});
}
std::vector<DiskEvent> FaultVfs::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}
std::map<std::string, std::string> FaultVfs::files_before() const {
  const std::lock_guard lock(mutex_);
  return before_;
}
void FaultVfs::add(DiskEvent event) {
  const std::lock_guard lock(mutex_);
  if (logging_) events_.push_back(std::move(event));
}
void FaultVfs::seen(const std::string& file) {
  const std::lock_guard lock(mutex_);
  if (!logging_ || before_.contains(file)) return;
  std::ifstream in(file, std::ios::binary);
  if (in) before_[file] = std::string(std::istreambuf_iterator<char>(in), {});
}

namespace {

// A file of the simulated disk: its durable bytes, and the writes since its last sync.
struct Played {
  std::string durable;
  std::vector<const DiskEvent*> since;
  bool named = true;  // whether the file's entry in its folder is durable
  bool gone = false;  // whether the file was deleted; the deletion may not be durable
};

void apply(std::string* bytes, const DiskEvent& event) {
  const auto at = static_cast<size_t>(event.offset);
  if (event.kind == DiskEvent::kTruncate) {
    bytes->resize(at);
    return;
  }
  if (bytes->size() < at + event.bytes.size()) bytes->resize(at + event.bytes.size());
  bytes->replace(at, event.bytes.size(), event.bytes);
}

void apply_torn(std::string* bytes, const DiskEvent& event, std::mt19937_64& random) {
  constexpr size_t kSector = 512;
  if (event.kind == DiskEvent::kTruncate) return apply(bytes, event);
  for (size_t at = 0; at < event.bytes.size(); at += kSector) {
    if (random() % 2 == 0) continue;
    apply(bytes, {DiskEvent::kWrite, {}, event.offset + static_cast<int64_t>(at), event.bytes.substr(at, kSector)});
  }
}

std::optional<std::string> left_of(const Played& file, std::mt19937_64& random) {
  if ((file.gone || !file.named) && random() % 2 == 0) return std::nullopt;
  std::string bytes = file.durable;
  const uint64_t model = random() % 3;
  const size_t whole = model == 1 && !file.since.empty() ? random() % file.since.size() : 0;
  for (size_t i = 0; i < file.since.size(); ++i) {
    if (model == 0) break;
    if (model == 1 && i < whole) apply(&bytes, *file.since[i]);
    if ((model == 1 && i == whole) || model == 2) apply_torn(&bytes, *file.since[i], random);
  }
  return bytes;
}

}  // namespace

std::map<std::string, std::string> after_power_cut(const std::map<std::string, std::string>& before,
                                                   const std::vector<DiskEvent>& events, size_t count,
                                                   std::mt19937_64& random) {
  std::map<std::string, Played> files;
  for (const auto& [name, bytes] : before) files[name] = {.durable = bytes, .since = {}};
  for (size_t i = 0; i < count; ++i) {
    const DiskEvent& event = events[i];
    if (event.kind == DiskEvent::kNote) continue;
    const auto [at, made] = files.try_emplace(event.file);
    Played& file = at->second;
    if (made) file.named = false;
    if (event.kind == DiskEvent::kDelete) {
      file.gone = true;
      if (event.offset != 0) files.erase(at);
      continue;
    }
    if (file.gone) file = {.durable = {}, .since = {}, .named = false};
    file.since.push_back(&event);
    if (event.kind != DiskEvent::kSync) continue;
    file.since.pop_back();
    for (const DiskEvent* written : file.since) apply(&file.durable, *written);
    file.since.clear();
    file.named = true;
  }
  std::map<std::string, std::string> left;
  for (const auto& [name, file] : files)
    if (auto bytes = left_of(file, random)) left[name] = *std::move(bytes);
  return left;
}

}  // namespace wl::testing
