// A coordinator whose answers a test sets, including answers that a real coordinator never gives.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/cli/cli.h"
#include "client/cli/line/parse.h"
#include "client/cli/line/run_cli.h"
#include "compiler/base/sha256.h"
#include "proto/wire.h"
#include "tests/unit/scratch.h"
#include "warploom/v1/admin.grpc.pb.h"
#include "warploom/v1/blob.grpc.pb.h"
#include "warploom/v1/kernel_store.grpc.pb.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {

// A machine that only describes itself: every operation fails, except build() if `built` is set.
class NoMachine final : public Local {
 public:
  absl::StatusOr<std::shared_ptr<grpc::Channel>> open(const std::string&) override { return error(); }
  const Device& device() override { return here; }
  absl::StatusOr<Device> device_for(const std::string&, bool) override { return error(); }
  std::vector<int64_t> panels(const std::string&, bool) override { return {64, 32, 48}; }
  absl::Status start_worker(bool) override { return error(); }
  absl::StatusOr<std::string> assemble(const Source&) override { return error(); }
  std::string compiler_for(const Source& source) override { return compiler_of(here.compiler_versions, source); }
  absl::StatusOr<std::string> build(const Source&) override {
    return built.empty() ? absl::StatusOr<std::string>(error()) : built;
  }
  absl::StatusOr<std::vector<std::string>> flags_of(const std::string&) override { return error(); }
  absl::StatusOr<Limits> limits_of(const Device&) override { return error(); }
  std::vector<TargetRow> targets() override { return {}; }
  Gpus gpus() override { return {}; }

  std::string built;
  Device here;

 private:
  static absl::Status error() { return absl::InternalError("this machine is not to be used"); }
};

struct FakeTuning final : v1::TuningService::Service {
  v1::Job job;                       // the answer of CreateTuningJob and CancelJob
  v1::CreateTuningJobRequest asked;  // the latest request of CreateTuningJob
  std::function<grpc::Status(grpc::ServerContext*, grpc::ServerWriter<v1::Job>*)> watch;
  std::vector<v1::InspectResponse> parts;  // the answer of Inspect
  std::atomic<int> watches = 0, cancels = 0;
  grpc::Status cancelled;  // the status of CancelJob

  grpc::Status CreateTuningJob(grpc::ServerContext*, const v1::CreateTuningJobRequest* request, v1::Job* out) override {
    asked = *request;
    *out = job;
    return grpc::Status::OK;
  }
  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest*, v1::Job* out) override {
    ++cancels;
    cancels.notify_all();
    *out = job;
    return cancelled;
  }
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest*,
                        grpc::ServerWriter<v1::Job>* writer) override {
    ++watches;
    return watch(context, writer);
  }
  grpc::Status Inspect(grpc::ServerContext*, const v1::InspectRequest*,
                       grpc::ServerWriter<v1::InspectResponse>* writer) override {
    for (const v1::InspectResponse& part : parts)
      if (!writer->Write(part)) return grpc::Status::CANCELLED;
    return grpc::Status::OK;
  }
};

struct FakeKernels final : v1::KernelStore::Service {
  v1::KernelRecord record;  // the answer to every GetKernel and BatchGetKernels request
  grpc::Status GetKernel(grpc::ServerContext*, const v1::GetKernelRequest*, v1::KernelRecord* out) override {
    *out = record;
    return grpc::Status::OK;
  }
  grpc::Status BatchGetKernels(grpc::ServerContext*, const v1::BatchGetKernelsRequest* request,
                               v1::BatchGetKernelsResponse* out) override {
    for (int i = 0; i < request->items_size(); ++i) *out->add_items()->mutable_record() = record;
    return grpc::Status::OK;
  }
};

struct FakeBlobs final : v1::BlobStore::Service {
  std::string bytes = "an object";
  bool drips = false;  // whether Download first sends a byte every 5 ms until the caller cancels the download
  grpc::Status Download(grpc::ServerContext* context, const v1::DownloadRequest*,
                        grpc::ServerWriter<v1::DownloadResponse>* writer) override {
    v1::DownloadResponse chunk;
    chunk.set_data("x");
    while (drips && !context->IsCancelled() && writer->Write(chunk))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    chunk.set_data(bytes);
    writer->Write(chunk);
    return grpc::Status::OK;
  }
};

struct FakeAdmin final : v1::Admin::Service {
  std::vector<std::string> calls;
  v1::ServerInfo info;
  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*, v1::ServerInfo* out) override {
    *out = info;
    return grpc::Status::OK;
  }
  grpc::Status Drain(grpc::ServerContext*, const v1::DrainRequest*, v1::DrainResponse*) override {
    calls.push_back("drain");
    return grpc::Status::OK;
  }
  grpc::Status Undrain(grpc::ServerContext*, const v1::UndrainRequest*, v1::UndrainResponse*) override {
    calls.push_back("undrain");
    return grpc::Status::OK;
  }
};

class FakeCoordinator : public testing::Test {
 protected:
  FakeCoordinator() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&tuning_);
    builder.RegisterService(&kernels_);
    builder.RegisterService(&blobs_);
    builder.RegisterService(&admin_);
    server_ = builder.BuildAndStart();
  }
  ~FakeCoordinator() override {
    ++tuning_.cancels;  // ends the WatchJob calls that wait until the job is cancelled
    tuning_.cancels.notify_all();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  std::string path(const std::string& name) const { return scratch_.path(name); }

  // Runs `warploom WORDS... --server ADDRESS` and returns its exit code. Leaves stderr in said_ and stdout in printed_.
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "warploom");
    words.insert(words.end(), {"--server", address_});
    std::vector<const char*> arguments;
    for (const std::string& word : words) arguments.push_back(word.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    auto parsed = parse_options(static_cast<int>(arguments.size()), arguments.data());
    const int* refused = std::get_if<int>(&parsed);
    const int code = refused ? *refused : run_cli(std::get<Options>(std::move(parsed)), machine_);
    said_ = testing::internal::GetCapturedStderr();
    printed_ = testing::internal::GetCapturedStdout();
    return code;
  }

  // Returns the relative paths of all files below root_, so that a test can check which files were written.
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_))
      if (entry.is_regular_file()) found.push_back(entry.path().lexically_relative(root_).string());
    return found;
  }

  static KernelRecord right_record() {
    KernelRecord record;
    record.key = std::string(64, 'a');
    record.environment = "gcc 12";
    record.device.target = "cpu:avx2";
    record.graph = "graph {\n  %0 = input \"x\" : f32[4] normal(0,1)\n  %1 = exp %0 : f32[4]\n  output \"y\" %1\n}\n";
    record.plan = "plan 1";
    record.problem.key = record.key;
    record.problem.buffers = {{"x", DType::f32, {4}, /*output=*/false, {}, 0},
                              {"y", DType::f32, {4}, /*output=*/true, {}, 0}};
    record.source.entry = "wl_k";
    record.source.text = "// text\n";
    record.object_sha256 = sha256_hex("an object");
    record.samples_ns = {5};
    record.measured_by = "one/w";
    record.confirmed_by = "two/w";
    record.digest = record_digest(record);
    return record;
  }

  const Scratch scratch_;
  const std::string root_ = scratch_.folder(), address_ = "unix:" + path("s");
  std::string said_, printed_;
  FakeTuning tuning_;
  FakeKernels kernels_;
  FakeBlobs blobs_;
  FakeAdmin admin_;
  NoMachine machine_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace wl
