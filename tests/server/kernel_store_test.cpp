// Listing records over the service: pages neither skip nor repeat a record.
#include <gtest/gtest.h>

#include <set>

#include "compiler/base/sha256.h"
#include "server/store/store.h"
#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

constexpr int kRecords = 7;

// Several records with times in the same millisecond.
void fill(const std::string& file) {
  {
    auto store = Store::open({.file = file});
    ASSERT_TRUE(store.ok()) << store.status();
    JobRow job;
    job.request_id = "r";
    job = *(*store)->create_job(job);
    const int64_t search = (*store)->open_search(job.id, {0, sha256_hex("k"), "gcc", "s", 0, 0}, false)->id;
    for (int i = 0; i < kRecords; ++i) {
      KernelRecord record;
      record.key = sha256_hex(cat(i));
      record.environment = "gcc";
      record.device.target = "cpu:avx2";
      record.source.entry = "wl_k";
      record.digest = record_digest(record);
      ASSERT_TRUE((*store)->promote(record, search).ok());
    }
    JobRow end = job;
    end.state = JobState::kCancelled;
    ASSERT_TRUE((*store)->finish_job(end, "").ok());
  }
  run_in(file, "UPDATE records SET created_ms = 1000");
}

TEST(KernelStore, PagesHaveEveryRecordOnce) {
  Scratch scratch;
  fill(scratch.path("a.db"));
  Service service(scratch.path("a.db"));
  for (int size = 1; size <= kRecords + 1; ++size) {
    std::set<std::string> keys;
    v1::ListKernelsRequest request;
    request.set_page_size(size);
    do {
      grpc::ClientContext context;
      v1::ListKernelsResponse page;
      ASSERT_TRUE(service.kernels->ListKernels(&context, request, &page).ok());
      for (const auto& kernel : page.kernels()) EXPECT_TRUE(keys.insert(kernel.key()).second) << kernel.key();
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    EXPECT_EQ(keys.size(), static_cast<size_t>(kRecords)) << "pages of " << size;
  }
}

TEST(KernelStore, ListsThoseWhoseKeyBeginsSo) {
  Scratch scratch;
  fill(scratch.path("a.db"));
  Service service(scratch.path("a.db"));
  const auto keys_of = [&](const std::string& prefix) {
    grpc::ClientContext context;
    v1::ListKernelsRequest request;
    request.set_key_prefix(prefix);
    v1::ListKernelsResponse page;
    EXPECT_TRUE(service.kernels->ListKernels(&context, request, &page).ok()) << prefix;
    std::set<std::string> keys;
    for (const auto& kernel : page.kernels()) keys.insert(kernel.key());
    return keys;
  };
  const std::set<std::string> all = keys_of("");
  for (const std::string& key : all)
    for (const size_t digits : {1, 2, 7, 8, 63, 64}) {
      const std::string prefix = key.substr(0, digits);
      std::set<std::string> expected;
      for (const std::string& one : all)
        if (one.starts_with(prefix)) expected.insert(one);
      EXPECT_EQ(keys_of(prefix), expected) << prefix;
    }
  for (const std::string& wrong : {std::string("xyz"), std::string("ABC"), std::string("12%"), std::string(65, 'a')}) {
    grpc::ClientContext context;
    v1::ListKernelsRequest request;
    request.set_key_prefix(wrong);
    v1::ListKernelsResponse page;
    EXPECT_EQ(service.kernels->ListKernels(&context, request, &page).error_code(), grpc::INVALID_ARGUMENT) << wrong;
  }
}

TEST(KernelStore, TokensThatItDidNotGiveAreRefused) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  for (const char* token : {"x", "12", "12.", "-1.a", ".a", "1e9.a"}) {
    grpc::ClientContext context;
    v1::ListKernelsRequest request;
    request.set_page_token(token);
    v1::ListKernelsResponse page;
    EXPECT_EQ(service.kernels->ListKernels(&context, request, &page).error_code(), grpc::INVALID_ARGUMENT) << token;
  }
}

}  // namespace
}  // namespace wl
