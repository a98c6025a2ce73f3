/* The C library of Warploom. It runs tuned models in the caller's process: a bundle, which is the folder that
 * `warploom tune MODEL --out DIR` writes, or the kernels that a coordinator (`warploomd`) has for a model (see
 * warploom_client). It needs no compiler and no store, and a coordinator only for warploom_client.
 *
 *     warploom_model* model = NULL;
 *     warploom_executor* executor = NULL;
 *     warploom_status* status = warploom_model_load("tuned", NULL, &model);
 *     if (!status) status = warploom_model_load_weights(model, "model.onnx");
 *     if (!status) status = warploom_executor_create(model, 0, NULL, &executor);
 *     if (!status) status = warploom_executor_bind_input(executor, 0, x);
 *     if (!status) status = warploom_executor_bind_output(executor, 0, y);
 *     if (!status) status = warploom_executor_run(executor);
 *     if (status) fprintf(stderr, "%s\n", warploom_status_message(status));
 *
 * examples/serve.c and examples/fetch.c are complete programs; warploom.hpp wraps the same functions for C++.
 *
 * Errors. A function that can fail returns NULL on success, and otherwise a status that the caller frees with
 * warploom_status_free(). On failure it writes nothing to its result arguments. No function throws a C++ exception or
 * ends the process. Pointer arguments must not be NULL unless their comment allows it.
 *
 * Threads. Functions of a model may be called from any thread at any time, with one exception: while a function sets
 * weights, no executor of the model may run. An executor may be used by one thread at a time; executors of one model
 * may run at the same time and share its weights. A handle must not be freed while another call uses it.
 *
 * Compatibility. Functions, their arguments and all numbers in this header stay unchanged within an ABI number, which
 * is the version of the symbols (WARPLOOM_1) and of the library's name. Later versions may add members at the end of a
 * struct, so the caller sets `struct_size` to the size of the struct that it was compiled with. */
#ifndef WARPLOOM_H
#define WARPLOOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WARPLOOM_ABI 1

/* Names are those of C. NOLINTBEGIN(readability-identifier-naming, modernize-use-using) */

typedef struct warploom_status warploom_status;
typedef struct warploom_model warploom_model;
typedef struct warploom_executor warploom_executor;

/* The canonical codes of gRPC and abseil, as far as this library returns them. */
typedef enum warploom_code {
  WARPLOOM_OK = 0,
  WARPLOOM_CANCELLED = 1,           /* the job was cancelled at the coordinator */
  WARPLOOM_INVALID_ARGUMENT = 3,    /* an argument is wrong, a file cannot be read, or a bundle has a newer format */
  WARPLOOM_DEADLINE_EXCEEDED = 4,   /* the coordinator has not answered in time */
  WARPLOOM_NOT_FOUND = 5,           /* neither the cache nor the coordinator has kernels for the request */
  WARPLOOM_PERMISSION_DENIED = 7,   /* the coordinator refuses this caller, or a kernel is not trusted */
  WARPLOOM_RESOURCE_EXHAUSTED = 8,  /* memory or disk space is short, or the coordinator is busy */
  WARPLOOM_FAILED_PRECONDITION = 9, /* for example: a weight has no value, a library that a kernel calls is missing */
  WARPLOOM_OUT_OF_RANGE = 11,       /* an index in an input is outside its axis; kernels for CPUs report this */
  WARPLOOM_UNIMPLEMENTED = 12,      /* a file uses a feature that is not supported */
  WARPLOOM_INTERNAL = 13,           /* a GPU failed, and this process cannot use it again; or a fault of the library */
  WARPLOOM_UNAVAILABLE = 14,        /* this machine lacks the kernels' GPU, or no coordinator answers at the address */
  WARPLOOM_DATA_LOSS = 15,          /* bytes of a bundle have changed, or a coordinator's answer is damaged */
  WARPLOOM_UNAUTHENTICATED = 16     /* the coordinator does not know this caller */
} warploom_code;

typedef enum warploom_dtype {
  WARPLOOM_F64 = 1,
  WARPLOOM_F32 = 2,
  WARPLOOM_F16 = 3,
  WARPLOOM_BF16 = 4,
  WARPLOOM_I64 = 5,
  WARPLOOM_I32 = 6,
  WARPLOOM_I16 = 7,
  WARPLOOM_I8 = 8,
  WARPLOOM_U64 = 9,
  WARPLOOM_U32 = 10,
  WARPLOOM_U16 = 11,
  WARPLOOM_U8 = 12,
  WARPLOOM_BOOL = 13, /* a byte: 0 or 1 */
  WARPLOOM_F8E4M3FN = 14,
  WARPLOOM_F8E5M2 = 15
} warploom_dtype;

/* The kinds of a model's tensors. Weights do not count as inputs. */
typedef enum warploom_kind { WARPLOOM_INPUT = 1, WARPLOOM_OUTPUT = 2, WARPLOOM_WEIGHT = 3 } warploom_kind;

/* Returns the version of the library, such as "0.1.0". */
const char* warploom_version(void);
/* Identifies this machine's CPU: its architecture, its model and a digest of its features, as text that is valid as
 * long as the process lives. Bundles are machine code, so a cache of them on a shared disk needs it in its names. */
const char* warploom_cpu(void);
/* Returns the name of a dtype, "f32" for WARPLOOM_F32; NULL if the number is not a dtype. */
const char* warploom_dtype_name(warploom_dtype dtype);

/* Returns the code of a status; WARPLOOM_OK for NULL. */
warploom_code warploom_status_code(const warploom_status* status);
/* Returns what failed and how to correct it, as text that is valid until the status is freed; "" for NULL. */
const char* warploom_status_message(const warploom_status* status);
/* Frees a status. NULL is allowed. */
void warploom_status_free(warploom_status* status);

typedef struct warploom_tensor {
  size_t struct_size;   /* set by the caller: sizeof(warploom_tensor) */
  const char* name;     /* name in the graph; valid as long as the model */
  warploom_dtype dtype; /* dtype of the elements */
  int32_t rank;         /* number of dimensions */
  const int64_t* shape; /* `rank` extents of a row-major array; valid as long as the model */
  size_t bytes;         /* size of all elements */
} warploom_tensor;

/* Loads a bundle and verifies every byte of its first size; the files of other sizes are verified when an executor is
 * first created for them. `options` is reserved and must be NULL. */
warploom_status* warploom_model_load(const char* folder, const void* options, warploom_model** model);
/* Frees the caller's handle. Executors of the model stay usable and keep its weights. NULL is allowed. */
void warploom_model_free(warploom_model* model);

/* Returns the number of sizes that the model was tuned for: one, or more if the graph has symbolic dimensions. `size`
 * arguments are indices below this number. The extents of inputs and outputs depend on the size, those of weights do
 * not. */
size_t warploom_model_sizes(const warploom_model* model);
/* Returns the extents of the symbolic dimensions at a size, as "batch=8,n=64", valid as long as the model; "" if there
 * are no symbolic dimensions, NULL if there is no such size. */
const char* warploom_model_size_text(const warploom_model* model, size_t size);
/* Returns the number of tensors of a kind. Their indices, from 0, follow the graph's order. */
size_t warploom_model_count(const warploom_model* model, warploom_kind kind);
/* Describes one tensor. The caller sets tensor->struct_size before the call. */
warploom_status* warploom_model_tensor(const warploom_model* model, size_t size, warploom_kind kind, size_t index,
                                       warploom_tensor* tensor);
/* Finds the size whose inputs have these shapes: shapes[i] points to the extents of input i, as many as its rank in the
 * graph. INVALID_ARGUMENT if no size fits. */
warploom_status* warploom_model_size_of(const warploom_model* model, const int64_t* const* shapes, size_t* size);

/* Copies the values of a weight from `data`: a row-major array of `bytes` bytes, which must be the weight's size. */
warploom_status* warploom_model_set_weight(warploom_model* model, const char* name, const void* data, size_t bytes);
/* Sets every weight for which an .onnx, .npz or .npy file, or a folder of .npy files, has a value. */
warploom_status* warploom_model_load_weights(warploom_model* model, const char* path);
/* Fills every weight that has no value with random numbers, equal for equal seeds; for tests and timing. */
warploom_status* warploom_model_generate_weights(warploom_model* model, uint64_t seed);

typedef struct warploom_executor_options {
  size_t struct_size; /* sizeof(warploom_executor_options) */
  int32_t threads;    /* limit of CPU threads, including the calling one; 0: as many as the kernels were tuned with */
  int32_t pin;        /* not 0: pins every thread, including the calling one, to a CPU of its own; for benchmarks */
  const char* device; /* reserved for the name of a GPU ("cuda:1"), and ignored by this version: all executors of a
                         model run on the first GPU that runs its kernels */
} warploom_executor_options;

typedef struct warploom_memory {
  size_t struct_size; /* sizeof(warploom_memory) */
  size_t workspace;   /* bytes of the one arena of this executor that holds all intermediate values */
  size_t inputs;      /* bytes of the inputs and of the weights, which the executors of a model share */
  size_t outputs;     /* bytes of the outputs */
} warploom_memory;

/* Creates an executor: what one thread needs to run the model at a size. It has its own worker threads, workspace,
 * inputs and outputs, and uses the weights of the model. The inputs are zeros at first. `options` may be NULL. */
warploom_status* warploom_executor_create(warploom_model* model, size_t size, const warploom_executor_options* options,
                                          warploom_executor** executor);
/* Frees an executor. Memory that was bound stays the caller's. NULL is allowed. */
void warploom_executor_free(warploom_executor* executor);
/* Says how much memory the executor uses. The caller sets memory->struct_size before the call. */
warploom_status* warploom_executor_memory(const warploom_executor* executor, warploom_memory* memory);
/* Returns the number of CPU threads that run the kernels, including the calling one; 0 on a GPU. */
int32_t warploom_executor_threads(const warploom_executor* executor);

/* Returns the memory from which a run reads an input, or to which it writes an output: the caller's, if it is bound and
 * used in place, otherwise the executor's own, which the caller fills before a run and reads after it. NULL if there is
 * no such tensor. */
void* warploom_executor_input(warploom_executor* executor, size_t index);
const void* warploom_executor_output(const warploom_executor* executor, size_t index);
/* Binds an input or output to memory of the caller, as large as the tensor: each later run reads or writes it there, so
 * it must stay valid until another binding. NULL: the executor's own memory again. Kernels for CPUs use memory in place
 * if its address is a multiple of 64. A run copies if the address is another one, if the kernels are for a GPU, and if
 * an output is also an input or another output. Memory of different inputs and outputs must not overlap. */
warploom_status* warploom_executor_bind_input(warploom_executor* executor, size_t index, const void* data);
warploom_status* warploom_executor_bind_output(warploom_executor* executor, size_t index, void* data);

/* Computes all outputs from the inputs, and returns when they are complete. */
warploom_status* warploom_executor_run(warploom_executor* executor);

/* Binds an input or output to memory of the GPU that runs the kernels, which is used in place: runs copy it neither
 * from nor to the host, and warploom_executor_input() and _output() do not return it. Its address must be a multiple of
 * 64, as that of every allocation of a GPU driver is. NULL ends the binding, and so does warploom_executor_bind_input()
 * or _bind_output(). WARPLOOM_FAILED_PRECONDITION: the kernels are for CPUs. */
warploom_status* warploom_executor_bind_device_input(warploom_executor* executor, size_t index, const void* data);
warploom_status* warploom_executor_bind_device_output(warploom_executor* executor, size_t index, void* data);
/* Enqueues all kernels in a stream (CUstream, hipStream_t) of the device's primary context and returns without waiting;
 * the stream may be in capture. All inputs and outputs must be bound to memory of the GPU (otherwise
 * WARPLOOM_FAILED_PRECONDITION). Launches of one executor must not overlap: use one stream, or order them by events. */
warploom_status* warploom_executor_launch(warploom_executor* executor, void* stream);

/* Loads models from a coordinator, with a cache. Its functions may be called from any thread at any time, except that
 * warploom_client_free() must not run while another call uses the client. */
typedef struct warploom_client warploom_client;

typedef struct warploom_client_options {
  size_t struct_size;   /* sizeof(warploom_client_options) */
  const char* server;   /* the coordinator's address, "HOST:PORT" or "unix:PATH"; NULL: only the cache is searched */
  const char* cache;    /* folder that keeps bundles for all processes of the user; NULL: "warploom/bundles" in the
                           user's cache folder; "": a temporary folder of this client. If the folder cannot be written,
                           a temporary one is used and a line on stderr says so. A folder where other users may write
                           is refused (WARPLOOM_FAILED_PRECONDITION), since loading a bundle runs its code. */
  uint64_t cache_bytes; /* size limit of the cache, beyond which the least recently used bundles go; 0: 4 GiB */
  const char* ca;       /* PEM files for TLS, as --tls-ca, --tls-cert and --tls-key of `warploom tune`; NULL: none */
  const char* cert;
  const char* key;
  const char* token_file; /* file with a token made by `warploomd token`, read for every call; NULL: none */
  const char* token;      /* the token itself, instead of token_file; NULL: none */
  const char* signers;    /* file of public keys, one of which must have signed a record; NULL: not checked */
  int64_t fresh_seconds;  /* age in seconds above which a cached bundle, though used at once, is requested again in
                             the background; 0: a day; -1: no bundle is too old */
  int64_t trust_workers;  /* not 0: also uses a compiled kernel for which only the worker that sent it vouches; 0: the
                             coordinator must have built the same, or a worker of another caller must agree */
  int64_t no_counts;      /* not 0: the coordinator is not told how often and how long kernels run; 0: it is told about
                             once a minute, and searches those further that take most time */
} warploom_client_options;

typedef struct warploom_request {
  size_t struct_size;   /* sizeof(warploom_request) */
  const char* graph;    /* path of an .onnx or .graph file; NULL if `key` is given */
  const char* key;      /* key of one kernel in the coordinator's store, 64 hex digits; NULL if `graph` is given */
  const char* target;   /* as `warploom tune --target`; NULL: "cpu"; ignored for a key, which has its own */
  const char* bind;     /* extents of the graph's symbolic dimensions, as "batch=8,n=64"; NULL: none */
  const char* weights;  /* for a .graph file: names of the inputs that are weights, separated by commas; NULL: none. An
                           .onnx file says itself what its weights are. */
  int64_t trials;       /* limit of kernels that are tried for each distinct group of operations, if the coordinator has
                           none for it; 1: the default kernels, verified; 0: no search */
  int64_t deadline_ms;  /* how long the call may wait for the coordinator; 0: not at all; -1: as long as it takes */
  const char* fallback; /* folder of a bundle that is loaded if no kernels arrive by the deadline or the coordinator
                           fails; NULL: the call fails then */
  int64_t allow_tf32;   /* not 0: products of f32 may round factors to tf32, as by `warploom tune --allow-tf32` */
  int64_t tune;         /* what a call waits for if `trials` allow a search: a warploom_tune; otherwise ignored */
} warploom_request;

/* What warploom_client_load() waits for if the request allows a search. */
typedef enum warploom_tune {
  WARPLOOM_TUNE_WAIT = 0, /* the search, until the deadline */
  WARPLOOM_TUNE_NOW = 1,  /* predicted kernels: those that the coordinator has and, for other groups, those that it
                             expects to be good, compiled and checked once. There is no search. */
  WARPLOOM_TUNE_LATER = 2 /* predicted kernels. The search follows, while nobody waits for the coordinator's workers;
                             when it is done, calls return what it has found. */
} warploom_tune;

/* How the kernels of a model were chosen. */
typedef enum warploom_choice {
  WARPLOOM_CHOICE_UNKNOWN = 0,   /* the model is of a folder, of a fallback, or of a request without trials */
  WARPLOOM_CHOICE_PREDICTED = 1, /* without a search */
  WARPLOOM_CHOICE_TUNED = 2      /* by a search with the trials of the request */
} warploom_choice;

typedef struct warploom_kernels {
  size_t struct_size;     /* sizeof(warploom_kernels) */
  warploom_choice chosen; /* how the kernels were chosen */
  int32_t replaced;       /* not 0: the client that loaded the model has newer kernels, which the next
                             warploom_client_load() of the same request returns */
} warploom_kernels;

/* The place that a model was loaded from. */
typedef enum warploom_source {
  WARPLOOM_FROM_PROCESS = 1,     /* an earlier call of this client had loaded it */
  WARPLOOM_FROM_DISK = 2,        /* the cache on disk */
  WARPLOOM_FROM_COORDINATOR = 3, /* the coordinator */
  WARPLOOM_FROM_FALLBACK = 4     /* the bundle that the request names as its fallback */
} warploom_source;

/* Creates a client. It connects to the coordinator at its first request. `options` may be NULL. */
warploom_status* warploom_client_open(const warploom_client_options* options, warploom_client** client);
/* Cancels the client's requests to the coordinator and waits until they have ended, for about two seconds at most.
 * Jobs of requests with WARPLOOM_TUNE_NOW and _LATER are cancelled at the coordinator, too; what other jobs need goes
 * on there. Models that the client loaded stay usable. NULL is allowed. */
void warploom_client_free(warploom_client* client);

/* Loads the model of a request from the first of these that has it: this process, the cache on disk, the coordinator,
 * the fallback. Each call returns a model with weights of its own. Equal requests at the same time share one request to
 * the coordinator. A request that misses its deadline goes on in the background, for later calls. After a failure the
 * coordinator gets no equal request for five seconds, and calls meanwhile fail with the same error. A newer model
 * replaces an older one between two calls: warploom_model_kernels() says when it is there. `source` may be NULL. */
warploom_status* warploom_client_load(warploom_client* client, const warploom_request* request, warploom_model** model,
                                      warploom_source* source);
/* Says how the kernels of a model were chosen, and whether there are newer ones by now. It reads two numbers, and may
 * be called between any two runs. The caller sets kernels->struct_size before the call. */
warploom_status* warploom_model_kernels(const warploom_model* model, warploom_kernels* kernels);

/* NOLINTEND(readability-identifier-naming, modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif
