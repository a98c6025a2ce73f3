// The module warploom._core: a binding of the C library. It exchanges arrays by DLPack, so those of NumPy, PyTorch and
// others are used in place. The interface for users is in warploom/*.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <warploom.hpp>

namespace nb = nanobind;
using nb::literals::operator""_a;  // NOLINT(misc-unused-using-decls): "size"_a

namespace {

using Given = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Taken = nb::ndarray<nb::c_contig, nb::device::cpu>;

struct Element {
  warploom_dtype dtype;
  nb::dlpack::dtype as;
  // The element type in NumPy; for bf16 and 8-bit floats, which NumPy lacks, an unsigned integer of the same size.
  nb::dlpack::dtype in_numpy;
};

constexpr nb::dlpack::dtype type(nb::dlpack::dtype_code code, uint8_t bits) {
  return {static_cast<uint8_t>(code), bits, 1};
}

using Code = nb::dlpack::dtype_code;
constexpr Element element(warploom_dtype dtype, Code code, uint8_t bits, bool numpy = true) {
  return {dtype, type(code, bits), numpy ? type(code, bits) : type(Code::UInt, bits)};
}

// The element types, in the order of their numbers in warploom_dtype, which begin at 1.
constexpr Element kElements[] = {
    element(WARPLOOM_F64, Code::Float, 64),  element(WARPLOOM_F32, Code::Float, 32),
    element(WARPLOOM_F16, Code::Float, 16),  element(WARPLOOM_BF16, Code::Bfloat, 16, false),
    element(WARPLOOM_I64, Code::Int, 64),    element(WARPLOOM_I32, Code::Int, 32),
    element(WARPLOOM_I16, Code::Int, 16),    element(WARPLOOM_I8, Code::Int, 8),
    element(WARPLOOM_U64, Code::UInt, 64),   element(WARPLOOM_U32, Code::UInt, 32),
    element(WARPLOOM_U16, Code::UInt, 16),   element(WARPLOOM_U8, Code::UInt, 8),
    element(WARPLOOM_BOOL, Code::Bool, 8),   element(WARPLOOM_F8E4M3FN, Code::UInt, 8),
    element(WARPLOOM_F8E5M2, Code::UInt, 8),
};

const Element& element_of(const warploom::Tensor& tensor) {
  return kElements[tensor.dtype - 1];
}

std::string type_text(const char* dtype, const std::vector<int64_t>& shape) {
  std::string text = std::string(dtype) + "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

std::string type_text(const warploom::Tensor& tensor) {
  return type_text(warploom_dtype_name(tensor.dtype), tensor.shape);
}

const char* name_of(nb::dlpack::dtype dtype) {
  for (const Element& element : kElements)
    if (element.as == dtype) return warploom_dtype_name(element.dtype);
  return "?";
}

template <typename Array>
void check_array(const Array& array, const warploom::Tensor& tensor) {
  const Element& element = element_of(tensor);
  std::vector<int64_t> shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<int64_t>(array.shape(i)));
  if ((element.as == array.dtype() || element.in_numpy == array.dtype()) && shape == tensor.shape) return;
  throw warploom::Error(WARPLOOM_INVALID_ARGUMENT, tensor.name + " is " + type_text(tensor) + ", the given array is " +
                                                       type_text(name_of(array.dtype()), shape));
}

// An executor, the arrays that are bound to it, and the tensors of the model at the executor's size.
struct Run {
  warploom::Executor executor;
  std::vector<warploom::Tensor> inputs, outputs;
  // The bound arrays, which stay alive because they are kept here.
  std::vector<std::optional<Given>> given;
  std::vector<std::optional<Taken>> taken;
};

const warploom::Tensor& at(const std::vector<warploom::Tensor>& tensors, size_t index, const char* what) {
  if (index >= tensors.size())
    throw warploom::Error(WARPLOOM_INVALID_ARGUMENT, std::string("there is no ") + what + " " + std::to_string(index) +
                                                         "; the model has " + std::to_string(tensors.size()));
  return tensors[index];
}

// Binds a tensor to an array by the function `to`, and keeps the array alive in `held`. Without an array, the
// executor's own memory is used again. Throws if the array's dtype or shape is not the tensor's.
template <typename Array, typename Bind>
void bind(const warploom::Tensor& tensor, std::vector<std::optional<Array>>& held, size_t index,
          std::optional<Array> array, const Bind& to) {
  if (array) check_array(*array, tensor);
  to(array ? array->data() : nullptr);
  held[index] = std::move(array);
}

// Runs with inputs and outputs at these addresses, and unbinds the memory afterwards. The caller guarantees that the
// memory at each address is a contiguous row-major array of the tensor's dtype and shape, which is not checked.
void run_at(Run& run, const std::vector<uintptr_t>& inputs, const std::vector<uintptr_t>& outputs) {
  if (inputs.size() != run.inputs.size() || outputs.size() != run.outputs.size())
    throw warploom::Error(WARPLOOM_INVALID_ARGUMENT,
                          std::to_string(inputs.size()) + " addresses of inputs and " + std::to_string(outputs.size()) +
                              " of outputs; the model has " + std::to_string(run.inputs.size()) + " and " +
                              std::to_string(run.outputs.size()));
  struct Bound {
    warploom::Executor& executor;
    size_t inputs = 0, outputs = 0;
    ~Bound() {
      try {
        while (inputs > 0) executor.bind_input(--inputs, nullptr);
        while (outputs > 0) executor.bind_output(--outputs, nullptr);
        // Unbinding memory that was bound does not fail, so an error can be ignored here.
      } catch (const warploom::Error&) {  // NOLINT(bugprone-empty-catch)
      }
    }
  } bound{run.executor};
  for (const uintptr_t address : inputs)
    run.executor.bind_input(bound.inputs++, reinterpret_cast<const void*>(address));
  for (const uintptr_t address : outputs) run.executor.bind_output(bound.outputs++, reinterpret_cast<void*>(address));
  run.executor.run();
}

nb::object view(const warploom::Tensor& tensor, void* data, nb::handle owner) {
  std::vector<size_t> shape(tensor.shape.begin(), tensor.shape.end());
  return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, element_of(tensor).in_numpy),
                  nb::rv_policy::reference);
}

void define_model(nb::module_& m) {
  nb::class_<warploom::Tensor>(m, "Tensor", "An input, output or weight of a model.")
      .def_ro("name", &warploom::Tensor::name)
      .def_prop_ro("dtype", [](const warploom::Tensor& t) { return warploom_dtype_name(t.dtype); })
      .def_prop_ro("shape", [](const warploom::Tensor& t) { return nb::tuple(nb::cast(t.shape)); })
      .def_ro("nbytes", &warploom::Tensor::bytes)
      .def("__repr__", [](const warploom::Tensor& t) { return t.name + ": " + type_text(t); });
  nb::class_<warploom::Model>(m, "Model")
      .def(nb::init<const std::string&>(), "folder"_a)
      .def_prop_ro("sizes",
                   [](const warploom::Model& model) {
                     std::vector<std::string> sizes;
                     for (size_t i = 0; i < model.sizes(); ++i) sizes.push_back(model.size_text(i));
                     return sizes;
                   })
      .def("inputs", &warploom::Model::inputs, "size"_a = 0)
      .def("outputs", &warploom::Model::outputs, "size"_a = 0)
      .def("weights", &warploom::Model::weights)
      .def_prop_ro("chosen", [](const warploom::Model& model) { return static_cast<int>(model.kernels().chosen); })
      .def_prop_ro("replaced", [](const warploom::Model& model) { return model.kernels().replaced != 0; })
      .def("size_of", &warploom::Model::size_of, "shapes"_a)
      .def("load_weights", &warploom::Model::load_weights, "path"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("generate_weights", &warploom::Model::generate_weights, "seed"_a, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "set_weight",
          [](warploom::Model& model, const std::string& name, const Given& array) {
            for (const warploom::Tensor& weight : model.weights())
              if (weight.name == name) check_array(array, weight);
            model.set_weight(name, array.data(), array.nbytes());
          },
          "name"_a, "array"_a.noconvert());
}

void define_client(nb::module_& m) {
  nb::class_<warploom::Client>(m, "Client")
      .def(
          "__init__",
          [](warploom::Client* client, const std::string& server, const std::string& cache, const std::string& ca,
             const std::string& cert, const std::string& key, const std::string& signers, const std::string& token_file,
             const std::string& token, bool trust_workers, bool no_counts) {
            warploom::ClientOptions options;
            options.server = server;
            options.cache = cache;
            options.ca = ca;
            options.cert = cert;
            options.key = key;
            options.signers = signers;
            options.token_file = token_file;
            options.token = token;
            options.trust_workers = trust_workers;
            options.no_counts = no_counts;
            new (client) warploom::Client(options);
          },
          "server"_a, "cache"_a = "", "ca"_a = "", "cert"_a = "", "key"_a = "", "signers"_a = "", "token_file"_a = "",
          "token"_a = "", "trust_workers"_a = false, "no_counts"_a = false)
      .def(
          "load",
          [](warploom::Client& client, const std::string& graph, const std::string& key, const std::string& target,
             const std::string& bind, const std::string& weights, int64_t trials, int64_t deadline_ms,
             const std::string& fallback, bool allow_tf32, int64_t tune) {
            static const char* const kSources[] = {"", "process", "disk", "coordinator", "fallback"};
            const warploom::Request request{
                graph,  key,         target,   bind,       weights,
                trials, deadline_ms, fallback, allow_tf32, static_cast<warploom_tune>(tune)};
            warploom_source source = WARPLOOM_FROM_PROCESS;
            warploom::Model model = client.load(request, &source);
            return std::pair<warploom::Model, std::string>(std::move(model), kSources[source]);
          },
          "graph"_a, "key"_a, "target"_a, "bind"_a, "weights"_a, "trials"_a, "deadline_ms"_a, "fallback"_a,
          "allow_tf32"_a, "tune"_a, nb::call_guard<nb::gil_scoped_release>());
}

void define_executor(nb::module_& m) {
  nb::class_<Run>(m, "Executor")
      .def(
          "__init__",
          [](Run* run, warploom::Model& model, size_t size, int threads, bool pin, const std::string& device) {
            new (run) Run{warploom::Executor(model, size, {threads, pin, device}),
                          model.inputs(size),
                          model.outputs(size),
                          {},
                          {}};
            run->given.resize(run->inputs.size());
            run->taken.resize(run->outputs.size());
          },
          "model"_a, "size"_a = 0, "threads"_a = 0, "pin"_a = false, "device"_a = "", nb::keep_alive<1, 2>())
      .def_prop_ro("threads", [](const Run& run) { return run.executor.threads(); })
      .def_prop_ro("workspace", [](const Run& run) { return run.executor.memory().workspace; })
      .def(
          "bind_input",
          [](Run& run, size_t index, std::optional<Given> array) {
            bind(at(run.inputs, index, "input"), run.given, index, std::move(array),
                 [&](const void* data) { run.executor.bind_input(index, data); });
          },
          "index"_a, "array"_a.noconvert().none())
      .def(
          "bind_output",
          [](Run& run, size_t index, std::optional<Taken> array) {
            bind(at(run.outputs, index, "output"), run.taken, index, std::move(array),
                 [&](void* data) { run.executor.bind_output(index, data); });
          },
          "index"_a, "array"_a.noconvert().none())
      .def("input",
           [](nb::handle self, size_t index) {
             Run& run = nb::cast<Run&>(self);
             return view(at(run.inputs, index, "input"), run.executor.input(index), self);
           })
      .def("output",
           [](nb::handle self, size_t index) {
             Run& run = nb::cast<Run&>(self);
             return view(at(run.outputs, index, "output"), const_cast<void*>(run.executor.output(index)), self);
           })
      .def(
          "run", [](Run& run) { run.executor.run(); }, nb::call_guard<nb::gil_scoped_release>())
      .def("run_at", &run_at, "inputs"_a, "outputs"_a, nb::call_guard<nb::gil_scoped_release>());
}

// Multiplies to 128 bits and returns the exclusive or of the two halves, of which every bit depends on both factors.
uint64_t fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t word_at(const unsigned char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Returns a 64-bit hash of some bytes, in the manner of wyhash.
uint64_t mark_of(const unsigned char* at, size_t bytes) {
  // This and the following numbers are constants of the hash function wyhash.
  constexpr uint64_t kOdd = 0xa0761d6478bd642f;
  uint64_t lanes[4] = {0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3, 0x1d8e4e27c47d124f};
  const uint64_t length = bytes;
  for (; bytes >= 64; at += 64, bytes -= 64)  // the hash has four independent lanes, which the CPU computes in parallel
    for (size_t i = 0; i < 4; ++i) lanes[i] = fold(word_at(at + 16 * i) ^ kOdd, word_at(at + 16 * i + 8) ^ lanes[i]);
  unsigned char rest[64] = {};
  if (bytes > 0) std::memcpy(rest, at, bytes);
  for (size_t i = 0; i < 4; ++i) lanes[i] = fold(word_at(rest + 16 * i) ^ kOdd, word_at(rest + 16 * i + 8) ^ lanes[i]);
  return fold(fold(lanes[0], lanes[1] ^ kOdd) ^ length, fold(lanes[2], lanes[3] ^ kOdd) ^ kOdd);
}

// Returns the mark of several ranges of memory, in their order: a 64-bit hash by which changes of the memory are
// noticed. A change goes unnoticed with a probability of 2^-64. It is no cryptographic hash: contents with equal marks
// can be constructed. Uses at most `threads` threads.
uint64_t mark_of(const std::vector<uintptr_t>& addresses, const std::vector<size_t>& sizes, size_t threads) {
  constexpr size_t kPiece = size_t{1} << 20;  // number of bytes that one thread hashes at a time
  struct Piece {
    const unsigned char* at;
    size_t bytes;
  };
  std::vector<Piece> pieces;
  for (size_t i = 0; i < std::min(addresses.size(), sizes.size()); ++i)
    for (size_t begin = 0; begin < sizes[i]; begin += kPiece)
      pieces.push_back(
          {reinterpret_cast<const unsigned char*>(addresses[i]) + begin, std::min(kPiece, sizes[i] - begin)});
  std::vector<uint64_t> marks(pieces.size());
  threads = std::clamp<size_t>(pieces.size() / 4, 1, std::max<size_t>(threads, 1));
  const auto read = [&](size_t first) {
    for (size_t i = first; i < pieces.size(); i += threads) marks[i] = mark_of(pieces[i].at, pieces[i].bytes);
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(read, i);
  read(0);
  for (std::thread& other : others) other.join();
  return mark_of(reinterpret_cast<const unsigned char*>(marks.data()), marks.size() * sizeof(uint64_t));
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Runs what Warploom tuned.";
  m.def("version", &warploom_version);
  m.def(
      "mark",
      [](const std::vector<uintptr_t>& addresses, const std::vector<size_t>& sizes, size_t threads) {
        return mark_of(addresses, sizes, threads);
      },
      "addresses"_a, "sizes"_a, "threads"_a = 1, nb::call_guard<nb::gil_scoped_release>());
  m.def("cpu", &warploom_cpu);
  static nb::object error = nb::steal(PyErr_NewException("warploom.Error", PyExc_RuntimeError, nullptr));
  m.attr("Error") = error;
  static nb::object outside = nb::steal(
      PyErr_NewException("warploom.OutsideError", nb::make_tuple(error, nb::handle(PyExc_IndexError)).ptr(), nullptr));
  m.attr("OutsideError") = outside;
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const warploom::Error& what) {
      const nb::object& kind = what.code() == WARPLOOM_OUT_OF_RANGE ? outside : error;
      nb::object instance = kind(what.what());
      instance.attr("code") = static_cast<int>(what.code());
      PyErr_SetObject(kind.ptr(), instance.ptr());
    }
  });
  define_model(m);
  define_executor(m);
  define_client(m);
}
