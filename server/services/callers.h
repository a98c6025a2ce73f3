// Who the callers of a coordinator are: the file of --callers, one row a line, blanks between its fields.
//
//   user      alice            operator              a user of this machine, over a unix socket; * is any
//   loopback  *                client,worker         whoever calls over TCP from this machine
//   cert      spiffe://lab/gpu7  worker              the URI name of a client's certificate (proto/tls.h), of any
//                                                    trust domain; before what it says itself, so that the role none
//                                                    revokes it
//   token     ci               client    2026-12-31T00:00:00Z  SHA-256 of the token, in hexadecimal; or never
//   team      vision           weight=2  jobs=20     a team (server/engine/teams.h), with what holds for it; a row of
//                                                    one of the other kinds may end with team=vision, and its callers
//                                                    are then of that team
//   machine   box1             spiffe://lab/gpu7     the machine of the workers of a caller, by the name of its
//                                                    certificate or token, or uid:NUMBER for a user over a unix
//                                                    socket. Without a row it is what they say
//                                                    (docs/design/trust.md#machines)
//
// Lines that begin with # are left out.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/status.h"
#include "proto/roles.h"
#include "server/engine/teams.h"

namespace wl {

// The name of a user of this machine as a caller, before the number of the user.
inline constexpr std::string_view kUserPrincipal = "uid:";

// What a row says of its callers.
struct CallerRow {
  Roles roles = kNoRole;
  std::string team;  // empty: none
};

struct TokenRow {
  std::string name, sha256;
  CallerRow who;
  int64_t until_unix_s = 0;
};

struct Callers {
  std::map<int64_t, CallerRow> users;  // by uid
  CallerRow other_users;               // "user *"
  CallerRow loopback{.roles = kClient | kWorker, .team = {}};
  std::map<std::string, CallerRow> certificates;  // by URI
  std::vector<TokenRow> tokens;
  std::map<std::string, TeamRules> teams;       // by name
  std::map<std::string, std::string> machines;  // by the name of the caller

  // InvalidArgument names the line, what was expected there and what was found.
  static absl::StatusOr<Callers> parse(const std::string& text, const std::string& file);

  // The row of a token. All rows are compared in a time that does not depend on the token. nullptr: there is none.
  const TokenRow* find_token(std::string_view token) const;
  // The machine of the workers of a caller; empty: no row says it.
  std::string machine_of(const std::string& caller) const;
};

inline constexpr int64_t kForEver = INT64_MAX;

// "2026-12-31T00:00:00Z" or "never" for kForEver, and back; nullopt: the text is neither.
std::string print_time(int64_t unix_s);
std::optional<int64_t> parse_time(const std::string& text);

// The rows of a file, read again when the file changes. Any thread.
class CallersFile {
 public:
  // "" is a file without rows. InvalidArgument: a row is wrong. FailedPrecondition: the file cannot be read, or others
  // than its owner may write it.
  static absl::StatusOr<std::unique_ptr<CallersFile>> open(const std::string& file);

  // The rows as they are now, at most a fraction of a second late. While the file is wrong, those it had before; that
  // is logged.
  std::shared_ptr<const Callers> now();

 private:
  CallersFile() = default;
  absl::StatusOr<std::shared_ptr<const Callers>> read();

  std::string file_;
  std::atomic<std::chrono::steady_clock::rep> looked_ = 0;
  std::mutex mutex_;  // guards the rest
  struct stat seen_ = {};
  std::shared_ptr<const Callers> rows_;
};

// Makes a token, adds its row to the file, which is made when missing, and returns the token. It is in no file: whoever
// is to call with it must be given it now. `life_s` is in seconds, or kForEver; `team` is one that has a row, or empty.
// AlreadyExists: the file has a token of the name.
absl::StatusOr<std::string> make_token(const std::string& file, const std::string& name, Roles roles, int64_t life_s,
                                       const std::string& team = "");

}  // namespace wl
