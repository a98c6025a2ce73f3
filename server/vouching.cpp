#include "server/vouching.h"

#include <sys/resource.h>
#include <unistd.h>

#include "spdlog/spdlog.h"

namespace wl {
namespace {

constexpr int kNice = 19, kAtOnce = 100;

}  // namespace

Vouching::Vouching(Parts parts) : parts_(std::move(parts)), thread_([this] { serve(); }) {}

Vouching::~Vouching() {
  {
    const std::lock_guard lock(mutex_);  // for who is about to wait
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Vouching::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void Vouching::serve() {
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()),
                    kNice);  // of this thread, and of compilers that it starts
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || woken_; });
      if (stopping_) return;
      woken_ = false;
    }
    sign_anew();
    if (parts_.build) look_through();
  }
}

// One that is cut short is begun again by the next process.
void Vouching::sign_anew() {
  const auto should = parts_.store->should_sign_anew();
  if (!should.ok() || !*should) return;
  const auto generation = parts_.store->new_generation();
  if (!generation.ok()) return;
  for (int64_t seen = 0; !stopping_;) {
    const auto records = parts_.store->served_records(seen, kAtOnce);
    if (!records.ok()) return;
    if (records->empty()) break;
    for (const NumberedRecord& record : *records) {
      if (stopping_) return;
      seen = record.id;
      const auto row = parts_.store->record_by_digest(record.digest);
      if (!row.ok() || !*row) continue;
      absl::Status done = check_signature((*row)->record, parts_.signers);
      if (absl::IsDataLoss(done)) spdlog::error("{}", std::string(done.message()));
      if (!done.ok()) continue;  // of an older version, or of another coordinator
      done = parts_.store->sign_anew((*row)->record);
      if (!done.ok()) return spdlog::warn("records cannot be signed anew: {}", std::string(done.message()));
      parts_.changed(record.key);
    }
  }
  if (stopping_) return;
  if (const absl::Status done = parts_.store->forget_below(*generation); !done.ok())
    spdlog::warn("what was signed before cannot be told from what is right: {}", std::string(done.message()));
}

void Vouching::look_through() {
  for (;;) {
    const auto records = parts_.store->served_records(seen_, kAtOnce);
    if (!records.ok() || records->empty()) return;
    for (const NumberedRecord& record : *records) {
      if (stopping_) return;
      if (const auto row = parts_.store->record_by_digest(record.digest); row.ok() && *row) vouch((*row)->record);
      seen_ = record.id;
    }
  }
}

void Vouching::vouch(const KernelRecord& record) {
  const std::string compiler = compiler_of(record.environment, record.source);
  if (!record.built_by.empty() || record.object_sha256.empty() || not_here_.contains(compiler)) return;
  const Built made = parts_.build(record.source, stopping_);
  if (made.compiler != compiler) not_here_.insert(compiler);
  if (made.object_sha256 != record.object_sha256) {
    if (!made.object_sha256.empty() && made.compiler == compiler)
      spdlog::warn(
          "audit: record {} of key {}, measured by {}: this coordinator builds another object by the same "
          "compiler ({}), so clients do not use it; revoke that worker",
          record.digest, record.key, record.measured_by, compiler);
    return;
  }
  KernelRecord vouched = record;
  parts_.signing->sign_as_built(&vouched);
  if (const absl::Status stored = parts_.store->put_words(vouched); !stored.ok())
    spdlog::warn("record {}: that it was built here could not be stored: {}", record.digest,
                 std::string(stored.message()));
  parts_.changed(record.key);
}

}  // namespace wl
