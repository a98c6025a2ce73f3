#include "client/remote/seen.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>

#include "absl/strings/numbers.h"
#include "client/program/files.h"
#include "compiler/base/sha256.h"
#include "files/read.h"

namespace wl {
namespace {

constexpr size_t kMostFile = 64 << 20, kShort = 16;
constexpr size_t kSpareLines = 4096;  // the file is rewritten once it has 2 * (number of scopes) + kSpareLines lines

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string of_key(const std::string& signer, const std::string& key) {
  return cat(signer, " ", key);
}

std::string line_of(const std::string& scope, int64_t generation) {
  return cat(scope, " ", generation, "\n");
}

std::string days_ago(int64_t ms) {
  return cat((now_ms() - ms) / kDayMs, " days ago");
}

}  // namespace

SeenGenerations::SeenGenerations(std::string file, std::string_view as)
    : file_(std::move(file)), as_(sha256_hex(as).substr(0, kShort)) {
  if (!file_.empty()) read();
}

std::shared_ptr<SeenGenerations> SeenGenerations::of_user(std::string_view as) {
  const std::string folder = user_cache_folder();
  if (!folder.empty() && !make_folders(folder).ok()) return std::make_shared<SeenGenerations>(std::string(), as);
  return std::make_shared<SeenGenerations>(folder.empty() ? "" : folder + "/generations", as);
}

// Reads the file of generations. Leaves out lines that are malformed, such as one that a crash cut off.
void SeenGenerations::read() {
  const absl::StatusOr<std::string> text = read_file(file_, kMostFile);
  if (!text.ok()) return;
  std::istringstream in(*text);
  std::string line;
  size_t lines = 0;
  while (std::getline(in, line)) {
    ++lines;
    const size_t space = line.rfind(' ');
    int64_t generation = 0;
    if (space == std::string::npos || !absl::SimpleAtoi(line.substr(space + 1), &generation)) continue;
    int64_t& known = floors_[line.substr(0, space)];
    known = std::max(known, generation);
  }
  if (lines < 2 * floors_.size() + kSpareLines) return;
  std::string all;
  for (const auto& [scope, generation] : floors_) all += line_of(scope, generation);
  // Lines that another process appends between the reading and the replacement of the file may be lost. Their
  // generations are remembered again when records with them are seen again.
  const std::string made = cat(file_, ".", getpid());
  if (!write_file(made, all).ok() || std::rename(made.c_str(), file_.c_str()) != 0) unlink(made.c_str());
}

bool SeenGenerations::has_heard() const {
  const std::lock_guard lock(mutex_);
  return heard_;
}

std::string SeenGenerations::raise(const std::string& scope, int64_t generation) {
  int64_t& known = floors_[scope];
  if (generation <= known) return "";
  known = generation;
  return line_of(scope, generation);
}

// Appends all lines to the file in one call of write(), so that lines of several processes do not mix.
void SeenGenerations::write(const std::string& lines) {
  if (file_.empty() || lines.empty()) return;
  const int fd = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  (void)!::write(fd, lines.data(), lines.size());
  ::close(fd);
}

void SeenGenerations::hear(const std::vector<StoreHead>& heads) {
  const std::lock_guard lock(mutex_);
  heard_ = true;
  for (const StoreHead& head : heads) {
    int64_t& said = said_[head.signed_by];
    said = std::max(said, head.unix_ms);
    std::string lines = raise(head.signed_by, head.oldest);
    for (const StoreHead::Floor& floor : head.floors)
      lines += raise(of_key(head.signed_by, floor.key), floor.generation);
    write(lines);
  }
}

absl::Status SeenGenerations::admit(const KernelRecord& record, const std::vector<Signer>& signers,
                                    const std::string& where) {
  const std::lock_guard lock(mutex_);
  const std::string what = cat("the record ", record.digest, " of key ", record.key);
  const Signer* signer = find_signer(signers, record.signed_by);
  const auto said = said_.find(record.signed_by);
  if (signer == nullptr || said == said_.end()) {
    return absl::PermissionDeniedError(cat(what, ": ", where, " does not say what its signer, ", record.signed_by,
                                           ", says of old records; where that ",
                                           "is another coordinator, it asks it within ten minutes of reaching it"));
  }
  if (now_ms() - said->second > signer->head_days * kDayMs) {
    return absl::PermissionDeniedError(cat(what, ": what its signer ", signer->name, " says of old records was said ",
                                           days_ago(said->second), ", and ", "counts for ", signer->head_days, "; let ",
                                           where, " reach it, or write after its name in the file of ",
                                           "--signers for how many days it counts, such as 365d"));
  }
  const std::string key = of_key(record.signed_by, record.key);
  const std::string scope = cat(key, " ", sha256_hex(as_ + record.environment).substr(0, kShort));
  for (const std::string& one : {record.signed_by, key, scope}) {
    const auto floor = floors_.find(one);
    if (floor == floors_.end() || record.generation >= floor->second) continue;
    return absl::PermissionDeniedError(
        cat(what, " is an old one (generation ", record.generation,
            "): ", one == scope ? "this user has seen a later one (" : "its signer has said that none is right below (",
            floor->second,
            "). It was replaced, revoked or invalidated since, and is given out all the same; run the "
            "command again, and if that does not help tell whoever runs ",
            where));
  }
  write(raise(scope, record.generation));
  return absl::OkStatus();
}

}  // namespace wl
