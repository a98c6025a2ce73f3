// A program that serves from several threads takes over one better bundle after another, without a pause and without a
// failed call.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <semaphore>
#include <thread>
#include <vector>

#include "client/fetch/client.h"
#include "client/program/bundle.h"
#include "client/program/model.h"
#include "client/program/replica.h"
#include "tests/unit/client/programs.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

constexpr int kBundles = 100, kThreads = 4, kBodies = 4;
constexpr size_t kColumns = 32, kElements = 6 * kColumns;

class Takeover : public ProgramsTest {
 protected:
  void SetUp() override {
    // The same sums, as compilers may order and round them.
    for (const char* body : {"y[i] = x[i] + w[i];", "y[i] = w[i] + x[i];", "y[i] = (float)((double)x[i] + w[i]);",
                             "y[i] = 2 * (0.5f * x[i] + 0.5f * w[i]);"}) {
      programs_.push_back(program_of(body));
      NEEDS_COMPILER(programs_.back());
    }
    request_.graph = root_ + "/g.graph";
    request_.trials = 8;
    request_.tune = Tune::kLater;
    ASSERT_TRUE(write_file(request_.graph, programs_[0].graph_text).ok());
  }
  // Returns a bundle that is not that of another number.
  Program numbered(int number) const {
    Program program = programs_[static_cast<size_t>(number % kBodies)];
    program.kernels[0].plan = cat("plan ", number);
    return program;
  }
  // Every bundle is old at once, so each load asks for a better one, and goes on with what there is. An answer arrives
  // when the test releases it.
  ClientOptions options() {
    ClientOptions options;
    options.cache.folder = root_ + "/cache";
    options.pause = std::chrono::milliseconds(0);
    options.fresh = std::chrono::seconds(0);
    options.ask = [this](const BundleRequest& request, const std::string& folder, const std::stop_token& stop) {
      if (request.tune == Tune::kNow) return write_bundle(folder, numbered(0), "{}");
      ++asked_;
      const std::stop_callback wake(stop, [this] { released_.release(); });
      released_.acquire();
      if (stop.stop_requested()) return absl::Status(absl::CancelledError("stopped"));
      return write_bundle(folder, numbered(++answered_), "{}");
    };
    return options;
  }
  // What one thread does: it loads before every call, and makes its executor anew when it is given another bundle.
  void serve(Client& client, int thread) {
    std::shared_ptr<const LoadedBundle> bundle;
    std::optional<Replica> replica;
    for (int call = 0; !done_; ++call) {
      const auto found = client.load(request_, {});
      if (!found.ok()) return fail(found.status());
      note(found->bundle);
      if (found->bundle != bundle) {
        auto made = executor_of(found->bundle);
        if (!made.ok()) return fail(made.status());
        replica = *std::move(made);
        bundle = found->bundle;
      }
      const float value = static_cast<float>(thread) + static_cast<float>(call % 7);
      auto* const x = static_cast<float*>(replica->data(0));
      const auto* const y = static_cast<const float*>(replica->data(3));
      std::fill_n(x, kElements, value);
      if (const absl::Status run = replica->run(); !run.ok()) return fail(run);
      for (size_t i = 0; i < kElements; ++i)
        if (std::abs(y[i] - (value + 200)) > 1e-4F) return fail(absl::InternalError(cat("y is ", y[i], ", x ", value)));
      ++calls_;
    }
  }
  static absl::StatusOr<Replica> executor_of(const std::shared_ptr<const LoadedBundle>& bundle) {
    ModelOptions one_thread;
    one_thread.threads = 1;
    WL_ASSIGN_OR_RETURN(Model model, Model::of(bundle, one_thread));
    const std::vector<float> weights(kColumns, 100);
    const std::string_view bytes(reinterpret_cast<const char*>(weights.data()), kColumns * sizeof(float));
    WL_RETURN_IF_ERROR(model.set_weight("w", DType::f32, {kColumns}, bytes));
    ExecutorOptions options;
    options.threads = 1;
    options.pin = false;
    return model.replica(0, options);
  }
  void fail(const absl::Status& status) {
    ADD_FAILURE() << status;
    ++failed_;
  }
  // Remembers every bundle that a thread was given.
  void note(const std::shared_ptr<const LoadedBundle>& bundle) {
    const std::lock_guard lock(mutex_);
    std::erase_if(given_, [](const auto& one) { return one.expired(); });
    const auto same = [&](const auto& one) { return one.lock() == bundle; };
    if (std::none_of(given_.begin(), given_.end(), same)) given_.push_back(bundle);
  }
  int living() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(
        std::count_if(given_.begin(), given_.end(), [](const auto& one) { return !one.expired(); }));
  }
  // Returns how many entries of the cache somebody holds a lock on.
  int locked_folders() const {
    int held = 0;
    for (const auto& key : fs::directory_iterator(root_ + "/cache"))
      for (const auto& entry : fs::directory_iterator(key.path())) {
        const int fd = ::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (::flock(fd, LOCK_EX | LOCK_NB) != 0) ++held;
        ::close(fd);
      }
    return held;
  }
  // Returns the plan of the bundle that a call is given now.
  std::string plan_now(Client& client) {
    const auto found = client.load(request_, {});
    found.ok() ? note(found->bundle) : fail(found.status());
    return found.ok() ? found->bundle->first().kernels[0].plan : "";
  }
  // Waits until a condition holds, or a call has failed.
  void await(const auto& condition) const {
    while (!condition() && failed_ == 0) std::this_thread::yield();
  }

  std::vector<Program> programs_;
  BundleRequest request_;
  std::counting_semaphore<> released_{0};
  std::atomic<int> asked_ = 0, answered_ = 0, calls_ = 0, failed_ = 0;
  std::atomic<bool> done_ = false;
  std::mutex mutex_;                                      // guards given_
  std::vector<std::weak_ptr<const LoadedBundle>> given_;  // each bundle that a thread was given and that still lives
};

TEST_F(Takeover, OfAHundredBundlesWhileThreadsServe) {
  auto client = std::make_unique<Client>(options());
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back([&, thread] { serve(*client, thread); });
  int most_alive = 0;
  for (int number = 1; number <= kBundles && failed_ == 0; ++number) {
    // The next bundle has been asked for and is held back: calls go on with the present one meanwhile.
    await([&] { return asked_ >= number; });
    const int before = calls_;
    await([&] { return calls_ >= before + 2 * kThreads; });
    EXPECT_EQ(answered_, number - 1);
    released_.release();
    // Some call is given the new bundle.
    await([&] { return plan_now(*client) == cat("plan ", number); });
    most_alive = std::max(most_alive, living());
  }
  done_ = true;
  threads.clear();
  EXPECT_EQ(failed_, 0);
  EXPECT_EQ(answered_, kBundles);
  // Each thread may hold two bundles while it makes an executor; the client holds one, and one is on its way.
  EXPECT_LE(most_alive, 2 * kThreads + 2);
  await([&] { return asked_ > kBundles; });
  EXPECT_EQ(living(), 1) << "only what the next call is given";
  EXPECT_EQ(locked_folders(), 1);
  client.reset();
  EXPECT_EQ(living(), 0);
  EXPECT_EQ(locked_folders(), 0);
}

}  // namespace
}  // namespace wl
