/* Runs a model with the kernels that a coordinator has for it:
 *
 *     fetch GRAPH|KEY SERVER [TRIALS [DEADLINE_MS [FALLBACK]]]
 *
 * GRAPH is an .onnx or .graph file; KEY, 64 hexadecimal digits, is the key of a kernel in the coordinator's store. The
 * first run asks the coordinator, and with TRIALS lets it search; later runs find the kernels in the user's cache.
 * After DEADLINE_MS milliseconds it gives up, or loads the bundle FALLBACK. Weights are random, inputs are zeros. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <warploom.h>

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  static const char* const sources[] = {"", "this process", "the cache", "the coordinator", "the fallback"};
  warploom_client_options options = {0};
  warploom_request request = {0};
  warploom_client* client = NULL;
  warploom_model* model = NULL;
  warploom_executor* executor = NULL;
  warploom_source source = WARPLOOM_FROM_PROCESS;
  warploom_status* status;
  double begin, loaded, done;
  int code = 0;
  if (argc < 3) {
    fprintf(stderr, "usage: fetch GRAPH|KEY SERVER [TRIALS [DEADLINE_MS [FALLBACK]]]\n");
    return 1;
  }
  options.struct_size = sizeof options;
  options.server = argv[2];
  request.struct_size = sizeof request;
  *(strlen(argv[1]) == 64 ? &request.key : &request.graph) = argv[1];
  request.trials = argc > 3 ? atol(argv[3]) : 0;
  request.deadline_ms = argc > 4 ? atol(argv[4]) : -1;
  request.fallback = argc > 5 ? argv[5] : NULL;
  begin = now_ms();
  status = warploom_client_open(&options, &client);
  if (!status) status = warploom_client_load(client, &request, &model, &source);
  loaded = now_ms();
  if (!status) status = warploom_model_generate_weights(model, 1);
  if (!status) status = warploom_executor_create(model, 0, NULL, &executor);
  if (!status) status = warploom_executor_run(executor);
  done = now_ms();
  if (status) {
    fprintf(stderr, "fetch: %s\n", warploom_status_message(status));
    code = 2;
  } else {
    printf("from %s in %.1f ms; the first run took %.1f ms\n", sources[source], loaded - begin, done - loaded);
  }
  warploom_status_free(status);
  warploom_executor_free(executor);
  warploom_model_free(model);
  warploom_client_free(client);
  return code;
}
