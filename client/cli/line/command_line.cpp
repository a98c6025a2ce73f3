#include "client/cli/line/command_line.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "client/cli/line/common_options.h"
#include "compiler/base/suggest.h"

namespace wl {

CLI::App* command(CLI::App& app, Options& options, const std::string& name, const std::string& says,
                  const std::string& example) {
  CLI::App* sub = app.add_subcommand(name, says);
  sub->footer("Example:\n  " + example);
  sub->callback([&options, name] { options.command = name; });
  return sub;
}

CLI::Option* add_server(CLI::App* sub, ConnectionOptions& connection) {
  CLI::Option* server =
      sub->add_option("--server", connection.server, "coordinator: unix:PATH or HOST:PORT; default: this process")
          ->type_name("ADDR");
  const struct {
    const char* option;
    std::string* value;
    const char* says;
  } rows[] = {
      {"--tls-ca", &connection.dial.tls.ca, "call by TLS; the CA of the coordinator's certificate, in PEM"},
      {"--tls-cert", &connection.dial.tls.cert, "certificate of this client"},
      {"--tls-key", &connection.dial.tls.key, "its private key"},
      {"--signers", &connection.signers, "keys of coordinators, one a line: use no kernel that none of them signed"},
      {"--token-file", &connection.dial.token_file, "has a token of this client; or WARPLOOM_TOKEN is one"},
  };
  for (const auto& row : rows) sub->add_option(row.option, *row.value, row.says)->type_name("FILE")->needs(server);
  return server;
}

CLI::Validator one_of(std::vector<std::string> names) {
  const std::string listed = cat("{", absl::StrJoin(names, ","), "}");
  return {[names = std::move(names), listed](const std::string& value) {
            const bool known = std::find(names.begin(), names.end(), value) != names.end();
            return known ? std::string() : cat(value, " not in ", listed, suggestion(value, names));
          },
          listed};
}

void add_connection(CLI::App* sub, ConnectionOptions& connection) {
  auto* server = add_server(sub, connection);
  sub->add_option("--store", connection.store, "store of the embedded mode (default ~/.cache/warploom/store.db)")
      ->type_name("FILE")
      ->excludes(server);
}

void add_json(CLI::App* sub, std::string& json) {
  sub->add_option("--json", json, "write a report for programs; - is stdout")->type_name("FILE|-");
}

CLI::Option* add_html(CLI::App* sub, std::string& html) {
  return sub->add_option("--html", html, "write the report as a page of HTML that needs nothing else")
      ->type_name("FILE");
}

void add_progress(CLI::App* sub, std::string& progress) {
  sub->add_option(
         "--progress", progress,
         "what goes to stderr meanwhile: auto, plain (a line for every group), or json (a line for every change)")
      ->capture_default_str()
      ->check(one_of({"auto", "plain", "json"}))
      ->type_name("FORM");
}

void add_commands(CLI::App& app, Options& options) {
  add_graph_commands(app, options);
  add_fleet_commands(app, options);
  CLI::App* completion = command(app, options, "completion", "print a shell's completion of this command line",
                                 "warploom completion bash > /usr/share/bash-completion/completions/warploom");
  completion->add_option("SHELL", options.described, "bash, zsh or fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
  CLI::App* manual =
      command(app, options, "manual", "print the manual page of this program, or of one command, for man",
              "warploom manual tune | man -l -");
  manual->add_option("COMMAND", options.described, "a command of this program");
}

}  // namespace wl
