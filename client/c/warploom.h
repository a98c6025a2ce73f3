/* The C library of Warploom: runs what `warploom tune MODEL --out DIR` wrote, a bundle, in this process. Needs no
 * compiler, no coordinator and no store.
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
 * examples/serve.c is a complete program; warploom.hpp wraps the same functions for C++.
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
  WARPLOOM_INVALID_ARGUMENT = 3,    /* the caller gave what cannot be; also: no bundle, a bundle of a newer format */
  WARPLOOM_NOT_FOUND = 5,           /* no file of that name */
  WARPLOOM_RESOURCE_EXHAUSTED = 8,  /* memory is short */
  WARPLOOM_FAILED_PRECONDITION = 9, /* a weight has no value yet, or a library that a kernel calls is missing */
  WARPLOOM_UNIMPLEMENTED = 12,
  WARPLOOM_INTERNAL = 13,
  WARPLOOM_UNAVAILABLE = 14, /* the kernels need a device that this machine lacks */
  WARPLOOM_DATA_LOSS = 15    /* bytes of the bundle have changed since it was written */
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

/* NOLINTEND(readability-identifier-naming, modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif
