// Adds the commands about jobs, records, workers and targets to the command line.
#include "client/cli/line/common_options.h"

namespace wl {
namespace {

void add_reverify(CLI::App& app, Options& options) {
  ReverifyOptions& reverify = options.reverify;
  CLI::App* again = command(app, options, "reverify", "verify again what other compilers or drivers made, and report",
                            "warploom reverify --watch --server HOST:7411");
  again->add_option("--device", reverify.target, "kernels of this target or family only")->type_name("T");
  again->add_flag("--again", reverify.again, "also those that were lost, or left out by a cancelled job");
  again->add_flag("--watch", reverify.watch, "wait until it is done");
  again->add_flag("--status", reverify.status, "begin nothing; say what became of them so far");
  again->add_option("--limit", reverify.most, "show so many")->check(CLI::Range(1, 100'000))->type_name("N");
  add_server(again, options.connection)->required();
  add_json(again, reverify.json);
  add_progress(again, reverify.progress);
}

void add_top(CLI::App& app, Options& options) {
  CLI::App* top = command(app, options, "top",
                          "jobs, workers and what they do, again and again; u shows what programs run, q ends it",
                          "warploom top --server HOST:7411");
  add_server(top, options.connection)->required();
  top->add_flag("--once", options.top.once, "look once, as without a terminal");
  top->add_option("--interval", options.top.interval_s, "seconds from one look to the next; 1 unless said")
      ->check(CLI::Range(0.1, 3600.0));
  top->add_option("--json", options.top.json, "write a line of JSON for every look; - is stdout")->type_name("FILE|-");
}

void add_watch(CLI::App& app, Options& options) {
  WatchOptions& watch = options.watch;
  CLI::App* sub = command(app, options, "watch", "follow a job until it ends, then report it",
                          "warploom watch JOB --server HOST:7411");
  sub->add_option("JOB", watch.job, "name, from `warploom jobs`")->required();
  sub->add_flag(
      "--cancel-on-interrupt", watch.cancel_on_interrupt,
      "Ctrl-C ends the job, whoever asked for it, and keeps the best so far; otherwise only the watching ends");
  add_html(sub, watch.report.html);
  add_progress(sub, watch.progress);
  add_connection(sub, options.connection);
  add_json(sub, watch.report.json);
}

}  // namespace

void add_fleet_commands(CLI::App& app, Options& options) {
  OperateOptions& operate = options.operate;
  CLI::App* jobs = command(app, options, "jobs", "list tuning jobs, newest first", "warploom jobs --server HOST:7411");
  CLI::App* records =
      command(app, options, "records", "list stored kernels, newest first", "warploom records --limit 20");
  for (CLI::App* sub : {jobs, records}) {
    sub->add_option("--limit", operate.most, "at most so many")
        ->capture_default_str()
        ->check(CLI::Range(1, 100'000))
        ->type_name("N");
    add_connection(sub, options.connection);
    add_json(sub, operate.json);
  }
  CLI::App* workers =
      command(app, options, "workers", "list the workers of a coordinator", "warploom workers --server HOST:7411");
  add_top(app, options);
  add_reverify(app, options);
  add_watch(app, options);
  CLI::App* cancel =
      command(app, options, "cancel", "end a job; the best so far is kept", "warploom cancel JOB --server HOST:7411");
  cancel->add_option("JOB", operate.name, "name, from `warploom jobs`")->required();
  CLI::App* drain = command(app, options, "drain", "give workers no new work; what they have they may finish",
                            "warploom drain --server HOST:7411");
  CLI::App* undrain =
      command(app, options, "undrain", "give workers work again", "warploom undrain --server HOST:7411");
  for (CLI::App* sub : {drain, undrain}) add_server(sub, options.connection)->required();

  CLI::App* pin = command(app, options, "pin", "keep a stored kernel whatever the bounds of the store are",
                          "warploom pin KEY --server HOST:7411");
  CLI::App* unpin = command(app, options, "unpin", "take a pin away", "warploom unpin KEY --server HOST:7411");
  for (CLI::App* sub : {pin, unpin})
    sub->add_option("KEY|DIGEST", operate.name,
                    "the kernels that are served for a key (or its first digits), or one record by its digest")
        ->required();
  CLI::App* invalidate = command(app, options, "invalidate", "serve a stored kernel no longer; its trials are kept",
                                 "warploom invalidate KEY --server HOST:7411");
  invalidate->add_option("KEY", operate.name, "from `warploom records`; its first digits do")->required();
  for (CLI::App* sub : {pin, unpin, workers, cancel, invalidate}) {
    add_connection(sub, options.connection);
    add_json(sub, operate.json);
  }
  CLI::App* backup = command(app, options, "backup", "make a backup of a coordinator's store, in its folder for them",
                             "warploom backup --server HOST:7411");

  CLI::App* revoke = command(app, options, "revoke", "forget what the workers of somebody measured or confirmed",
                             "warploom revoke gpu7.example --server unix:/tmp/warploom.sock");
  revoke
      ->add_option("PRODUCER", operate.name,
                   "a worker's name up to its first '/', as in `warploom workers` and `warploom records`")
      ->required();
  CLI::App* signer =
      command(app, options, "signer", "the key that a coordinator signs kernels with, as a line of --signers",
              "warploom signer --server HOST:7411 >> signers");
  CLI::App* status = command(app, options, "status",
                             "what a coordinator is: versions, store, whether it is drained, memory that it holds",
                             "warploom status --server HOST:7411");
  for (CLI::App* sub : {backup, revoke, signer, status}) {
    add_server(sub, options.connection)->required();
    add_json(sub, operate.json);
  }

  CLI::App* targets =
      command(app, options, "targets", "what this machine can compile for and run on, and what is missing for the rest",
              "warploom targets");
  add_json(targets, options.targets.json);
}

}  // namespace wl
