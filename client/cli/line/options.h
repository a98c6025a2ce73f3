// The parsed command line: the name of the command, and its options.
#pragma once

#include <cstdint>
#include <string>

#include "client/cli/batch/batch.h"
#include "client/cli/commands.h"
#include "client/cli/export/command.h"
#include "client/cli/operate.h"
#include "client/cli/options.h"
#include "client/cli/page/command.h"
#include "client/cli/reverify/reverify.h"
#include "client/cli/top/top.h"
#include "client/cli/tune.h"

namespace wl {

struct Options {
  std::string command;              // name of the command, such as "tune" or "run"
  std::string log_format = "text";  // form of the log: "text" or "json"
  int64_t end_with = 0;             // id of a process at whose end this process ends; 0: none
  bool idle = false;                // whether to use only processor time that nothing else wants
  double share = 0;                 // part of the machine's processor time that may be used; 0: all of it
  ConnectionOptions connection;
  // The options of each command; those of all commands but `command` have their defaults.
  TuneCommandOptions tune;
  WatchOptions watch;
  GetOptions get;
  BatchOptions batch;
  RunCommandOptions run;
  ExportCommandOptions export_bundle;
  PageOptions report;
  InspectOptions inspect;
  TargetsOptions targets;
  ReverifyOptions reverify;
  TopOptions top;
  OperateOptions operate;  // options of the commands in client/cli/operate.cpp
  std::string described;   // argument of `completion` (name of a shell) or `manual` (name of a command)
};

}  // namespace wl
