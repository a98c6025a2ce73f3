/* The C library of Warploom: runs what `warploom tune MODEL --out DIR` wrote, a bundle, in this process, or what a
 * coordinator has for a model (warploom_client). Needs no compiler and no store, and for bundles no coordinator.
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
 * Errors. A function that can fail returns NULL on success, otherwise a status that the caller frees with
 * warploom_status_free(). Nothing that it should have returned is then written. No function throws or ends the process.
 *
 * Threads. All functions of a model may be called from any thread at any time, but for those that set weights: no
 * executor of the model may run meanwhile. An executor is used by one thread at a time; executors of one model run at
 * the same time and share its weights.
 *
 * Compatibility. Functions, their arguments and all numbers here stay as they are within an ABI number, which is the
 * version of the symbols (WARPLOOM_1) and of the library's name. Structs may get members at their end: a caller says in
 * `struct_size` which of them it knows. */
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

/* The canonical codes of gRPC and abseil, those that occur here. */
typedef enum warploom_code {
  WARPLOOM_OK = 0,
  WARPLOOM_CANCELLED = 1,           /* the client was freed, or the job was cancelled at the coordinator */
  WARPLOOM_INVALID_ARGUMENT = 3,    /* the caller gave what cannot be; also: no bundle, a bundle of a newer format */
  WARPLOOM_DEADLINE_EXCEEDED = 4,   /* a coordinator has not answered in time */
  WARPLOOM_NOT_FOUND = 5,           /* no file of that name; a coordinator has no such kernel */
  WARPLOOM_PERMISSION_DENIED = 7,   /* the coordinator does not serve this caller, or nobody trusted signed a kernel */
  WARPLOOM_RESOURCE_EXHAUSTED = 8,  /* memory or the disk is short, or the coordinator is busy */
  WARPLOOM_FAILED_PRECONDITION = 9, /* a weight has no value yet, or a library that a kernel calls is missing */
  WARPLOOM_OUT_OF_RANGE = 11,       /* an index was outside the axis of which it selects an element */
  WARPLOOM_UNIMPLEMENTED = 12,
  WARPLOOM_INTERNAL = 13,
  WARPLOOM_UNAVAILABLE = 14,    /* the kernels need a device that this machine lacks; the coordinator is not there */
  WARPLOOM_DATA_LOSS = 15,      /* bytes of the bundle have changed since it was written */
  WARPLOOM_UNAUTHENTICATED = 16 /* the coordinator does not know this caller */
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

/* Which tensors of a model are meant. Weights are not among the inputs. */
typedef enum warploom_kind { WARPLOOM_INPUT = 1, WARPLOOM_OUTPUT = 2, WARPLOOM_WEIGHT = 3 } warploom_kind;

/* The version of the library, such as "0.1.0". */
const char* warploom_version(void);
/* Which CPU this is: its architecture and model, and a digest of what it can do. For the names of caches of bundles on
 * disks that several machines see. */
const char* warploom_cpu(void);
/* "f32" for WARPLOOM_F32; NULL for a number that is none. */
const char* warploom_dtype_name(warploom_dtype dtype);

/* The code of a status; WARPLOOM_OK for NULL. */
warploom_code warploom_status_code(const warploom_status* status);
/* What was wrong, where, and what to do; valid until the status is freed. "" for NULL. */
const char* warploom_status_message(const warploom_status* status);
/* NULL is allowed. */
void warploom_status_free(warploom_status* status);

typedef struct warploom_tensor {
  size_t struct_size;   /* set by the caller: sizeof(warploom_tensor) */
  const char* name;     /* as in the graph; valid as long as the model */
  warploom_dtype dtype; /* of its elements */
  int32_t rank;
  const int64_t* shape; /* `rank` extents of a row-major array; valid as long as the model */
  size_t bytes;         /* of all elements */
} warploom_tensor;

/* Loads a bundle and verifies every byte of it. `options` is reserved: NULL. */
warploom_status* warploom_model_load(const char* folder, const void* options, warploom_model** model);
/* Executors of the model stay usable, and keep its weights. NULL is allowed. */
void warploom_model_free(warploom_model* model);

/* The number of sizes that the model was tuned for, at least one: more where the graph has symbolic dimensions. Tensors
 * of size s have the extents of that size; weights are the same in all. */
size_t warploom_model_sizes(const warploom_model* model);
/* The extents of the symbolic dimensions of a size, as "batch=8,n=64"; "" if there are none, NULL if there is no such
 * size. */
const char* warploom_model_size_text(const warploom_model* model, size_t size);
/* The number of tensors of a kind, in the graph's order. */
size_t warploom_model_count(const warploom_model* model, warploom_kind kind);
warploom_status* warploom_model_tensor(const warploom_model* model, size_t size, warploom_kind kind, size_t index,
                                       warploom_tensor* tensor);
/* The size whose inputs have these shapes: shapes[i] has the extents of input i, as many as its rank in the graph. */
warploom_status* warploom_model_size_of(const warploom_model* model, const int64_t* const* shapes, size_t* size);

/* Copies the values of a weight, `bytes` of them in row-major order. */
warploom_status* warploom_model_set_weight(warploom_model* model, const char* name, const void* data, size_t bytes);
/* Sets every weight for which an .onnx, .npz or .npy file, or a folder of .npy files, has a value. */
warploom_status* warploom_model_load_weights(warploom_model* model, const char* path);
/* Gives every weight without a value random values, the same for the same seed; for tests and timing. */
warploom_status* warploom_model_generate_weights(warploom_model* model, uint64_t seed);

typedef struct warploom_executor_options {
  size_t struct_size; /* sizeof(warploom_executor_options) */
  int32_t threads;    /* at most so many, that of the caller among them; 0: as many as the kernels were tuned with */
  int32_t pin;        /* not 0: the threads stay on CPUs of their own, that of the caller too; for benchmarks */
  const char* device; /* of GPU kernels: "cuda:1"; NULL: the first device that runs them */
} warploom_executor_options;

typedef struct warploom_memory {
  size_t struct_size; /* sizeof(warploom_memory) */
  size_t workspace;   /* bytes of all intermediate values, in one arena of this executor */
  size_t inputs;      /* bytes of the inputs, weights among them, and of the outputs */
  size_t outputs;
} warploom_memory;

/* What one thread runs the model with at a size: its own threads, workspace, inputs and outputs; the weights are those
 * of the model. `options` may be NULL. Its inputs are zeros at first. */
warploom_status* warploom_executor_create(warploom_model* model, size_t size, const warploom_executor_options* options,
                                          warploom_executor** executor);
/* NULL is allowed. */
void warploom_executor_free(warploom_executor* executor);
warploom_status* warploom_executor_memory(const warploom_executor* executor, warploom_memory* memory);
/* How many threads it runs kernels with; 0 on a GPU. */
int32_t warploom_executor_threads(const warploom_executor* executor);

/* The memory that a run reads an input from, or writes an output to: the executor's own, to be filled before a run and
 * read after it, or what is bound. NULL if there is no such tensor. */
void* warploom_executor_input(warploom_executor* executor, size_t index);
const void* warploom_executor_output(const warploom_executor* executor, size_t index);
/* Lets all runs from now on read an input from, or write an output to, memory of the caller's, as large as the tensor;
 * NULL: the executor's own. Kernels for CPUs use it in place where it begins at a multiple of 64 bytes; otherwise, on
 * GPUs, and where an output is also an input or another output, a run copies. Memories of inputs and outputs must not
 * overlap. */
warploom_status* warploom_executor_bind_input(warploom_executor* executor, size_t index, const void* data);
warploom_status* warploom_executor_bind_output(warploom_executor* executor, size_t index, void* data);

/* Computes all outputs, and returns when they are there. */
warploom_status* warploom_executor_run(warploom_executor* executor);

/* The same for kernels for GPUs with memory of the device's that runs on it, in place; other kernels:
 * WARPLOOM_FAILED_PRECONDITION. It begins at a multiple of 64 bytes, as what drivers allocate does. What is bound so is
 * not copied from or to the host, and warploom_executor_input() and _output() are not of it. NULL, or binding memory of
 * the host's, ends it. */
warploom_status* warploom_executor_bind_device_input(warploom_executor* executor, size_t index, const void* data);
warploom_status* warploom_executor_bind_device_output(warploom_executor* executor, size_t index, void* data);
/* Puts all kernels into a stream (CUstream, hipStream_t) of the device's primary context, and does not wait for them;
 * the stream may be one that is captured. All inputs and outputs are bound to memory of the device's. Launches of one
 * executor run one after the other: in one stream, or ordered by events. */
warploom_status* warploom_executor_launch(warploom_executor* executor, void* stream);

/* Models from a coordinator. All functions of a client may be called from any thread at any time. */
typedef struct warploom_client warploom_client;

typedef struct warploom_client_options {
  size_t struct_size;   /* sizeof(warploom_client_options) */
  const char* server;   /* "HOST:PORT" or "unix:PATH"; NULL: none, only the caches are looked at */
  const char* cache;    /* folder that keeps bundles for all processes of this machine; NULL: "warploom/bundles" in
                           the user's cache folder; "": a temporary one, also where that cannot be written,
                           which is said on stderr. Loading a bundle runs its code, so a folder where others may
                           write is refused. */
  uint64_t cache_bytes; /* those used least recently are removed beyond it; 0: 4 GiB */
  const char* ca;       /* PEM files of TLS, as `warploom --help` describes them; NULL: none */
  const char* cert;
  const char* key;
  const char* token_file; /* has a token of `warploomd token`, and is read for every call; NULL: none; or: */
  const char* token;
  const char* signers;   /* file of the keys that may sign records; NULL: any */
  int64_t fresh_seconds; /* what the cache on disk has is used at once, and asked for again in the background when it
                            is older; 0: a day; -1: it is never too old */
  int64_t trust_workers; /* not 0: objects are used for which nobody but the workers that sent them gives a word: no
                            coordinator has built them too, and no worker of another caller agrees */
} warploom_client_options;

typedef struct warploom_request {
  size_t struct_size;
  const char* graph;    /* an .onnx or .graph file; or: */
  const char* key;      /* the problem key of one kernel, 64 hexadecimal digits; the other is NULL */
  const char* target;   /* as `warploom tune --target`; NULL: "cpu" */
  const char* bind;     /* extents of the graph's symbolic dimensions, as "batch=8,n=64"; NULL: none */
  const char* weights;  /* of a .graph file: names of the inputs whose values stay the same, separated by commas; an
                           .onnx file says it itself */
  int64_t trials;       /* at most so many for each distinct group, where the coordinator has nothing; 1: verified
                           default kernels; 0: nothing is searched */
  int64_t deadline_ms;  /* how long the call may wait for the coordinator; 0: not at all; -1: as long as it takes */
  const char* fallback; /* a bundle to load where nothing could be had in time, or the coordinator has an error; NULL:
                           the call fails */
  int64_t allow_tf32;   /* not 0: products of f32 may have factors of tf32, as by `warploom tune --allow-tf32` */
} warploom_request;

/* Where a model came from. */
typedef enum warploom_source {
  WARPLOOM_FROM_PROCESS = 1, /* an earlier call of this client had loaded it */
  WARPLOOM_FROM_DISK = 2,
  WARPLOOM_FROM_COORDINATOR = 3,
  WARPLOOM_FROM_FALLBACK = 4
} warploom_source;

/* `options` may be NULL. Connects when something is first asked. */
warploom_status* warploom_client_open(const warploom_client_options* options, warploom_client** client);
/* Stops what is being asked, and waits for that. Models stay usable. NULL is allowed. */
void warploom_client_free(warploom_client* client);

/* Loads the model of a request from this process, the cache on disk, the coordinator, or the fallback: the first that
 * has it. Each call gives a model with weights of its own. Equal requests at the same time ask once; what is not there
 * by the deadline is asked on, for later calls; after an error the coordinator is left alone for five seconds, and
 * calls meanwhile get the same error. `source` may be NULL. */
warploom_status* warploom_client_load(warploom_client* client, const warploom_request* request, warploom_model** model,
                                      warploom_source* source);

/* NOLINTEND(readability-identifier-naming, modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif
