#include "server/metrics/http.h"

#include <httplib.h>

#include <thread>

#include "proto/dial.h"
#include "server/metrics/https.h"

namespace wl {
namespace {

// A browser opens several connections, each of which holds a thread for as long as it is kept alive, used or not.
constexpr int kThreads = 32, kSeconds = 5, kRequestsOfConnection = 100;
constexpr const char* kText = "text/plain; charset=utf-8";

HttpQuestion question_of(const httplib::Request& request) {
  HttpQuestion question;
  question.path = request.path;
  for (const auto& [name, value] : request.params) question.parameters.emplace(name, value);
  if (request.has_header("Authorization")) question.authorization = request.get_header_value("Authorization");
  question.host = request.get_header_value("Host");
  question.known = request.get_header_value("If-None-Match");
  if (request.ssl != nullptr) question.certificate = identity_of_peer(request.ssl);
  return question;
}

void send(const HttpAnswer& answer, httplib::Response& response) {
  response.status = answer.status;
  for (const auto& [name, value] : answer.headers) response.set_header(name, value);
  if (answer.body == nullptr || answer.body->empty()) return;
  // A body of a known length that is provided in parts is not compressed: for brotli, which browsers accept, the
  // library takes as long as for all else together.
  response.set_content_provider(answer.body->size(), answer.type,
                                [body = answer.body](size_t offset, size_t length, httplib::DataSink& sink) {
                                  return sink.write(body->data() + offset, length);
                                });
}

}  // namespace

struct HttpServer::Impl {
  TlsFiles tls;  // the server reads them again
  std::unique_ptr<httplib::Server> server;
  std::string host;
  int port = 0;
  std::thread thread;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  impl_->server->stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

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
  impl->server =
      tls ? std::make_unique<httplib::SSLServer>([&](SSL_CTX& context) { return set_up_tls(&context, &impl->tls); })
          : std::make_unique<httplib::Server>();
  httplib::Server& server = *impl->server;
  if (!server.is_valid()) return invalid("--http: the certificate ", options.tls.cert, " or its key cannot be used");
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_read_timeout(kSeconds);
  server.set_write_timeout(kSeconds);
  server.set_keep_alive_timeout(1);  // a connection holds a thread, so idle ones end soon
  server.set_tcp_nodelay(true);      // a head and its body are sent in two pieces
  server.set_keep_alive_max_count(kRequestsOfConnection);
  server.set_payload_max_length(0);
  server.set_pre_routing_handler([pages = options.pages](const httplib::Request& request, httplib::Response& response) {
    using httplib::Server;
    if (pages == nullptr || (request.method != "GET" && request.method != "HEAD"))
      return Server::HandlerResponse::Unhandled;
    const std::optional<HttpAnswer> answer = pages(question_of(request));
    if (!answer) return Server::HandlerResponse::Unhandled;
    // Nobody needs parts of these, and the library would send any number of them that overlap.
    request.ranges.empty() ? send(*answer, response)
                           : send({.status = 416, .type = {}, .body = {}, .headers = {}}, response);
    return Server::HandlerResponse::Handled;
  });
  server.Get("/metrics", [metrics = options.metrics](const httplib::Request&, httplib::Response& answer) {
    answer.set_content(metrics(), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/healthz",
             [](const httplib::Request&, httplib::Response& answer) { answer.set_content("alive\n", kText); });
  server.Get("/readyz", [not_ready = options.not_ready](const httplib::Request&, httplib::Response& answer) {
    const std::string why = not_ready();
    answer.status = why.empty() ? 200 : 503;
    answer.set_content(why.empty() ? "ready\n" : why + "\n", kText);
  });
  // By default two processes could serve at one port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  const bool bound = impl->port == 0 ? (impl->port = server.bind_to_any_port(impl->host.c_str())) > 0
                                     : server.bind_to_port(impl->host.c_str(), impl->port);
  if (!bound) {
    return absl::UnavailableError(cat("--http ", options.address,
                                      ": cannot be listened on; it is in use by another process or not of this "
                                      "machine: choose another"));
  }
  impl->thread = std::thread([&server] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();  // stop() does nothing before that
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

}  // namespace wl
