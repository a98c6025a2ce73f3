#include "client/cli/line/describe.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); });
}

// Returns the long name of an option, such as "--json"; empty for a positional argument.
std::string flag_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : "--" + option.get_lnames()[0];
}

std::vector<const CLI::Option*> flags_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !flag_of(*option).empty(); });
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// Returns the name of an option's type without its allowed values: "FORM" of "FORM:{auto,plain,json}".
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find_first_of(": "));
}

// Returns the allowed values of an option, which its type lists in braces; empty: any value is allowed.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return absl::StrSplit(type.substr(open + 1, close - open - 1), ',');
}

bool is_path(const CLI::Option& option) {
  const std::string type = type_of(option) + option.get_name(true);
  return absl::StrContains(type, "FILE") || absl::StrContains(type, "DIR") || absl::StrContains(type, "PATH");
}

std::string words_of(const std::vector<const CLI::App*>& commands) {
  return absl::StrJoin(commands, " ", [](std::string* out, const CLI::App* each) { append(out, each->get_name()); });
}

std::string flag_words(const CLI::App& app) {
  return absl::StrJoin(flags_of(app), " ",
                       [](std::string* out, const CLI::Option* each) { append(out, flag_of(*each)); });
}

// Appends, for each option of a command that takes a value, the bash case that completes it: with its allowed values,
// or with files if it takes a path.
void append_values(std::string* out, const CLI::App& app, const std::string& name) {
  for (const CLI::Option* option : flags_of(app)) {
    if (!takes_value(*option)) continue;
    const std::vector<std::string> choices = choices_of(*option);
    const char* files = is_path(*option) ? "$(compgen -f -- \"$word\")" : "";
    append(out, "    '", name, " ", flag_of(*option), "') ");
    if (choices.empty())
      append(out, "COMPREPLY=(", files, ") ;;\n");
    else
      append(out, "COMPREPLY=($(compgen -W '", absl::StrJoin(choices, " "), "' -- \"$word\")) ;;\n");
  }
}

std::string bash_completion(const CLI::App& app) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  std::string out =
      cat("# Completion of ", app.get_name(), " for bash, printed by `", app.get_name(), R"( completion bash`.
_warploom() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" each
  for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$each" in
      )",
          absl::StrReplaceAll(words_of(commands), {{" ", "|"}}), R"() command="$each"; break ;;
    esac
  done
  local IFS=$'\n \t'
  case "$command $before" in
)");
  append_values(&out, app, "");
  for (const CLI::App* command : commands) append_values(&out, *command, command->get_name());
  append(&out, "    *)\n      local flags=''\n      case \"$command\" in\n");
  append(&out, "        '') flags='", words_of(commands), " ", flag_words(app), "' ;;\n");
  for (const CLI::App* command : commands)
    append(&out, "        ", command->get_name(), ") flags='", flag_words(*command), "' ;;\n");
  append(&out, R"(      esac
      COMPREPLY=($(compgen -W "$flags" -- "$word"))
      if [[ -n $command && $word != -* ]]; then COMPREPLY=($(compgen -f -- "$word")); fi ;;
  esac
}
complete -o filenames -F _warploom )",
         app.get_name(), "\n");
  return out;
}

std::string zsh_completion(const CLI::App& app) {
  return cat("#compdef ", app.get_name(), "\nautoload -U +X bashcompinit && bashcompinit\n", bash_completion(app));
}

// Returns the first line of a description, quoted for fish, which shows one line.
std::string fish_text(const std::string& text) {
  return absl::StrReplaceAll(text.substr(0, text.find('\n')), {{"\\", "\\\\"}, {"'", "\\'"}});
}

void append_fish(std::string* out, const CLI::App& app, const std::string& program, const std::string& condition) {
  for (const CLI::Option* option : flags_of(app)) {
    append(out, "complete -c ", program, " -n '", condition, "' -l ", flag_of(*option).substr(2));
    const std::vector<std::string> choices = choices_of(*option);
    if (takes_value(*option)) append(out, choices.empty() && is_path(*option) ? " -r" : " -x");
    if (!choices.empty()) append(out, " -a '", absl::StrJoin(choices, " "), "'");
    append(out, " -d '", fish_text(option->get_description()), "'\n");
  }
}

std::string fish_completion(const CLI::App& app) {
  const std::string& program = app.get_name();
  std::string out = cat("# Completion of ", program, " for fish, printed by `", program, " completion fish`.\n");
  append_fish(&out, app, program, "__fish_use_subcommand");
  for (const CLI::App* command : commands_of(app)) {
    append(&out, "complete -c ", program, " -f -n __fish_use_subcommand -a ", command->get_name(), " -d '",
           fish_text(command->get_description()), "'\n");
    append_fish(&out, *command, program, cat("__fish_seen_subcommand_from ", command->get_name()));
  }
  return out;
}

// Escapes a text for man macros.
std::string man_text(const std::string& text) {
  std::string out = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n", "\n.br\n"}});
  absl::StrReplaceAll({{"\n.br\n.", "\n.br\n\\&."}, {"\n.br\n'", "\n.br\n\\&'"}}, &out);
  return absl::StartsWith(out, ".") || absl::StartsWith(out, "'") ? "\\&" + out : out;
}

void append_options(std::string* out, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string flag = flag_of(*option), name = flag.empty() ? option->get_name(true) : flag;
    append(out, ".TP\n\\fB", man_text(name), "\\fR");
    if (!flag.empty() && takes_value(*option)) append(out, " \\fI", man_text(type_of(*option)), "\\fR");
    append(out, "\n", man_text(option->get_description()), "\n");
    const std::vector<std::string> choices = choices_of(*option);
    if (!choices.empty()) append(out, "One of ", man_text(absl::StrJoin(choices, ", ")), ".\n");
    if (!option->get_default_str().empty()) append(out, "Default: ", man_text(option->get_default_str()), ".\n");
  }
}

std::string page_of(const std::string& name, const std::string& says) {
  return cat(".TH ", absl::AsciiStrToUpper(name), " 1 \"\" \"warploom " WARPLOOM_VERSION "\" \"Warploom\"\n.SH NAME\n",
             man_text(name), " \\- ", man_text(says), "\n");
}

std::string footer_of(const CLI::App& app) {
  return app.get_footer().empty() ? "" : cat(".SH NOTES\n.nf\n", man_text(app.get_footer()), "\n.fi\n");
}

std::string page_of_command(const CLI::App& app, const CLI::App& command) {
  const std::string name = cat(app.get_name(), "-", command.get_name());
  std::string out = page_of(name, command.get_description());
  append(&out, ".SH SYNOPSIS\n\\fB", man_text(app.get_name()), " ", man_text(command.get_name()), "\\fR [OPTIONS]");
  for (const CLI::Option* option : command.get_options())
    if (flag_of(*option).empty())
      append(&out, option->get_required() ? " \\fI" : " [\\fI", man_text(option->get_name(true)),
             option->get_required() ? "\\fR" : "\\fR]");
  append(&out, "\n.SH OPTIONS\n");
  append_options(&out, command);
  return cat(out, footer_of(command), ".SH SEE ALSO\n.BR ", man_text(app.get_name()), " (1)\n");
}

}  // namespace

std::string completion_for(const CLI::App& app, const std::string& shell) {
  return shell == "fish" ? fish_completion(app) : shell == "zsh" ? zsh_completion(app) : bash_completion(app);
}

absl::StatusOr<std::string> manual_page(const CLI::App& app, const std::string& command) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  for (const CLI::App* each : commands)
    if (each->get_name() == command) return page_of_command(app, *each);
  if (!command.empty())
    return invalid("there is no command ", command, "; the commands are ",
                   absl::StrReplaceAll(words_of(commands), {{" ", ", "}}));
  std::string out = page_of(app.get_name(), app.get_description());
  append(&out, ".SH SYNOPSIS\n\\fB", man_text(app.get_name()), "\\fR \\fICOMMAND\\fR [OPTIONS]\n.SH COMMANDS\n");
  for (const CLI::App* each : commands)
    append(&out, ".TP\n\\fB", man_text(each->get_name()), "\\fR\n", man_text(each->get_description()), "\n");
  append(&out, ".SH OPTIONS\n");
  append_options(&out, app);
  return cat(out, footer_of(app));
}

}  // namespace wl
