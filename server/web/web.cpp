#include "server/web/web.h"

#include <map>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/base/sha256.h"
#include "proto/dial.h"
#include "server/metrics/metrics.h"
#include "server/web/answers.h"
#include "server/web/api.h"
#include "server/web/files.h"

namespace wl {
namespace {

constexpr size_t kMostAnswerBytes = 8 << 20;
constexpr int64_t kAtOnce = 4;  // most answers of the API that are made at the same time
constexpr const char* kJson = "application/json; charset=utf-8";

// An address of the API. A caller may read it if it may make the RPC `call`.
struct Route {
  std::string_view path;  // pattern of the path, in which * stands for any one part
  const char* call;
  WebAnswer* make;
};
constexpr Route kRoutes[] = {
    {"/api/jobs", "/warploom.v1.TuningService/ListJobs", &jobs_json},
    {"/api/jobs/*", "/warploom.v1.TuningService/GetJob", &job_json},
    {"/api/jobs/*/curves", "/warploom.v1.TuningService/GetJob", &curves_json},
    {"/api/jobs/*/groups/*", "/warploom.v1.TuningService/GetJob", &group_json},
    {"/api/jobs/*/kernels", "/warploom.v1.TuningService/GetJob", &kernels_json},
    {"/api/jobs/*/graph", "/warploom.v1.TuningService/Inspect", &graph_json},
    {"/api/workers", "/warploom.v1.Admin/ListWorkers", &workers_json},
    {"/api/usage", "/warploom.v1.KernelStore/GetUsage", &usage_json},
    {"/api/records", "/warploom.v1.KernelStore/ListKernels", &records_json},
    {"/api/records-by", "/warploom.v1.KernelStore/ListKernels", &records_by_json},
    {"/api/records/*", "/warploom.v1.KernelStore/GetKernel", &record_json},
};

// A page: NAME.html is its content below the title, and NAME.js fills the content in.
struct Page {
  std::string_view path, name, title;
};
constexpr Page kPages[] = {
    {"/", "jobs", "Jobs"},
    {"/jobs/*", "job", "Job"},
    {"/jobs/*/groups/*", "group", "Group"},
    {"/jobs/*/graph", "graph", "Graph"},
    {"/workers", "workers", "Workers"},
    {"/usage", "usage", "Usage"},
    {"/records", "records", "Records"},
    {"/records/*", "record", "Record"},
};
constexpr std::string_view kFiles = "/web/";

constexpr std::pair<std::string_view, const char*> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

// The policy of all pages: they load nothing from other sites, run only their own script files, and cannot be framed.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'";

// Returns the parts of the path that match a * of the pattern; nullopt if the path does not match the pattern.
std::optional<std::vector<std::string>> matched(std::string_view pattern, std::string_view path) {
  const std::vector<std::string> wanted = absl::StrSplit(absl::string_view(pattern.data(), pattern.size()), '/');
  const std::vector<std::string> found = absl::StrSplit(absl::string_view(path.data(), path.size()), '/');
  if (wanted.size() != found.size()) return std::nullopt;
  std::vector<std::string> parts;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == "*" && !found[i].empty())
      parts.push_back(found[i]);
    else if (wanted[i] != found[i])
      return std::nullopt;
  }
  return parts;
}

int http_status(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
      return 413;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

std::string tag_of(std::string_view text) {
  return cat("\"", sha256_hex(text).substr(0, 32), "\"");
}

// Returns a page, which consists of the frame that all pages have and its own content.
std::string framed(const Page& page, const std::map<std::string, std::string>& texts) {
  const std::string name(page.name), title(page.title), link = cat("<a href=\"", page.path, "\"");
  const bool draws = absl::StrContains(texts.at(cat(name, ".js")), "/web/charts.js");
  return absl::StrReplaceAll(texts.at("frame.html"),
                             {{"<!--title-->", title},
                              {"<!--name-->", name},
                              {"<!--preload-->", draws ? "<link rel=\"modulepreload\" href=\"/web/charts.js\">\n" : ""},
                              {cat(link, ">"), cat(link, " aria-current=\"page\">")},
                              {"<!--content-->\n", texts.at(cat(name, ".html"))}});
}

WebFiles make_files() {
  std::map<std::string, std::string> texts;
  for (const auto& [name, text] : web_files()) texts.emplace(name, text);
  WebFiles files;
  const auto add = [&](std::string_view name, std::string_view text) {
    WebFile& file = files[std::string(name)];
    for (const auto& [end, type] : kTypes)
      if (name.ends_with(end)) file.type = type;
    file.tag = tag_of(text);
    file.body = std::make_shared<const std::string>(text);
  };
  for (const Page& page : kPages) add(cat(page.name, ".html"), framed(page, texts));
  for (const auto& [name, text] : texts)
    if (!name.ends_with(".html")) add(name, text);
  return files;
}

}  // namespace

std::vector<HttpRule> http_rules() {
  std::vector<HttpRule> rules;
  for (const Route& route : kRoutes) rules.push_back({std::string(route.path), route.call});
  return rules;
}

struct Web::Impl {
  Impl(const Serving& serving, Authorizer* authorizer_in, bool tls) : data(serving), authorizer(authorizer_in) {
    connection.door = tls ? Door::kTls : Door::kLoopback;
  }

  HttpAnswer served(const WebFile& file, const HttpQuestion& question) const;
  HttpAnswer asked(const Route& route, std::vector<std::string> parts, const HttpQuestion& question);
  absl::StatusOr<KeptAnswer> answer_to(const Route& route, std::vector<std::string> parts,
                                       const HttpQuestion& question);
  HttpAnswer with_headers(HttpAnswer answer) const;

  const WebFiles files = make_files();
  WebData data;
  Authorizer* const authorizer;
  Connection connection;
  RecentAnswers answers;
  Budget at_once{kAtOnce};
};

Web::Web(const Serving& serving, Authorizer* authorizer, bool tls)
    : impl_(std::make_unique<Impl>(serving, authorizer, tls)) {}

Web::~Web() = default;

std::optional<HttpAnswer> Web::answer(const HttpQuestion& question) {
  for (const Route& route : kRoutes)
    if (auto parts = matched(route.path, question.path)) return impl_->asked(route, *std::move(parts), question);
  std::string wanted;
  for (const Page& page : kPages)
    if (matched(page.path, question.path)) wanted = cat(page.name, ".html");
  if (wanted.empty() && question.path.starts_with(kFiles)) wanted = question.path.substr(kFiles.size());
  const auto found = impl_->files.find(wanted);
  return found == impl_->files.end() ? std::nullopt : std::optional(impl_->served(found->second, question));
}

std::string Web::usage_metrics(const HttpQuestion& question) const {
  Shown shown;
  shown.token = question.authorization;
  shown.certificate = question.certificate;
  const auto reader = impl_->authorizer->admit_quietly("/warploom.v1.KernelStore/GetUsage", impl_->connection, shown);
  if (!reader) return "";
  auto usage = impl_->data.serving.engine->usage(*reader, 0);
  if (!usage.ok()) return "";
  // Series exist from the start, at 0.
  if (usage->teams.empty()) usage->teams.emplace_back().team = reader->team;
  return usage_text(*usage);
}

HttpAnswer Web::Impl::with_headers(HttpAnswer answer) const {
  answer.headers.emplace_back("Content-Security-Policy", kPolicy);
  answer.headers.emplace_back("X-Content-Type-Options", "nosniff");
  answer.headers.emplace_back("Referrer-Policy", "no-referrer");
  answer.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  return answer;
}

HttpAnswer Web::Impl::served(const WebFile& file, const HttpQuestion& question) const {
  HttpAnswer answer;
  answer.type = file.type;
  // A coordinator of another version may serve here later, so the browser asks each time whether its copy is current.
  answer.headers = {{"Cache-Control", "no-cache"}, {"ETag", file.tag}};
  if (question.known == file.tag)
    answer.status = 304;
  else
    answer.body = file.body;
  return with_headers(std::move(answer));
}

HttpAnswer Web::Impl::asked(const Route& route, std::vector<std::string> parts, const HttpQuestion& question) {
  HttpAnswer answer;
  answer.type = kJson;
  answer.headers = {{"Cache-Control", "no-store"}};
  const absl::StatusOr<KeptAnswer> made = answer_to(route, std::move(parts), question);
  if (!made.ok()) {
    answer.status = http_status(made.status());
    if (answer.status == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    answer.body = std::make_shared<const std::string>(WebJson{{"error", std::string(made.status().message())}}.dump(
        -1, ' ', false, WebJson::error_handler_t::replace));
    return with_headers(std::move(answer));
  }
  answer.headers.emplace_back("ETag", made->tag);
  if (question.known == made->tag)
    answer.status = 304;
  else
    answer.body = made->body;
  return with_headers(std::move(answer));
}

absl::StatusOr<KeptAnswer> Web::Impl::answer_to(const Route& route, std::vector<std::string> parts,
                                                const HttpQuestion& question) {
  if (connection.door == Door::kLoopback && !is_own_name(question.host)) {
    return absl::PermissionDeniedError(
        "Host: these pages are for browsers of this machine, under the name localhost or 127.0.0.1; others need "
        "--tls-cert");
  }
  Shown shown;
  shown.token = question.authorization;
  shown.certificate = question.certificate;
  WL_ASSIGN_OR_RETURN(const Reader reader, authorizer->admit(route.call, connection, shown));
  std::string key = cat(reader.every ? "every" : "team ", reader.team, "\n", question.path);
  for (const auto& [name, value] : question.parameters) append(&key, "\n", name, "=", value);
  if (auto kept = answers.find(key)) return *std::move(kept);
  if (!at_once.take(1)) return absl::UnavailableError("so many others ask that this has to wait; ask again");
  const absl::StatusOr<WebJson> json = [&] {
    // Gives back this answer's share of the limit on simultaneous answers (at_once), even if make() throws.
    const absl::Cleanup give = [this] { at_once.give(1); };
    return route.make(data, {.reader = reader, .parts = std::move(parts), .parameters = question.parameters});
  }();
  WL_RETURN_IF_ERROR(json.status());
  auto body = std::make_shared<const std::string>(json->dump(-1, ' ', false, WebJson::error_handler_t::replace));
  if (body->size() > kMostAnswerBytes)
    return absl::ResourceExhaustedError(cat("this takes more than ", kMostAnswerBytes, " bytes, which no page shows"));
  KeptAnswer kept{.body = body, .tag = tag_of(*body)};
  answers.put(key, kept);
  return kept;
}

}  // namespace wl
