// A fixture for tests of what a coordinator does for different callers: a coordinator on a unix socket whose callers
// authenticate with tokens.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "proto/dial.h"
#include "server/services/callers.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {

class WithTokens : public ::testing::Test {
 protected:
  void add_row(const std::string& row) const {
    std::ofstream(callers, std::ios::app) << row << "\n";
    chmod(callers.c_str(), 0600);
  }
  void add_token(const std::string& name, Roles roles, const std::string& team = "") {
    tokens[name] = make_token(callers, name, roles, 3600, team).value();
  }
  void take_away(const std::string& token) const {
    std::ifstream in(callers);
    std::string line, kept;
    while (std::getline(in, line))
      if (!line.starts_with("token " + token)) kept += line + "\n";
    std::ofstream(callers, std::ios::trunc) << kept;
  }
  void start(CoordinatorOptions options = {}) {
    options.store = store;
    options.listen = cat("unix:", scratch.path("s"), options.listen.empty() ? "" : ",", options.listen);
    options.callers = callers;
    service.emplace(options);
  }
  std::shared_ptr<grpc::Channel> by_token(const std::string& name) const {
    DialOptions how;
    how.token = tokens.at(name);
    return dial("unix:" + scratch.path("s"), how).value();
  }

  Scratch scratch;
  const std::string store = scratch.path("a.db"), callers = scratch.path("callers");
  std::map<std::string, std::string> tokens;  // each caller's token, by the caller's name
  // the coordinator; calls made through this object itself have the operator's rights
  std::optional<Service> service;
};

}  // namespace wl
