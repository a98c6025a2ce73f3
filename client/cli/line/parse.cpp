#include "client/cli/line/parse.h"

#include <iostream>

#include "absl/strings/numbers.h"
#include "client/cli/exit_code.h"
#include "client/cli/line/command_line.h"
#include "client/cli/line/describe.h"
#include "compiler/base/suggest.h"

namespace wl {
namespace {

// Performs the commands `completion` and `manual`, which need the description of the commands. Returns the exit code.
int describe(const CLI::App& app, const Options& options) {
  if (options.command == "completion") {
    std::cout << completion_for(app, options.described);
    return kExitDone;
  }
  const absl::StatusOr<std::string> page = manual_page(app, options.described);
  if (!page.ok()) {
    std::cerr << "warploom: error: " << page.status().message() << "\n";
    return kExitUsage;
  }
  std::cout << *page;
  return kExitDone;
}

// Returns a suggestion for the first unknown argument that resembles an option or command; "" if none does.
std::string meant_by(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands()[0];
  std::vector<std::string> options, commands;
  for (const CLI::App* one : {&app, at})
    for (const CLI::Option* option : one->get_options())
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  for (const CLI::App* one : at->get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(one->get_name());
  for (const std::string& word : app.remaining(/*recurse=*/true)) {
    const bool is_option = word.starts_with("--");
    const std::string meant =
        suggestion(is_option ? word.substr(0, word.find('=')) : word, is_option ? options : commands);
    if (!meant.empty()) return meant;
  }
  return "";
}

// Returns why a text is no fraction of the machine; "" if it is one.
std::string a_fraction(const std::string& text) {
  double value = 0;
  if (absl::SimpleAtod(text, &value) && value > 0 && value <= 1) return "";
  return cat("expected a number above 0 and at most 1, such as 0.25, found ", text);
}

std::string what_is_wrong(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> words = app.remaining();
  if (app.get_subcommands().empty() && words.empty() && error.get_name() == "RequiredError")
    return "no command is given, such as `warploom tune MODEL`";
  const bool no_command = app.get_subcommands().empty() && !words.empty() && !words[0].starts_with('-');
  return no_command ? cat("there is no command ", words[0]) : error.what();
}

}  // namespace

std::variant<Options, int> parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app("Finds, verifies, stores and hands out the fastest fused kernels for tensor programs.", "warploom");
  app.set_version_flag("--version", "warploom " WARPLOOM_VERSION);
  app.require_subcommand(1);
  app.add_option("--log-format", options.log_format, "text, or json: an object of JSON in each line of the log")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--end-with", options.end_with,
                 "end when the process of this id has ended, such as the one that starts this")
      ->type_name("PID");
  CLI::Option* idle = app.add_flag("--idle", options.idle, "use only processor time that no other program wants");
  app.add_option("--share", options.share,
                 "use at most this part of the machine's processor time, with pauses between what is measured")
      ->type_name("FRACTION")
      ->check(a_fraction)
      ->excludes(idle);
  app.footer(
      "Exit codes: 0 done; 1 wrong usage; 2 bad input; 3 not in the store; 4 coordinator or worker unreachable;\n"
      "  5 no correct candidate; 6 interrupted, best so far kept; 7 internal error.\n"
      "Example:\n  warploom tune model.onnx --out tuned && warploom run tuned --check");

  add_commands(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& ask) {
    app.exit(ask, std::cout, std::cerr);
    return kExitDone;
  } catch (const CLI::CallForVersion& ask) {
    app.exit(ask, std::cout, std::cerr);
    return kExitDone;
  } catch (const CLI::ParseError& error) {
    std::cerr << "warploom: error: " << what_is_wrong(app, error) << meant_by(app) << "\nrun `warploom";
    for (const CLI::App* sub : app.get_subcommands()) std::cerr << " " << sub->get_name();
    std::cerr << " --help`\n";
    return kExitUsage;
  }
  if (options.command == "completion" || options.command == "manual") return describe(app, options);
  return options;
}

}  // namespace wl
