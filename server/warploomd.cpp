// warploomd: the coordinator as a daemon.
#include <grpc/support/log.h>
#include <malloc.h>
#include <signal.h>
#include <time.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "compiler/base/sha256.h"
#include "compiler/base/status.h"
#include "compiler/base/suggest.h"
#include "compiler/base/uncaught.h"
#include "files/read.h"
#include "proto/log.h"
#include "server/coordinator.h"
#include "server/daemon_values.h"
#include "server/engine/bounds/plan_memory.h"
#include "server/listener.h"
#include "server/services/callers.h"
#include "server/store/store.h"
#include "spdlog/spdlog.h"
#include "worker/compile.h"
#include "worker/measure.h"

namespace {

constexpr int kWrongUsage = 1, kBadInput = 2, kUnreachable = 4, kInternal = 7;

int exit_code(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return kWrongUsage;
    case absl::StatusCode::kUnavailable:
      return kUnreachable;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAlreadyExists:
      return kBadInput;
    default:
      return kInternal;
  }
}

int fail(const absl::Status& status) {
  wl::log_end("warploomd", std::string(status.message()));
  return exit_code(status);
}

// An option of the command line that is also a key of the configuration file.
struct Setting {
  const char* option;
  const char* key;
  std::variant<std::string*, bool*, int*, double*> value;
  const char* says;
  double least = 0, most = 1e9;  // least and greatest value of an option that is a number
};

struct Daemon {
  wl::CoordinatorOptions options;
  std::string config, restore;
  std::string token, token_roles, token_life = "90d", token_team;  // arguments of the command `token`
  std::string offer = "none", background = "always";
  std::string log_format = wl::kLogFormatNames[0];
  bool verbose = false;
  double upstream_check_minutes = 10;
  bool no_reverify = false, no_build = false;
  double database_gb = 0, objects_gb = 0, plan_memory_gb = 0, cache_mb = 64;

  std::vector<Setting> settings();
};

std::vector<Setting> Daemon::settings() {
  wl::UpkeepOptions& upkeep = options.upkeep;
  return {
      {"--store", "store", &options.store, "the SQLite file that remembers everything; made when missing"},
      {"--listen", "listen", &options.listen,
       "HOST:PORT or unix:PATH, or several with commas; operators use unix:PATH. Without --tls-cert only on this "
       "machine"},
      {"--callers", "callers", &options.callers, "file of users, URI names in certificates and tokens that may call"},
      {"--tls-cert", "tls_cert", &options.tls.cert, "certificate of this coordinator in PEM; every HOST:PORT has TLS"},
      {"--tls-key", "tls_key", &options.tls.key, "its private key"},
      {"--tls-ca", "tls_ca", &options.tls.ca, "who makes the certificates of workers, clients and operators"},
      {"--trust-domain", "trust_domain", &options.trust_domains,
       "DOMAIN, or several with commas: a certificate of --tls-ca whose URI name is spiffe://DOMAIN/warploom/ROLE has "
       "that "
       "role"},
      {"--http", "http", &options.http,
       "HOST:PORT for web pages, metrics and health (/metrics, /healthz, /readyz); HTTPS with --tls-cert, else on this "
       "machine only"},
      {"--signing-key", "signing_key", &options.signing_key,
       "private Ed25519 key in PEM that signs what is stored; STORE.key, made when missing, unless said"},
      {"--signers", "signers", &options.signers,
       "file of public keys, as `warploom signer` prints them: records of other coordinators are used if one of them "
       "signed them"},
      {"--upstream", "upstream", &options.upstream.address,
       "HOST:PORT or unix:PATH of a coordinator that is asked for what is not here"},
      {"--upstream-tls-ca", "upstream_tls_ca", &options.upstream.dialled.tls.ca, "who made its certificate"},
      {"--upstream-tls-cert", "upstream_tls_cert", &options.upstream.dialled.tls.cert,
       "certificate to show it, in PEM"},
      {"--upstream-tls-key", "upstream_tls_key", &options.upstream.dialled.tls.key, "its private key"},
      {"--upstream-token-file", "upstream_token_file", &options.upstream.dialled.token_file, "token to show it"},
      {"--upstream-check-minutes", "upstream_check_minutes", &upstream_check_minutes,
       "how often it is looked whether the upstream still serves what was fetched from it", 0.001, 1e6},
      {"--offer", "offer", &offer,
       "which shared kernels are offered to the upstream: none, confirmed (by two workers of different owners) or all"},
      {"--ranker", "ranker", &options.ranker,
       "learned cost model of warploom-train; STORE.ranker, if it is there, unless said; none: no model"},
      {"--lease-seconds", "lease_s", &options.lease_s, "a worker that is silent so long loses its work", 1, 600},
      {"--no-reverify", "no_reverify", &no_reverify,
       "leave what other compilers or drivers made as it is, until `warploom reverify` or a job asks for it"},
      {"--background-hours", "background_hours", &background,
       "when kernels that programs run are searched further while nobody waits for the workers: always, never, or "
       "hours "
       "of local time such as 20-6"},
      {"--no-build", "no_build", &no_build,
       "do not compile what is promoted on this machine too; clients then compile themselves what nobody else agrees "
       "on"},
      {"--check-threads", "check_threads", &options.check_threads, "threads that compute what outputs should be", 1,
       4096},
      {"--plan-memory-gb", "plan_memory_gb", &plan_memory_gb,
       "memory for the graphs of all open jobs and what is planned of them; two thirds of what this process may have, "
       "unless "
       "said",
       0.001, 1e6},
      {"--max-connections", "max_connections", &options.max_connections,
       "connections at once, 4096 unless the limit of open files (ulimit -Hn) is lower; more are closed", 1, 1e6},
      {"--cache-mb", "cache_mb", &cache_mb, "memory for records that clients fetch again and again", 0, 1e6},
      {"--backups", "backups", &upkeep.backups,
       "folder of the backups of this store, for `warploom backup` and --backup-hours"},
      {"--backup-hours", "backup_hours", &upkeep.backup_hours, "make a backup when the newest is so old", 0.01, 8760},
      {"--keep-backups", "keep_backups", &upkeep.keep_backups, "remove older backups than so many; 0: none", 0, 1e6},
      {"--database-gb", "database_gb", &database_gb,
       "evict what is neither served, pinned nor needed beyond so many GB of the database", 0.001, 1e6},
      {"--objects-gb", "objects_gb", &objects_gb, "likewise of compiled objects", 0.001, 1e6},
      {"--log-format", "log_format", &log_format, "text, or json: an object of JSON in each line of the log"},
  };
}

void add_settings(CLI::App& app, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    std::visit(
        [&](auto* value) {
          using Value = std::remove_pointer_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, bool>) {
            app.add_flag(setting.option, *value, setting.says);
          } else {
            CLI::Option* option = app.add_option(setting.option, *value, setting.says);
            if constexpr (std::is_arithmetic_v<Value>) {
              option->check(CLI::Range(static_cast<Value>(setting.least), static_cast<Value>(setting.most)));
            }
          }
        },
        setting.value);
  }
}

template <typename Value>
absl::Status read_value(const toml::node& node, const Setting& setting, Value* value) {
  const bool right = std::is_same_v<Value, std::string> ? node.is_string()
                     : std::is_same_v<Value, bool>      ? node.is_boolean()
                     : std::is_same_v<Value, int>       ? node.is_integer()
                                                        : node.is_number();
  constexpr const char* kExpected = std::is_same_v<Value, std::string> ? "a text"
                                    : std::is_same_v<Value, bool>      ? "true or false"
                                    : std::is_same_v<Value, int>       ? "an integer"
                                                                       : "a number";
  const auto read = right ? node.value<Value>() : std::nullopt;
  if (!read) return wl::invalid("key \"", setting.key, "\": expected ", kExpected);
  if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
    if (!(*read >= setting.least && *read <= setting.most)) {
      return wl::invalid("key \"", setting.key, "\": expected ", kExpected, " from ", setting.least, " to ",
                         setting.most, ", found ", *read);
    }
  }
  *value = *read;
  return absl::OkStatus();
}

// Reads the configuration file. Options that were given on the command line take precedence.
absl::Status read_config(const std::string& file, const CLI::App& app, const std::vector<Setting>& settings) {
  const auto wrong = [&](int64_t line, const auto&... what) {
    return wl::invalid("configuration ", file, ", line ", line, ": ", what...);
  };
  const absl::StatusOr<std::string> text = wl::read_file(file, wl::kMostSettings);
  if (!text.ok()) return wl::invalid("configuration: ", std::string(text.status().message()));
  try {
    const toml::table table = toml::parse(*text, file);
    for (const auto& row : table) {
      const toml::key& key = row.first;  // no structured binding, since clang rejects lambdas that capture one
      const toml::node& node = row.second;
      const auto setting =
          std::find_if(settings.begin(), settings.end(), [&](const Setting& one) { return key.str() == one.key; });
      if (setting == settings.end()) {
        std::vector<std::string> known;
        for (const Setting& one : settings) known.emplace_back(one.key);
        return wrong(key.source().begin.line, "unknown key \"", std::string(key.str()), "\"",
                     wl::suggestion(key.str(), known), "; expected one of ", absl::StrJoin(known, ", "));
      }
      if (app.get_option(setting->option)->count() > 0) continue;
      const absl::Status read =
          std::visit([&](auto* value) { return read_value(node, *setting, value); }, setting->value);
      if (!read.ok()) return wrong(node.source().begin.line, std::string(read.message()));
    }
  } catch (const toml::parse_error& error) {
    return wrong(error.source().begin.line, error.description());
  }
  return absl::OkStatus();
}

CLI::App* add_token(CLI::App& app, Daemon* daemon) {
  CLI::App* token = app.add_subcommand("token", "make a token for a caller without a certificate, and print it");
  token->footer("Example: warploomd token ci --callers callers.txt --role client --expires 30d > ci.token");
  token->add_option("NAME", daemon->token, "who is to call with it; to revoke it, remove its line")->required();
  token->add_option("--callers", daemon->options.callers, "file of --callers; keeps the SHA-256 of the token")
      ->required();
  token->add_option("--role", daemon->token_roles, "client, worker, operator, cache, or several with commas")
      ->required();
  token->add_option("--team", daemon->token_team, "the team that its caller is of, which has a row in the file");
  token->add_option("--expires", daemon->token_life, "30d, 12h or never")->capture_default_str();
  return token;
}

int run_token(const Daemon& daemon) {
  const auto roles = wl::parse_roles(daemon.token_roles);
  if (!roles.ok()) return fail(wl::invalid("--role: ", std::string(roles.status().message())));
  const auto life = wl::parse_life(daemon.token_life);
  if (!life.ok()) return fail(life.status());
  const auto token = wl::make_token(daemon.options.callers, daemon.token, *roles, *life, daemon.token_team);
  if (!token.ok()) return fail(token.status());
  std::printf("%s\n", token->c_str());
  return 0;
}

// Fills in the options. Returns an exit code if the program has to end at once: after an error, --help or `token`.
std::optional<int> read_options(int argc, char** argv, Daemon* daemon) {
  CLI::App app("warploomd: the coordinator of Warploom. Hands out tuning work and keeps what it found.");
  app.footer("Example: warploomd --store /var/lib/warploom/store.db --listen unix:/run/warploom.sock");
  app.set_version_flag("--version", WARPLOOM_VERSION);
  const std::vector<Setting> settings = daemon->settings();
  add_settings(app, settings);
  app.add_option("--config", daemon->config,
                 "TOML file with any of these, such as lease_s = 15 or listen = \"unix:/run/warploom.sock\"");
  app.add_option("--restore", daemon->restore,
                 "put this backup in the place of --store, which nobody may use, and end");
  app.add_flag("--verbose", daemon->verbose, "log every change");
  const CLI::App* token = add_token(app, daemon);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kWrongUsage;
  }
  if (token->parsed()) return run_token(*daemon);
  if (!daemon->config.empty()) {
    if (const absl::Status status = read_config(daemon->config, app, settings); !status.ok()) return fail(status);
  }
  const auto format = std::find(std::begin(wl::kLogFormatNames), std::end(wl::kLogFormatNames), daemon->log_format);
  if (format == std::end(wl::kLogFormatNames))
    return fail(wl::invalid("--log-format: expected text or json, found \"", daemon->log_format, "\""));
  spdlog::set_level(daemon->verbose ? spdlog::level::debug : spdlog::level::info);
  wl::open_log("warploomd", static_cast<wl::LogFormat>(format - std::begin(wl::kLogFormatNames)));
  const auto offer = wl::parse_offer(daemon->offer);
  if (!offer.ok()) return fail(offer.status());
  const auto background = wl::parse_background(daemon->background);
  if (!background.ok()) return fail(background.status());
  daemon->options.background = *background;
  daemon->options.reverify = !daemon->no_reverify;
  constexpr double kGb = 1e9, kMb = 1e6, kMinute = 60;
  daemon->options.upstream.offer = *offer;
  daemon->options.upstream.check_s = daemon->upstream_check_minutes * kMinute;
  daemon->options.plan_memory_bytes =
      daemon->plan_memory_gb > 0 ? static_cast<int64_t>(daemon->plan_memory_gb * kGb) : wl::default_plan_memory();
  daemon->options.reply_bytes = static_cast<int64_t>(daemon->cache_mb * kMb);
  daemon->options.upkeep.bounds = {.database_bytes = static_cast<int64_t>(daemon->database_gb * kGb),
                                   .object_bytes = static_cast<int64_t>(daemon->objects_gb * kGb)};
  if (!daemon->restore.empty()) {
    if (daemon->options.store.empty()) return fail(wl::invalid("--restore BACKUP needs --store FILE"));
    const absl::Status restored = wl::Store::restore(daemon->restore, daemon->options.store);
    if (!restored.ok()) return fail(restored);
    std::printf("%s is now as in the backup %s\n", daemon->options.store.c_str(), daemon->restore.c_str());
    return 0;
  }
  if (daemon->options.store.empty() || daemon->options.listen.empty()) {
    return fail(wl::invalid("--store FILE and --listen ADDR are needed, on the command line or in --config"));
  }
  if (daemon->options.signing_key.empty()) daemon->options.signing_key = daemon->options.store + ".key";
  return std::nullopt;
}

// Returns the sandbox in which compilers run: bubblewrap if it works on this machine, else none. Whether it works is
// tested once, at the first compilation.
wl::Sandbox box_of_builds() {
  static const wl::Sandbox kBox = [] {
    const absl::StatusOr<std::string> folder = wl::temporary_folder();
    const absl::Status serves = folder.ok() ? wl::sandbox_serves(*folder) : folder.status();
    if (serves.ok()) return wl::Sandbox::kBubblewrap;
    spdlog::warn("compilers of this coordinator run without a sandbox: {}; --no-build leaves building to clients",
                 std::string(serves.message()));
    return wl::Sandbox::kNone;
  }();
  return kBox;
}

// Returns a function that compiles a kernel's source as a worker compiles the finalists of a promotion.
wl::Build builder() {
  std::error_code failed;
  const std::string runner =
      (std::filesystem::read_symlink("/proc/self/exe", failed).parent_path() / "warploom-runner").string();
  return [runner](const wl::Source& source, const std::atomic<bool>& cancel) {
    wl::Built made;
    made.compiler = wl::own_compiler(source);
    const absl::StatusOr<std::string> object = wl::build_object(source, runner, box_of_builds(), &cancel);
    if (object.ok())
      made.object_sha256 = wl::sha256_hex(*object);
    else
      made.why = std::string(object.status().message());
    return made;
  };
}

// Waits for one of the signals. Freed memory lies scattered in the heap, so the process would grow for hours although
// it uses no more. Therefore freed memory is returned to the system every minute.
void wait_for_signal(const sigset_t& signals) {
  constexpr timespec kTrim = {.tv_sec = 60, .tv_nsec = 0};
  while (sigtimedwait(&signals, nullptr, &kTrim) < 0) malloc_trim(0);
}

}  // namespace

int main(int argc, char** argv) {
  wl::explain_uncaught("warploomd", kInternal);
  mallopt(M_ARENA_MAX, 4);  // at most 4 arenas; otherwise malloc makes one for each of the many threads
  Daemon daemon;
  if (const std::optional<int> code = read_options(argc, argv, &daemon)) return *code;
  wl::CoordinatorOptions& options = daemon.options;
  // gRPC's messages go to the debug log, because this program itself reports errors such as a port in use.
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  gpr_set_log_function([](gpr_log_func_args* line) { spdlog::debug("gRPC: {}", line->message); });

  // SIGTERM and SIGINT are blocked before any thread starts: all threads inherit the signal mask, so that only
  // wait_for_signal() takes these signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  wl::raise_descriptor_limit();

  if (!daemon.no_build) options.build = builder();
  // A broken store serves nothing: this process ends, and the next one reads what is on the disk.
  std::promise<absl::Status> broken;
  options.on_broken = [&](const absl::Status& status) {
    broken.set_value(status);
    kill(getpid(), SIGTERM);
  };
  wl::Coordinator coordinator;
  if (const absl::Status status = coordinator.start(options); !status.ok()) return fail(status);
  const std::string address = absl::StrJoin(coordinator.addresses(), ",");
  spdlog::info("serving on {}, store {}", address, options.store);
  // Scripts that asked for port 0 read the port that was chosen from the line printed here.
  std::printf("listening on %s\n", address.c_str());
  if (const std::string http = coordinator.http_address(); !http.empty()) std::printf("metrics on %s\n", http.c_str());
  std::fflush(stdout);

  wait_for_signal(signals);
  spdlog::info("draining");
  coordinator.stop();
  if (auto status = broken.get_future(); status.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    return fail(status.get());
  spdlog::info("stopped");
  return 0;
}
