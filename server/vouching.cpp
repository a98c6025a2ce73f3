#include "server/vouching.h"

#include "server/engine/bounds/turns.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

constexpr int kNice = 19, kVouchedAtOnce = 100;

}  // namespace

Vouching::Vouching(Parts parts) : parts_(std::move(parts)), thread_([this] { serve(); }) {}

Vouching::~Vouching() {
  {
    // Without the lock, serve() could miss the notification between its test of stopping_ and its wait.
    const std::lock_guard lock(mutex_);
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
  give_way(kNice);  // lowers the priority of this thread and of the compilers that it starts
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

bool Vouching::go_through(int64_t* seen, const std::function<absl::Status(const KernelRecord&)>& visit) {
  for (;;) {
    const auto records = parts_.store->served_records(*seen, kVouchedAtOnce);
    if (!records.ok()) return false;
    if (records->empty()) return true;
    for (const NumberedRecord& record : *records) {
      if (stopping_) return false;
      const auto row = parts_.store->record_by_digest(record.digest);
      if (row.ok() && *row && !visit((*row)->record).ok()) return false;
      *seen = record.id;
    }
  }
}

// Signs all served records again if the store asks for it (should_sign_anew()). If this process ends before the last
// record is signed, the next process begins again with the first record.
void Vouching::sign_anew() {
  const auto should = parts_.store->should_sign_anew();
  if (!should.ok() || !*should) return;
  const auto generation = parts_.store->new_generation();
  if (!generation.ok()) return;
  int64_t seen = 0;
  absl::Status done;
  const bool all = go_through(&seen, [&](const KernelRecord& record) {
    const absl::Status trusted = check_signature(record, parts_.signers);
    if (absl::IsDataLoss(trusted)) spdlog::error("{}", std::string(trusted.message()));
    // The record is unsigned (from an older version), or another coordinator has signed it, so it is left as it is.
    if (!trusted.ok()) return absl::OkStatus();
    done = parts_.store->sign_anew(record);
    if (done.ok()) parts_.changed(record.key);
    return done;
  });
  if (all && !stopping_) done = parts_.store->forget_below(*generation);
  if (!done.ok())
    spdlog::warn("what was signed before cannot be told from what is right: {}", std::string(done.message()));
}

void Vouching::look_through() {
  (void)go_through(&seen_, [this](const KernelRecord& record) {
    vouch(record);
    return absl::OkStatus();
  });
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
