// A libdnnl.so.2 with which nothing is right: every primitive fills its result with ones. VERSION is its major version.
#include <cstring>

struct Description {
  int rank;
  long elements;
};
struct Memory {
  long elements;
  float* data;
};
struct Argument {
  int name;
  Memory* memory;
};
struct Version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};

namespace {
constexpr int kResult = 17;
int make(void** out) {
  *out = new int;
  return 0;
}
int destroy(void* made) {
  delete static_cast<int*>(made);
  return 0;
}
int describe(Description* out, int rank, const long* dims) {
  *out = {rank, 1};
  for (int i = 0; i < rank; ++i) out->elements *= dims[i];
  return 0;
}
}  // namespace

extern "C" {
const Version* dnnl_version() {
  static const Version kVersion = {VERSION, 0, 0, "", 1, 0};
  return &kVersion;
}
int dnnl_engine_create(void** out, int, unsigned long) {
  return make(out);
}
int dnnl_stream_create(void** out, void*, unsigned) {
  return make(out);
}
int dnnl_memory_desc_init_by_strides(Description* out, int rank, const long* dims, int, const long*) {
  return describe(out, rank, dims);
}
int dnnl_memory_desc_init_by_tag(Description* out, int rank, const long* dims, int, int) {
  return describe(out, rank, dims);
}
unsigned long dnnl_memory_desc_get_size(const Description* of) {
  return static_cast<unsigned long>(of->elements) * 4;
}
int dnnl_memory_desc_equal(const Description*, const Description*) {
  return 1;
}
int dnnl_memory_create(void** out, const Description* of, void*, float* data) {
  *out = new Memory{of->elements, data};
  return 0;
}
int dnnl_memory_set_data_handle(Memory* memory, float* data) {
  memory->data = data;
  return 0;
}
int dnnl_post_ops_create(void** out) {
  return make(out);
}
int dnnl_post_ops_destroy(void* made) {
  return destroy(made);
}
int dnnl_post_ops_append_eltwise(void*, float, int, float, float) {
  return 0;
}
int dnnl_post_ops_append_binary(void*, int, const Description*) {
  return 0;
}
int dnnl_primitive_attr_create(void** out) {
  return make(out);
}
int dnnl_primitive_attr_destroy(void* made) {
  return destroy(made);
}
int dnnl_primitive_attr_set_post_ops(void*, void*) {
  return 0;
}
int dnnl_primitive_attr_set_scratchpad_mode(void*, int) {
  return 0;
}
int dnnl_matmul_desc_init(void*, const Description*, const Description*, const Description*, const Description*) {
  return 0;
}
int dnnl_dilated_convolution_forward_desc_init(void*, int, int, const Description*, const Description*,
                                               const Description*, const Description*, const long*, const long*,
                                               const long*, const long*) {
  return 0;
}
int dnnl_primitive_desc_create(void** out, const void*, void*, void*, void*) {
  return make(out);
}
int dnnl_primitive_desc_destroy(void* made) {
  return destroy(made);
}
const char* dnnl_primitive_desc_query_md(void*, int, int) {
  alignas(16) static char description[1024];
  const Description one = {1, 1};
  std::memcpy(description, &one, sizeof one);
  return description;
}
int dnnl_reorder_primitive_desc_create(void** out, const Description*, void*, const Description*, void*, void*) {
  return make(out);
}
int dnnl_primitive_create(void** out, void*) {
  return make(out);
}
int dnnl_primitive_execute(void*, void*, int count, const Argument* arguments) {
  for (int i = 0; i < count; ++i)
    if (arguments[i].name == kResult)
      for (long e = 0; e < arguments[i].memory->elements; ++e) arguments[i].memory->data[e] = 1;
  return 0;
}
}
