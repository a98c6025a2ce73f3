/* Runs a bundle in several threads, as a program that serves requests does:
 *
 *     serve DIR [THREADS [REQUESTS [WEIGHTS]]]
 *
 * Each thread creates an executor that runs on this one thread, with its own inputs and outputs; all share one copy of
 * the weights. Prints the mean time of a request for each thread. WEIGHTS is a file with values of the weights, such as
 * the ONNX file; without it they are random. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warploom.h>

struct server {
  warploom_model* model;
  long requests;
  double ns_each;
  const void* result; /* the first output of the last request */
  warploom_executor* executor;
  warploom_status* status;
};

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void* serve(void* argument) {
  struct server* const server = argument;
  const warploom_executor_options options = {sizeof options, 1, 0, NULL};
  double begin;
  long i;
  server->status = warploom_executor_create(server->model, 0, &options, &server->executor);
  begin = now_ns();
  for (i = 0; i < server->requests && !server->status; ++i) server->status = warploom_executor_run(server->executor);
  server->ns_each = (now_ns() - begin) / (double)server->requests;
  if (!server->status) server->result = warploom_executor_output(server->executor, 0);
  return NULL;
}

static int failed(const warploom_status* status) {
  fprintf(stderr, "serve: %s\n", warploom_status_message(status));
  return 2;
}

int main(int argc, char** argv) {
  const int threads = argc > 2 ? atoi(argv[2]) : 8;
  const long requests = argc > 3 ? atol(argv[3]) : 1000;
  warploom_model* model = NULL;
  warploom_status* status;
  warploom_tensor output = {sizeof output, NULL, WARPLOOM_F32, 0, NULL, 0};
  struct server* servers;
  pthread_t* handles;
  int i, code = 0;
  if (argc < 2 || threads < 1 || requests < 1) {
    fprintf(stderr, "usage: serve DIR [THREADS [REQUESTS [WEIGHTS]]]\n");
    return 1;
  }
  status = warploom_model_load(argv[1], NULL, &model);
  if (!status) status = argc > 4 ? warploom_model_load_weights(model, argv[4]) : warploom_model_generate_weights(model, 1);
  if (!status) status = warploom_model_tensor(model, 0, WARPLOOM_OUTPUT, 0, &output);
  if (status) return failed(status);
  servers = calloc((size_t)threads, sizeof *servers);
  handles = calloc((size_t)threads, sizeof *handles);
  if (!servers || !handles) return 2;
  for (i = 0; i < threads; ++i) {
    servers[i].model = model;
    servers[i].requests = requests;
    if (pthread_create(&handles[i], NULL, serve, &servers[i]) != 0) return 2;
  }
  for (i = 0; i < threads; ++i) pthread_join(handles[i], NULL);
  for (i = 0; i < threads; ++i) {
    if (servers[i].status) code = failed(servers[i].status);
    else if (memcmp(servers[i].result, servers[0].result, output.bytes) != 0)
      code = (fprintf(stderr, "serve: threads 0 and %d have different results\n", i), 2);
    else
      printf("thread %d: %ld requests, %.3f us each\n", i, requests, servers[i].ns_each / 1e3);
  }
  for (i = 0; i < threads; ++i) {
    warploom_status_free(servers[i].status);
    warploom_executor_free(servers[i].executor);
  }
  free(servers);
  free(handles);
  warploom_model_free(model);
  return code;
}
