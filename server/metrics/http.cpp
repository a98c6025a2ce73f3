#include "server/metrics/http.h"

#include <httplib.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "proto/dial.h"
#include "server/metrics/http_door.h"
#include "server/metrics/https.h"

namespace wl {
namespace {

constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kForeignHost =
    "Host: without TLS this is for programs of this machine, under the name localhost or 127.0.0.1\n";

// The request that this thread answers, kept here because httplib::Request has no field for the certificate.
thread_local const HttpAsked* asked_now = nullptr;

HttpQuestion question_of(const httplib::Request& request) {
  HttpQuestion question;
  question.path = request.path;
  for (const auto& [name, value] : request.params) question.parameters.emplace(name, value);
  if (request.has_header("Authorization")) question.authorization = request.get_header_value("Authorization");
  question.host = request.get_header_value("Host");
  question.known = request.get_header_value("If-None-Match");
  if (asked_now != nullptr) question.certificate = asked_now->certificate;
  return question;
}

void send(const HttpAnswer& answer, httplib::Response& response) {
  response.status = answer.status;
  for (const auto& [name, value] : answer.headers) response.set_header(name, value);
  if (answer.body == nullptr || answer.body->empty()) return;
  // The body is passed as a content provider with a known length, because httplib does not compress such bodies:
  // compressing with Brotli, which browsers accept, would take as long as all the rest of a request.
  response.set_content_provider(answer.body->size(), answer.type,
                                [body = answer.body](size_t offset, size_t length, httplib::DataSink& sink) {
                                  return sink.write(body->data() + offset, length);
                                });
}

// A stream in memory, from which httplib reads a request and to which it writes the answer.
class InMemory final : public httplib::Stream {
 public:
  explicit InMemory(std::string_view request) : request_(request) {}
  bool is_readable() const override { return !request_.empty(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    const size_t count = request_.copy(to, size);
    request_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, size_t size) override {
    written_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return 0; }
  std::string take() { return std::move(written_); }

 private:
  std::string_view request_;
  std::string written_;
};

// Whether a request is for the coordinator's health, whose answer must never wait for other requests.
bool is_health(std::string_view head) {
  for (const std::string_view path : {"/healthz", "/readyz"})
    for (const std::string_view method : {"GET ", "HEAD "})
      if (head.starts_with(method) && head.substr(method.size()).starts_with(path)) return true;
  return false;
}

}  // namespace

bool is_own_name(std::string_view host) {
  if (host.empty()) return true;
  const size_t colon = host.rfind(':');
  const std::string name(host.ends_with(']') ? host : host.substr(0, colon));
  return name == "localhost" || name == "[::1]" ||
         (is_loopback(name) && name.find_first_not_of("0123456789.") == std::string::npos);
}

struct HttpServer::Impl {
  // The library httplib parses requests, routes them and writes answers. HttpDoor (http_door.h) manages the
  // connections, because httplib would occupy a thread for each connection as long as its caller likes.
  class Routes final : public httplib::Server {
   public:
    // Binds a socket, which the caller owns, and returns its descriptor; -1 if that fails. httplib::Server keeps the
    // descriptor as well: without one it takes itself for stopped and omits the bodies of answers.
    int bind(const std::string& host, int* port) {
      const bool bound = *port == 0 ? (*port = bind_to_any_port(host.c_str())) > 0 : bind_to_port(host.c_str(), *port);
      return bound ? svr_sock_.load() : -1;
    }
    HttpSaid answer(const HttpAsked& asked) {
      asked_now = &asked;
      InMemory stream(asked.head);
      bool closed = false;
      const bool right = process(stream, closed);
      asked_now = nullptr;
      return {stream.take(), closed || !right || has_body(asked.head)};
    }

   private:
    // Newer releases of httplib also take the addresses of both ends of the connection. This is a template since
    // `requires` may be false in a template alone.
    template <typename Stream>
    bool process(Stream& stream, bool& closed) {
      if constexpr (requires { this->process_request(stream, false, closed, nullptr); })
        return this->process_request(stream, /*close_connection=*/false, closed, nullptr);
      else
        return this->process_request(stream, "", 0, "", 0, /*close_connection=*/false, closed, nullptr);
    }
    // Requests to this server need no body. If a request has one, its connection is closed, since the body would be
    // read as the next request.
    static bool has_body(std::string_view head) {
      const std::string text = absl::AsciiStrToLower(absl::string_view(head.data(), head.size()));
      return absl::StrContains(text, "\ncontent-length:") || absl::StrContains(text, "\ntransfer-encoding:");
    }
  };

  TlsFiles tls;  // files for TLS, which are read again for every connection
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{nullptr, &SSL_CTX_free};
  Routes routes;
  std::string host;
  int port = 0;
  std::unique_ptr<HttpDoor> door;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() = default;

std::string HttpServer::address() const {
  return cat(impl_->host, ":", impl_->port);
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::open(const HttpOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->tls = options.tls;
  const bool tls = !options.tls.cert.empty();
  const auto parsed = parse_listen_address(options.address, tls);
  if (!parsed.ok())
    return invalid("--http: ", std::string(parsed.status().message()), "; found \"", options.address, "\"");
  impl->host = parsed->host;
  impl->port = parsed->port;
  if (tls) {
    impl->context.reset(SSL_CTX_new(TLS_server_method()));
    if (impl->context == nullptr || !set_up_tls(impl->context.get(), &impl->tls))
      return invalid("--http: the certificate ", options.tls.cert, " or its key cannot be used");
  }
  httplib::Server& server = impl->routes;
  server.set_payload_max_length(0);
  server.set_pre_routing_handler([pages = options.pages](const httplib::Request& request, httplib::Response& response) {
    using httplib::Server;
    // Range requests are refused: no page needs them, and httplib would send any number of overlapping ranges.
    if (!request.ranges.empty()) {
      send({.status = 416, .type = {}, .body = {}, .headers = {}}, response);
      return Server::HandlerResponse::Handled;
    }
    if (pages == nullptr || (request.method != "GET" && request.method != "HEAD"))
      return Server::HandlerResponse::Unhandled;
    const std::optional<HttpAnswer> answer = pages(question_of(request));
    if (!answer) return Server::HandlerResponse::Unhandled;
    send(*answer, response);
    return Server::HandlerResponse::Handled;
  });
  server.Get("/metrics", [metrics = options.metrics, tls](const httplib::Request& request, httplib::Response& answer) {
    if (!tls && !is_own_name(request.get_header_value("Host"))) {
      answer.status = 403;
      answer.set_content(kForeignHost, kText);
      return;
    }
    answer.set_content(metrics(question_of(request)), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/healthz",
             [](const httplib::Request&, httplib::Response& answer) { answer.set_content("alive\n", kText); });
  server.Get("/readyz", [not_ready = options.not_ready](const httplib::Request&, httplib::Response& answer) {
    const std::string why = not_ready();
    answer.status = why.empty() ? 200 : 503;
    answer.set_content(why.empty() ? "ready\n" : why + "\n", kText);
  });
  // This replaces httplib's own socket options. They include SO_REUSEPORT, with which two processes could serve at one
  // port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  const int listening = impl->routes.bind(impl->host, &impl->port);
  if (listening < 0) {
    return absl::UnavailableError(cat("--http ", options.address,
                                      ": cannot be listened on; it is in use by another process or not of this "
                                      "machine: choose another"));
  }
  HttpDoorOptions how;
  how.context = impl->context.get();
  how.answer = [routes = &impl->routes](const HttpAsked& asked) { return routes->answer(asked); };
  how.at_once = is_health;
  impl->door = std::make_unique<HttpDoor>(listening, std::move(how));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

}  // namespace wl
