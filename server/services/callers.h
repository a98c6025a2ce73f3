// The callers of a coordinator and their roles: the file of --callers. Each line is a row, and blanks separate
// its fields.
//
//   user      alice            operator              a user of this machine over a unix socket; * is any other user
//   loopback  *                client,worker         all callers over plain TCP from this machine
//   cert      spiffe://lab/gpu7  worker              a client's certificate, by its URI name (proto/tls.h), of any
//                                                    trust domain. The row overrides the role in that name, so the role
//                                                    none revokes the certificate
//   token     ci  client  2026-12-31T00:00:00Z  SHA256
//                                                    a token, with the time when it expires (or never) and its SHA-256
//                                                    in hexadecimal
//   team      vision           weight=2  jobs=20     a team (server/engine/teams.h) with its rules; a row of the kinds
//                                                    above may end with team=vision, which puts its callers into that
//                                                    team
//   machine   box1             spiffe://lab/gpu7     the machine on which the workers of a caller run. The caller is
//                                                    the name of its certificate or token, or uid:NUMBER for a user
//                                                    over a unix socket. Without a row, the workers themselves say
//                                                    where they run (docs/design/trust.md#machines)
//
// Lines that begin with # are ignored.
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

// What the principal of a user of this machine begins with; the user's number (uid) follows.
inline constexpr std::string_view kUserPrincipal = "uid:";

// The rights that a row gives its callers.
struct CallerRow {
  Roles roles = kNoRole;
  std::string team;  // team of the callers; empty: they have none
};

struct TokenRow {
  std::string name, sha256;
  CallerRow who;
  int64_t until_unix_s = 0;
};

struct Callers {
  std::map<int64_t, CallerRow> users;  // rows of single users of this machine, by uid
  CallerRow other_users;               // the row "user *" for all users without a row of their own
  CallerRow loopback{.roles = kClient | kWorker, .team = {}};
  std::map<std::string, CallerRow> certificates;  // rows of certificates, by the URI in the certificate
  std::vector<TokenRow> tokens;
  std::map<std::string, TeamRules> teams;       // rules of the teams, by name of the team
  std::map<std::string, std::string> machines;  // machine of a caller's workers, by name of the caller

  // Parses the text of a file. InvalidArgument names the line, what was expected there and what was found.
  static absl::StatusOr<Callers> parse(const std::string& text, const std::string& file);

  // Returns the row of a token, or nullptr. Compares all rows, so that the time it takes does not reveal the token.
  const TokenRow* find_token(std::string_view token) const;
  // Returns the machine on which a caller's workers run; empty: no row names it.
  std::string machine_of(const std::string& caller) const;
};

inline constexpr int64_t kForEver = INT64_MAX;

// Print and read a time: "2026-12-31T00:00:00Z", or "never" for kForEver. nullopt: the text is neither.
std::string print_time(int64_t unix_s);
std::optional<int64_t> parse_time(const std::string& text);

// The rows of a file, which is read again when it changes. Thread-safe.
class CallersFile {
 public:
  // Reads a file; the name "" stands for a file without rows. InvalidArgument: a row is wrong. FailedPrecondition: the
  // file cannot be read, or users other than its owner may write it.
  static absl::StatusOr<std::unique_ptr<CallersFile>> open(const std::string& file);

  // Returns the rows of the file as it was at most 0.1 s ago. While the file has an error, returns the rows of its last
  // correct version, and logs the error.
  std::shared_ptr<const Callers> now();

 private:
  CallersFile() = default;
  absl::StatusOr<std::shared_ptr<const Callers>> read();

  std::string file_;
  std::atomic<std::chrono::steady_clock::rep> looked_ = 0;
  std::mutex mutex_;  // guards the members declared below
  struct stat seen_ = {};
  std::shared_ptr<const Callers> rows_;
};

// Makes a token, appends its row to the file (which is created if it is missing), and returns the token. The file gets
// only the token's hash, so the token must be given to its user now. `life_s`: in seconds, or kForEver. `team`: a team
// that has a row, or empty. AlreadyExists: the file has a token of this name.
absl::StatusOr<std::string> make_token(const std::string& file, const std::string& name, Roles roles, int64_t life_s,
                                       const std::string& team = "");

}  // namespace wl
