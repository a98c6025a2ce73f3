// The C library for C++17 and later: the functions of warploom.h as classes that own their handles, with strings and
// exceptions. It is a header alone and has no ABI of its own.
//
//     warploom::Model model("tuned");
//     model.load_weights("model.onnx");
//     warploom::Executor executor(model);
//     executor.bind_input(0, x);
//     executor.bind_output(0, y);
//     executor.run();
//
// warploom.h describes each function and says which may be called at the same time. Every function may throw
// warploom::Error. The classes are movable. An Executor stays usable after its Model is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "warploom.h"

namespace warploom {

// What every function throws: the code and the message of a warploom_status.
class Error : public std::runtime_error {
 public:
  Error(warploom_code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  warploom_code code() const noexcept { return code_; }

 private:
  warploom_code code_;
};

// Throws the status that a function of warploom.h returned as an Error and frees it; does nothing for NULL.
inline void check(warploom_status* status) {
  if (status == nullptr) return;
  const std::unique_ptr<warploom_status, void (*)(warploom_status*)> owner(status, warploom_status_free);
  throw Error(warploom_status_code(status), warploom_status_message(status));
}

// An input, output or weight: a copy of warploom_tensor.
struct Tensor {
  std::string name;
  warploom_dtype dtype;
  std::vector<std::int64_t> shape;
  std::size_t bytes;
};

// A loaded bundle with its weights (warploom_model).
class Model {
 public:
  // Loads the bundle in a folder, as warploom_model_load() does.
  explicit Model(const std::string& folder) : model_(nullptr, warploom_model_free) {
    warploom_model* model = nullptr;
    check(warploom_model_load(folder.c_str(), nullptr, &model));
    model_.reset(model);
  }

  std::size_t sizes() const { return warploom_model_sizes(get()); }
  std::string size_text(std::size_t size) const {
    const char* text = warploom_model_size_text(get(), size);
    if (text == nullptr) throw Error(WARPLOOM_INVALID_ARGUMENT, "there is no size " + std::to_string(size));
    return text;
  }
  std::vector<Tensor> tensors(warploom_kind kind, std::size_t size = 0) const {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < warploom_model_count(get(), kind); ++i) {
      warploom_tensor tensor = {};
      tensor.struct_size = sizeof tensor;
      check(warploom_model_tensor(get(), size, kind, i, &tensor));
      tensors.push_back({tensor.name, tensor.dtype, {tensor.shape, tensor.shape + tensor.rank}, tensor.bytes});
    }
    return tensors;
  }
  std::vector<Tensor> inputs(std::size_t size = 0) const { return tensors(WARPLOOM_INPUT, size); }
  std::vector<Tensor> outputs(std::size_t size = 0) const { return tensors(WARPLOOM_OUTPUT, size); }
  std::vector<Tensor> weights() const { return tensors(WARPLOOM_WEIGHT); }
  // Returns the size whose inputs have these shapes, in the order of inputs(). A model of a single size returns 0 for
  // any shapes of the right ranks.
  std::size_t size_of(const std::vector<std::vector<std::int64_t>>& shapes) const {
    const std::vector<Tensor> expected = inputs();
    std::vector<const std::int64_t*> extents;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (i >= shapes.size() || shapes[i].size() != expected[i].shape.size())
        throw Error(WARPLOOM_INVALID_ARGUMENT,
                    "input " + expected[i].name + " has " + std::to_string(expected[i].shape.size()) + " dimensions");
      extents.push_back(shapes[i].data());
    }
    std::size_t size = 0;
    check(warploom_model_size_of(get(), extents.data(), &size));
    return size;
  }

  void set_weight(const std::string& name, const void* data, std::size_t bytes) {
    check(warploom_model_set_weight(get(), name.c_str(), data, bytes));
  }
  void load_weights(const std::string& path) { check(warploom_model_load_weights(get(), path.c_str())); }
  // Says how the kernels were chosen, and whether the client that loaded them has newer ones by now.
  warploom_kernels kernels() const {
    warploom_kernels kernels = {};
    kernels.struct_size = sizeof kernels;
    check(warploom_model_kernels(get(), &kernels));
    return kernels;
  }
  void generate_weights(std::uint64_t seed) { check(warploom_model_generate_weights(get(), seed)); }

  warploom_model* get() const { return model_.get(); }

 private:
  friend class Client;
  explicit Model(warploom_model* model) : model_(model, warploom_model_free) {}
  std::unique_ptr<warploom_model, void (*)(warploom_model*)> model_;
};

struct ExecutorOptions {
  int threads = 0;          // limit of CPU threads, the calling one included; 0: as many as the kernels were tuned with
  bool pin = false;         // whether every thread is pinned to a CPU of its own; for benchmarks
  std::string device = {};  // reserved for the name of a GPU; ignored, as in warploom_executor_options
};

// What one thread needs to run a model at a size (warploom_executor).
class Executor {
 public:
  explicit Executor(Model& model, std::size_t size = 0, const ExecutorOptions& options = {})
      : executor_(nullptr, warploom_executor_free) {
    warploom_executor_options given = {};
    given.struct_size = sizeof given;
    given.threads = options.threads;
    given.pin = options.pin ? 1 : 0;
    given.device = options.device.empty() ? nullptr : options.device.c_str();
    warploom_executor* executor = nullptr;
    check(warploom_executor_create(model.get(), size, &given, &executor));
    executor_.reset(executor);
  }

  warploom_memory memory() const {
    warploom_memory memory = {};
    memory.struct_size = sizeof memory;
    check(warploom_executor_memory(get(), &memory));
    return memory;
  }
  int threads() const { return warploom_executor_threads(get()); }
  void* input(std::size_t index) { return warploom_executor_input(get(), index); }
  const void* output(std::size_t index) const { return warploom_executor_output(get(), index); }
  void bind_input(std::size_t index, const void* data) { check(warploom_executor_bind_input(get(), index, data)); }
  void bind_output(std::size_t index, void* data) { check(warploom_executor_bind_output(get(), index, data)); }
  void run() { check(warploom_executor_run(get())); }
  // The functions for device memory, for models whose kernels run on a GPU.
  void bind_device_input(std::size_t index, const void* data) {
    check(warploom_executor_bind_device_input(get(), index, data));
  }
  void bind_device_output(std::size_t index, void* data) {
    check(warploom_executor_bind_device_output(get(), index, data));
  }
  void launch(void* stream) { check(warploom_executor_launch(get(), stream)); }

  warploom_executor* get() const { return executor_.get(); }

 private:
  std::unique_ptr<warploom_executor, void (*)(warploom_executor*)> executor_;
};

// The members of warploom_client_options, with defaults. Empty texts become NULL, so no temporary cache can be asked
// for.
struct ClientOptions {
  std::string server = {};                   // the coordinator's address; empty: only the cache is searched
  std::string cache = {};                    // folder of the cache; empty: in the user's cache folder
  std::uint64_t cache_bytes = 0;             // size limit of the cache; 0: 4 GiB
  std::string ca = {}, cert = {}, key = {};  // PEM files for TLS
  std::string token_file = {}, token = {};   // a token, in a file or as text; empty: none
  std::string signers = {};                  // file of trusted public keys; empty: signatures are not checked
  std::int64_t fresh_seconds = 0;            // age at which bundles are requested again; 0: a day; -1: never
  bool trust_workers = false;                // whether to use kernels for which only their workers vouch
  bool no_counts = false;                    // whether the coordinator is not told how often and how long kernels run
};

// The members of warploom_request, with defaults. Empty texts become NULL.
struct Request {
  std::string graph = {};         // path of an .onnx or .graph file; empty if `key` is given
  std::string key = {};           // key of one kernel in the coordinator's store
  std::string target = "cpu";     // target, as for `warploom tune --target`
  std::string bind = {};          // extents of symbolic dimensions: "batch=8,n=64"
  std::string weights = {};       // for a .graph file: names of the inputs that are weights, "w,b"
  std::int64_t trials = 0;        // limit of kernels tried for each distinct group of operations; 0: no search
  std::int64_t deadline_ms = -1;  // how long load() may wait for the coordinator; -1: without limit
  std::string fallback = {};      // folder of a bundle to load instead of an error; empty: none
  bool allow_tf32 = false;        // whether products of f32 may round factors to tf32
  warploom_tune tune = WARPLOOM_TUNE_WAIT;  // what load() waits for if `trials` allow a search
};

// Loads models from a coordinator, with a cache (warploom_client).
class Client {
 public:
  explicit Client(const ClientOptions& options = {}) : client_(nullptr, warploom_client_free) {
    warploom_client_options given = {};
    given.struct_size = sizeof given;
    given.server = or_null(options.server);
    given.cache = or_null(options.cache);
    given.cache_bytes = options.cache_bytes;
    given.ca = or_null(options.ca);
    given.cert = or_null(options.cert);
    given.key = or_null(options.key);
    given.token_file = or_null(options.token_file);
    given.token = or_null(options.token);
    given.signers = or_null(options.signers);
    given.fresh_seconds = options.fresh_seconds;
    given.trust_workers = options.trust_workers ? 1 : 0;
    given.no_counts = options.no_counts ? 1 : 0;
    warploom_client* client = nullptr;
    check(warploom_client_open(&given, &client));
    client_.reset(client);
  }

  // Loads the model of a request. `source`, unless null, receives where the model came from.
  Model load(const Request& request, warploom_source* source = nullptr) {
    warploom_request given = {};
    given.struct_size = sizeof given;
    given.graph = or_null(request.graph);
    given.key = or_null(request.key);
    given.target = request.target.c_str();
    given.bind = or_null(request.bind);
    given.weights = or_null(request.weights);
    given.trials = request.trials;
    given.deadline_ms = request.deadline_ms;
    given.fallback = or_null(request.fallback);
    given.allow_tf32 = request.allow_tf32 ? 1 : 0;
    given.tune = request.tune;
    warploom_model* model = nullptr;
    check(warploom_client_load(get(), &given, &model, source));
    return Model(model);
  }

  warploom_client* get() const { return client_.get(); }

 private:
  static const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
  std::unique_ptr<warploom_client, void (*)(warploom_client*)> client_;
};

}  // namespace warploom
