// The text before kernels that call oneDNN 2 (libdnnl.so.2), without includes. A kernel is data: a list of primitives,
// and for every block which of them runs and where its tensors begin. ENTRY_prepare opens the library and makes the
// primitives, before the first launch; it returns what is wrong, or null. Every block runs on the thread that calls it:
// the library gets one thread, so that it starts none of its own. What a primitive needs beside its arguments (memory
// objects, a scratchpad, copies in formats of the library) belongs to a slot, which a block takes while it runs, so any
// number of launches may run at once.
extern "C" {
void* dlopen(const char*, int);
void free(void*);
void* dlsym(void*, const char*);
void* aligned_alloc(unsigned long, unsigned long);
void* calloc(unsigned long, unsigned long);
int sched_yield();
}

namespace wl_onednn {

constexpr int kMostTensors = 12, kMostRank = 12, kMostPosts = 16, kMostSlots = 256;
// The library's own numbers.
constexpr int kF32 = 3, kFormatAny = 1, kCpu = 1, kUserScratchpad = 1, kInference = 96, kAutoConvolution = 3;
constexpr int kScratchpad = 80, kPostOp = 16384, kSource = 1, kSecond = 2, kWeights = 33, kResult = 17;
constexpr int kQueryScratchpad = 136, kQueryArgument = 255, kOpenMp = 2, kSequential = 1;
constexpr int kNow = 2;  // of dlopen: all symbols at once, for nobody else

typedef long Dim;
// The library's description of a tensor, which it fills in itself. It has this size and alignment in all of version 2.
struct alignas(8) Description {
  char bytes[696];
};
// Larger than what the library makes of an operation.
struct alignas(16) Operation {
  char bytes[8192];
};
struct Version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};
struct Argument {
  int name;
  void* memory;
};

// A tensor of f32: which argument of the kernel it is, and which of the primitive. Tag 0: by strides. `free`: the
// library may have it in a format of its own.
struct Tensor {
  int argument, name, rank, tag, free;
  Dim dims[kMostRank], strides[kMostRank];
};
// Applied to the result in order: elementwise where `tensor` is -1, else with a tensor.
struct Post {
  int algorithm, tensor;
  float alpha, beta;
};
struct Primitive {
  int convolution, tensors, posts;
  Tensor tensor[kMostTensors];  // source, weights, result, then those of posts
  Post post[kMostPosts];
  Dim window[4][kMostRank];  // of a convolution: strides, dilations, padding before and after
};
struct Block {
  int primitive;
  Dim offset[kMostTensors];  // in elements
};

// A primitive as the library made it.
struct Made {
  void* run;
  void* move[kMostTensors];  // copies to or from a format of the library; null: there is no need
  Description outer[kMostTensors], inner[kMostTensors], scratchpad;
};
struct Context {
  void *outer[kMostTensors], *inner[kMostTensors];
  Argument arguments[kMostTensors + 1];
  void* data[kMostTensors + 1];  // memory of inner tensors and of the scratchpad
};
struct Slot {
  int busy, ready;
  void* stream;
  Context* contexts;  // one for each primitive
};
struct Kernel {
  const Primitive* primitives;
  const Block* blocks;
  int count, slots;  // primitives; slots that are made before the first launch
  Made* made;
  Slot slot[kMostSlots];
};

#define WL_ONEDNN_CALLS(F)                                                                                             \
  F(version, const Version*, ())                                                                                       \
  F(engine_create, int, (void**, int, unsigned long))                                                                  \
  F(stream_create, int, (void**, void*, unsigned))                                                                     \
  F(memory_desc_init_by_strides, int, (Description*, int, const Dim*, int, const Dim*))                                \
  F(memory_desc_init_by_tag, int, (Description*, int, const Dim*, int, int))                                           \
  F(memory_desc_get_size, unsigned long, (const Description*))                                                         \
  F(memory_desc_equal, int, (const Description*, const Description*))                                                  \
  F(memory_create, int, (void**, const Description*, void*, void*))                                                    \
  F(memory_set_data_handle, int, (void*, void*))                                                                       \
  F(post_ops_create, int, (void**))                                                                                    \
  F(post_ops_destroy, int, (void*))                                                                                    \
  F(post_ops_append_eltwise, int, (void*, float, int, float, float))                                                   \
  F(post_ops_append_binary, int, (void*, int, const Description*))                                                     \
  F(primitive_attr_create, int, (void**))                                                                              \
  F(primitive_attr_destroy, int, (void*))                                                                              \
  F(primitive_attr_set_post_ops, int, (void*, void*))                                                                  \
  F(primitive_attr_set_scratchpad_mode, int, (void*, int))                                                             \
  F(matmul_desc_init, int,                                                                                             \
    (Operation*, const Description*, const Description*, const Description*, const Description*))                      \
  F(dilated_convolution_forward_desc_init, int,                                                                        \
    (Operation*, int, int, const Description*, const Description*, const Description*, const Description*, const Dim*, \
     const Dim*, const Dim*, const Dim*))                                                                              \
  F(primitive_desc_create, int, (void**, const Operation*, void*, void*, void*))                                       \
  F(primitive_desc_query_md, const Description*, (void*, int, int))                                                    \
  F(reorder_primitive_desc_create, int, (void**, const Description*, void*, const Description*, void*, void*))         \
  F(primitive_desc_destroy, int, (void*))                                                                              \
  F(primitive_create, int, (void**, void*))                                                                            \
  F(primitive_execute, int, (void*, void*, int, const Argument*))

struct Library {
#define WL_ONEDNN_POINTER(name, result, parameters) result(*name) parameters;
  WL_ONEDNN_CALLS(WL_ONEDNN_POINTER)
#undef WL_ONEDNN_POINTER
  void* engine;
  int (*get_threads)();
  void (*set_threads)(int);
};
static Library library;

static const char* open_library() {
  if (library.engine) return nullptr;
  void* handle = dlopen("libdnnl.so.2", kNow);
  if (!handle) return "libdnnl.so.2 is not found";
#define WL_ONEDNN_FIND(name, result, parameters)                                       \
  library.name = reinterpret_cast<result(*) parameters>(dlsym(handle, "dnnl_" #name)); \
  if (!library.name) return "libdnnl.so.2 has no dnnl_" #name;
  WL_ONEDNN_CALLS(WL_ONEDNN_FIND)
#undef WL_ONEDNN_FIND
  const Version* version = library.version();
  if (version->major != 2) return "libdnnl.so.2 is not of version 2";
  if (version->cpu_runtime == kOpenMp) {
    library.get_threads = reinterpret_cast<int (*)()>(dlsym(handle, "omp_get_max_threads"));
    library.set_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads"));
    if (!library.get_threads || !library.set_threads) return "libdnnl.so.2 comes without its OpenMP";
  } else if (version->cpu_runtime != kSequential) {
    return "libdnnl.so.2 is built for threads other than OpenMP's";
  }
  return library.engine_create(&library.engine, kCpu, 0) == 0 ? nullptr : "libdnnl.so.2 makes no engine";
}

// The library works on the calling thread alone while such an object lives.
struct OneThread {
  int before = library.get_threads ? library.get_threads() : 1;
  OneThread() {
    if (before != 1) library.set_threads(1);
  }
  ~OneThread() {
    if (before != 1) library.set_threads(before);
  }
};

static int describe(const Tensor& tensor, bool free, Description* out) {
  if (free) return library.memory_desc_init_by_tag(out, tensor.rank, tensor.dims, kF32, kFormatAny);
  if (tensor.tag) return library.memory_desc_init_by_tag(out, tensor.rank, tensor.dims, kF32, tensor.tag);
  return library.memory_desc_init_by_strides(out, tensor.rank, tensor.dims, kF32, tensor.strides);
}

// What a primitive is made from, which the library does not need afterwards.
struct Part {
  int (*destroy)(void*);
  void* of = nullptr;
  ~Part() {
    if (of) destroy(of);
  }
};

static const char* make(const Primitive& primitive, Made* made) {
  Part attributes{library.primitive_attr_destroy}, posts{library.post_ops_destroy};
  Part description{library.primitive_desc_destroy};
  int error = library.primitive_attr_create(&attributes.of) | library.post_ops_create(&posts.of);
  Description asked[kMostTensors];
  for (int t = 0; t < primitive.tensors && !error; ++t) {
    error |= describe(primitive.tensor[t], false, &made->outer[t]);
    error |= describe(primitive.tensor[t], primitive.tensor[t].free, &asked[t]);
  }
  for (int p = 0; p < primitive.posts && !error; ++p) {
    const Post& post = primitive.post[p];
    error |= post.tensor < 0 ? library.post_ops_append_eltwise(posts.of, 1, post.algorithm, post.alpha, post.beta)
                             : library.post_ops_append_binary(posts.of, post.algorithm, &asked[post.tensor]);
  }
  if (!error) error = library.primitive_attr_set_post_ops(attributes.of, posts.of);
  if (!error) error = library.primitive_attr_set_scratchpad_mode(attributes.of, kUserScratchpad);
  if (error) return "oneDNN does not take the tensors of this kernel";
  Operation operation;
  error = primitive.convolution
              ? library.dilated_convolution_forward_desc_init(
                    &operation, kInference, kAutoConvolution, &asked[0], &asked[1], nullptr, &asked[2],
                    primitive.window[0], primitive.window[1], primitive.window[2], primitive.window[3])
              : library.matmul_desc_init(&operation, &asked[0], &asked[1], nullptr, &asked[2]);
  if (!error)
    error = library.primitive_desc_create(&description.of, &operation, attributes.of, library.engine, nullptr);
  if (!error) error = library.primitive_create(&made->run, description.of);
  if (error) return "oneDNN has no primitive for this kernel";
  made->scratchpad = *library.primitive_desc_query_md(description.of, kQueryScratchpad, 0);
  for (int t = 0; t < primitive.tensors; ++t) {
    const Tensor& tensor = primitive.tensor[t];
    made->inner[t] = made->outer[t];
    if (!tensor.free) continue;
    const Description* inner = library.primitive_desc_query_md(description.of, kQueryArgument, tensor.name);
    if (!inner || library.memory_desc_get_size(inner) == 0) return "oneDNN does not say its format";
    made->inner[t] = *inner;
    if (library.memory_desc_equal(inner, &made->outer[t])) continue;
    Part move{library.primitive_desc_destroy};
    const Description &from = t == 2 ? made->inner[t] : made->outer[t], &to = t == 2 ? made->outer[t] : made->inner[t];
    if (library.reorder_primitive_desc_create(&move.of, &from, library.engine, &to, library.engine, nullptr) ||
        library.primitive_create(&made->move[t], move.of))
      return "oneDNN cannot copy a tensor of this kernel";
  }
  return nullptr;
}

static void* memory_of(unsigned long bytes) {
  return aligned_alloc(64, (bytes + 127) / 64 * 64);
}

// Makes what belongs to a slot; false when there is no memory.
static bool fill(const Kernel& kernel, Slot* slot) {
  slot->contexts = static_cast<Context*>(calloc(kernel.count, sizeof(Context)));
  if (!slot->contexts || library.stream_create(&slot->stream, library.engine, 1)) return false;
  for (int k = 0; k < kernel.count; ++k) {
    const Primitive& primitive = kernel.primitives[k];
    const Made& made = kernel.made[k];
    Context& context = slot->contexts[k];
    for (int t = 0; t < primitive.tensors; ++t) {
      if (library.memory_create(&context.outer[t], &made.outer[t], library.engine, nullptr)) return false;
      context.inner[t] = context.outer[t];
      context.arguments[t] = {primitive.tensor[t].name, context.inner[t]};
      if (!made.move[t]) continue;
      void* data = context.data[t] = memory_of(library.memory_desc_get_size(&made.inner[t]));
      if (!data || library.memory_create(&context.inner[t], &made.inner[t], library.engine, data)) return false;
      context.arguments[t].memory = context.inner[t];
    }
    void* scratch = context.data[kMostTensors] = memory_of(library.memory_desc_get_size(&made.scratchpad));
    Argument& last = context.arguments[primitive.tensors];
    last.name = kScratchpad;
    if (!scratch || library.memory_create(&last.memory, &made.scratchpad, library.engine, scratch)) return false;
  }
  slot->ready = 1;
  return true;
}

static const char* prepare(Kernel& kernel) {
  if (kernel.made) return nullptr;
  if (const char* problem = open_library()) return problem;
  OneThread one;
  Made* made = static_cast<Made*>(calloc(kernel.count, sizeof(Made)));
  if (!made) return "no memory for oneDNN";
  for (int k = 0; k < kernel.count; ++k)
    if (const char* problem = make(kernel.primitives[k], &made[k])) return problem;
  kernel.made = made;
  for (int s = 0; s < kernel.slots; ++s)
    if (!fill(kernel, &kernel.slot[s])) return "no memory for oneDNN";
  return nullptr;
}

// Frees the memory of a kernel that is unloaded. The library may be gone by then, so what it made stays: primitives are
// in its own cache.
static void release(Kernel& kernel) {
  for (Slot& slot : kernel.slot) {
    for (int k = 0; slot.contexts && k < kernel.count; ++k)
      for (void* data : slot.contexts[k].data) free(data);
    free(slot.contexts);
  }
  free(kernel.made);
}

static Slot& take(Kernel& kernel) {
  for (;; sched_yield())
    for (Slot& slot : kernel.slot)
      if (__atomic_exchange_n(&slot.busy, 1, __ATOMIC_ACQUIRE) == 0) {
        if (!slot.ready && !fill(kernel, &slot)) __builtin_trap();
        return slot;
      }
}

static void run(Kernel& kernel, long number, void* const* args) {
  const Block& block = kernel.blocks[number];
  const Primitive& primitive = kernel.primitives[block.primitive];
  const Made& made = kernel.made[block.primitive];
  OneThread one;
  Slot& slot = take(kernel);
  Context& context = slot.contexts[block.primitive];
  int error = 0;
  for (int t = 0; t < primitive.tensors; ++t)
    error |= library.memory_set_data_handle(context.outer[t],
                                            static_cast<float*>(args[primitive.tensor[t].argument]) + block.offset[t]);
  const auto copy = [&](int t, void* from, void* to) {
    const Argument both[] = {{kSource, from}, {kResult, to}};
    error |= library.primitive_execute(made.move[t], slot.stream, 2, both);
  };
  for (int t = 0; t < primitive.tensors; ++t)
    if (t != 2 && made.move[t]) copy(t, context.outer[t], context.inner[t]);
  error |= library.primitive_execute(made.run, slot.stream, primitive.tensors + 1, context.arguments);
  if (made.move[2]) copy(2, context.inner[2], context.outer[2]);
  if (error) __builtin_trap();
  __atomic_store_n(&slot.busy, 0, __ATOMIC_RELEASE);
}

}  // namespace wl_onednn
