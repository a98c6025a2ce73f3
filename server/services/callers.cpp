#include "server/services/callers.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <pwd.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/base/names.h"
#include "compiler/base/sha256.h"
#include "files/read.h"
#include "proto/tls.h"
#include "proto/utc.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(100);
constexpr size_t kMostWho = 1024, kMostTeamName = 64;
constexpr int64_t kMostOfTeam = 1'000'000;
constexpr std::string_view kOfTeam = "team=";
constexpr char kTimeForm[] = "%Y-%m-%dT%H:%M:%SZ";

using Fields = std::vector<std::string>;

absl::Status add_user(const Fields& fields, const CallerRow& row, Callers* out) {
  const std::string& who = fields[1];
  if (who == "*") {
    out->other_users = row;
    return absl::OkStatus();
  }
  int64_t uid = -1;
  if (!absl::SimpleAtoi(who, &uid) || uid < 0) {
    passwd entry = {};
    passwd* found = nullptr;
    std::vector<char> buffer(1 << 16);
    getpwnam_r(who.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (found == nullptr) return invalid("expected a user of this machine, a number or *, found \"", who, "\"");
    uid = found->pw_uid;
  }
  out->users[uid] = row;
  return absl::OkStatus();
}

absl::Status add_loopback(const Fields& fields, const CallerRow& row, Callers* out) {
  if (fields[1] != "*") return invalid("expected *, found \"", fields[1], "\": nobody is known over loopback");
  out->loopback = row;
  return absl::OkStatus();
}

absl::Status add_certificate(const Fields& fields, const CallerRow& row, Callers* out) {
  WL_RETURN_IF_ERROR(check_spiffe_id(fields[1]));
  out->certificates[fields[1]] = row;
  return absl::OkStatus();
}

absl::Status add_token(const Fields& fields, const CallerRow& row, Callers* out) {
  if (fields[1] == kNobodyKnown || fields[1].starts_with(kUserPrincipal))
    return invalid("expected a name other than ", kNobodyKnown, " and ", kUserPrincipal,
                   "NUMBER, which stand for callers without a token, found \"", fields[1], "\"");
  const std::optional<int64_t> until = parse_time(fields[3]);
  if (!until) return invalid("expected the end of a token, such as 2026-12-31T00:00:00Z or never, found ", fields[3]);
  WL_RETURN_IF_ERROR(check_text("the SHA-256 of a token", fields[4], TextKind::kDigest, 64));
  for (const TokenRow& other : out->tokens)
    if (other.name == fields[1]) return invalid("expected a name that no other token has, found \"", fields[1], "\"");
  out->tokens.push_back({.name = fields[1], .sha256 = fields[4], .who = row, .until_unix_s = *until});
  return absl::OkStatus();
}

struct RowKind {
  const char* name;
  size_t fields;  // number of fields of a row of this kind, not counting team=NAME
  const char* form;
  absl::Status (*add)(const Fields&, const CallerRow&, Callers*);
};

constexpr RowKind kRowKinds[] = {
    {"user", 3, "user NAME ROLES", add_user},
    {"loopback", 3, "loopback * ROLES", add_loopback},
    {"cert", 3, "cert URI ROLES", add_certificate},
    {"token", 5, "token NAME ROLES UNTIL SHA256", add_token},
};

absl::Status read_number(const std::string& value, int64_t least, int64_t* out) {
  if (absl::SimpleAtoi(value, out) && *out >= least && *out <= kMostOfTeam) return absl::OkStatus();
  return invalid("an integer from ", least, " to ", kMostOfTeam, ", found \"", value, "\"");
}

struct TeamField {
  const char* name;
  absl::Status (*read)(const std::string& value, TeamRules* out);
};

constexpr TeamField kTeamFields[] = {
    {"weight", [](const std::string& value, TeamRules* out) { return read_number(value, 1, &out->weight); }},
    {"priority",
     [](const std::string& value, TeamRules* out) { return read_number(value, -kMostOfTeam, &out->priority); }},
    {"jobs", [](const std::string& value, TeamRules* out) { return read_number(value, 1, &out->most_jobs); }},
    {"background",
     [](const std::string& value, TeamRules* out) { return read_number(value, 1, &out->most_background); }},
    {"publish",
     [](const std::string& value, TeamRules* out) {
       out->publishes = value == "confirmed";
       return out->publishes || value == "never" ? absl::OkStatus()
                                                 : invalid("confirmed or never, found \"", value, "\"");
     }},
};

absl::Status add_team(const Fields& fields, Callers* out) {
  if (fields.size() < 2) return invalid("expected team NAME, found 1 field");
  WL_RETURN_IF_ERROR(check_text("the name of a team", fields[1], TextKind::kName, kMostTeamName));
  if (fields[1].find('=') != std::string::npos) return invalid("expected team NAME, found \"", fields[1], "\"");
  TeamRules rules;
  for (size_t i = 2; i < fields.size(); ++i) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(fields[i], absl::MaxSplits('=', 1));
    const auto field = std::find_if(std::begin(kTeamFields), std::end(kTeamFields),
                                    [&](const TeamField& one) { return parts.first == one.name; });
    if (field == std::end(kTeamFields))
      return invalid("expected weight=N, priority=N, jobs=N, background=N or publish=confirmed, found \"", fields[i],
                     "\"");
    if (const absl::Status read = field->read(parts.second, &rules); !read.ok())
      return invalid(field->name, ": expected ", std::string(read.message()));
  }
  if (!out->teams.emplace(fields[1], rules).second)
    return invalid("expected a name that no other team has, found \"", fields[1], "\"");
  return absl::OkStatus();
}

absl::Status add_machine(const Fields& fields, Callers* out) {
  if (fields.size() != 3) return invalid("expected machine NAME CALLER, found ", fields.size(), " fields");
  WL_RETURN_IF_ERROR(check_text("the name of a machine", fields[1], TextKind::kName, kMostTeamName));
  WL_RETURN_IF_ERROR(check_text("the name of a caller", fields[2], TextKind::kName, kMostWho));
  if (!out->machines.emplace(fields[2], fields[1]).second)
    return invalid("expected a caller that has no machine yet, found \"", fields[2], "\"");
  return absl::OkStatus();
}

absl::Status add_row(Fields fields, Callers* out) {
  if (fields[0] == "team") return add_team(fields, out);
  if (fields[0] == "machine") return add_machine(fields, out);
  for (const RowKind& kind : kRowKinds) {
    if (fields[0] != kind.name) continue;
    CallerRow row;
    if (fields.size() == kind.fields + 1 && fields.back().starts_with(kOfTeam)) {
      row.team = fields.back().substr(kOfTeam.size());
      if (row.team.empty()) return invalid("expected ", kind.form, " and perhaps team=NAME, found no name");
      fields.pop_back();
    }
    if (fields.size() != kind.fields)
      return invalid("expected ", kind.form, " and perhaps team=NAME, found ", fields.size(), " fields");
    WL_RETURN_IF_ERROR(check_text("the name of a caller", fields[1], TextKind::kName, kMostWho));
    WL_ASSIGN_OR_RETURN(row.roles, parse_roles(fields[2]));
    return kind.add(fields, row, out);
  }
  return invalid("expected user, loopback, cert, token, team or machine, found \"", fields[0], "\"");
}

// Returns the first team that another row names but that has no row of its own.
std::optional<std::string> missing_team(const Callers& callers) {
  std::vector<const CallerRow*> rows = {&callers.other_users, &callers.loopback};
  for (const auto& [uid, row] : callers.users) rows.push_back(&row);
  for (const auto& [name, row] : callers.certificates) rows.push_back(&row);
  for (const TokenRow& token : callers.tokens) rows.push_back(&token.who);
  for (const CallerRow* row : rows)
    if (!row->team.empty() && !callers.teams.contains(row->team)) return row->team;
  return std::nullopt;
}

absl::Status not_usable(const std::string& file, const std::string& why) {
  return absl::FailedPreconditionError(cat("callers ", file, ": ", why));
}

bool same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

absl::StatusOr<std::string> read_rows(const std::string& file, struct stat* seen) {
  const absl::StatusOr<RegularFile> in = RegularFile::open(file, kMostSettings);
  if (!in.ok()) return not_usable(file, std::string(in.status().message()));
  *seen = in->facts();
  if ((seen->st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return not_usable(file, cat("others than its owner may write it, and so give themselves roles; chmod go-w ", file));
  return in->all();
}

}  // namespace

std::string print_time(int64_t unix_s) {
  if (unix_s == kForEver) return "never";
  return utc_text(unix_s, kTimeForm);
}

std::optional<int64_t> parse_time(const std::string& text) {
  if (text == "never") return kForEver;
  return utc_seconds(text, kTimeForm);
}

absl::StatusOr<Callers> Callers::parse(const std::string& text, const std::string& file) {
  Callers out;
  int line = 0;
  for (const absl::string_view row : absl::StrSplit(text, '\n')) {
    ++line;
    const Fields fields = absl::StrSplit(row, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (fields.empty() || fields[0].starts_with('#')) continue;
    if (const absl::Status status = add_row(fields, &out); !status.ok())
      return invalid("callers ", file, ", line ", line, ": ", std::string(status.message()));
  }
  if (const auto team = missing_team(out)) {
    return invalid("callers ", file, ": rows have team=", *team, ", but no row says team ", *team,
                   "; add it, with what holds for the team");
  }
  return out;
}

std::string Callers::machine_of(const std::string& caller) const {
  const auto row = machines.find(caller);
  return row == machines.end() ? "" : row->second;
}

const TokenRow* Callers::find_token(std::string_view token) const {
  const std::string asked = sha256_hex(token);
  const TokenRow* found = nullptr;
  for (const TokenRow& row : tokens)
    if (CRYPTO_memcmp(row.sha256.data(), asked.data(), asked.size()) == 0) found = &row;
  return found;
}

absl::StatusOr<std::unique_ptr<CallersFile>> CallersFile::open(const std::string& file) {
  std::unique_ptr<CallersFile> out(new CallersFile);
  out->file_ = file;
  if (file.empty()) {
    out->rows_ = std::make_shared<Callers>();
    return out;
  }
  WL_ASSIGN_OR_RETURN(out->rows_, out->read());
  return out;
}

absl::StatusOr<std::shared_ptr<const Callers>> CallersFile::read() {
  WL_ASSIGN_OR_RETURN(const std::string text, read_rows(file_, &seen_));
  WL_ASSIGN_OR_RETURN(Callers rows, Callers::parse(text, file_));
  return std::make_shared<const Callers>(std::move(rows));
}

std::shared_ptr<const Callers> CallersFile::now() {
  if (file_.empty()) return rows_;
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  const bool look = time - std::chrono::steady_clock::duration(looked_.load()) >= kLookEvery;
  const std::lock_guard lock(mutex_);
  if (!look) return rows_;
  looked_ = time.count();
  struct stat there = {};
  const bool gone = stat(file_.c_str(), &there) != 0;
  if (same(there, seen_) && there.st_mode == seen_.st_mode) return rows_;
  auto rows = read();
  if (gone) seen_ = there;
  if (rows.ok()) {
    rows_ = *std::move(rows);
    spdlog::info("read who may call from {} again", file_);
  } else {
    spdlog::error("going on with who could call before: {}", std::string(rows.status().message()));
  }
  return rows_;
}

absl::StatusOr<std::string> make_token(const std::string& file, const std::string& name, Roles roles, int64_t life_s,
                                       const std::string& team) {
  const int fd = ::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return not_usable(file, std::strerror(errno));
  const auto close_it = [](const int* one) { close(*one); };
  const std::unique_ptr<const int, decltype(close_it)> closed(&fd, close_it);
  flock(fd, LOCK_EX);
  struct stat seen = {};
  WL_ASSIGN_OR_RETURN(const std::string text, read_rows(file, &seen));
  WL_ASSIGN_OR_RETURN(const Callers before, Callers::parse(text, file));
  for (const TokenRow& row : before.tokens) {
    if (row.name == name)
      return absl::AlreadyExistsError(
          cat("callers ", file, ": has a token of the name ", name, "; remove its line, or choose another name"));
  }
  std::array<unsigned char, 32> secret = {};
  if (RAND_bytes(secret.data(), secret.size()) != 1) return absl::InternalError("there are no random numbers");
  const std::string token =
      cat("warploom_",
          absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(secret.data()), secret.size())));
  const int64_t until = life_s == kForEver ? kForEver : time(nullptr) + life_s;
  std::string spelt = print_roles(roles);
  std::erase(spelt, ' ');
  const std::string row =
      cat(text.empty() || text.ends_with('\n') ? "" : "\n", "token ", name, " ", spelt, " ", print_time(until), " ",
          sha256_hex(token), team.empty() ? "" : cat(" ", kOfTeam, team), "\n");
  WL_RETURN_IF_ERROR(Callers::parse(text + row, file).status());
  if (write(fd, row.data(), row.size()) != static_cast<ssize_t>(row.size()) || fsync(fd) != 0)
    return not_usable(file, std::strerror(errno));
  return token;
}

}  // namespace wl
