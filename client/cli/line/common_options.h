// Functions that add options that several commands have, and the commands themselves, to the command line.
#pragma once

#include <string>
#include <vector>

#include "client/cli/line/command_line.h"

namespace wl {

// Adds one command to the command line; its help ends with `example`.
CLI::App* command(CLI::App& app, Options& options, const std::string& name, const std::string& says,
                  const std::string& example);

// Returns a validator that allows only these values. Its error for another value suggests which one was meant.
CLI::Validator one_of(std::vector<std::string> names);

// Adds --server and the options for TLS, token and signers.
CLI::Option* add_server(CLI::App* sub, ConnectionOptions& connection);
void add_connection(CLI::App* sub, ConnectionOptions& connection);  // adds the options of add_server(), and --store
void add_json(CLI::App* sub, std::string& json);
CLI::Option* add_html(CLI::App* sub, std::string& html);
void add_progress(CLI::App* sub, std::string& progress);

// These functions add the commands about one graph or bundle, and those about jobs, records, workers and targets.
void add_graph_commands(CLI::App& app, Options& options);
void add_fleet_commands(CLI::App& app, Options& options);

}  // namespace wl
