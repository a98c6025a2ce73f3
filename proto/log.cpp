#include "proto/log.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <chrono>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "compiler/base/names.h"
#include "compiler/base/status.h"
#include "nlohmann/json.hpp"
#include "proto/utc.h"

namespace wl {
namespace {

constexpr size_t kMostField = 16 << 10;  // maximum length in bytes of a field's value in a line of text

std::atomic<LogFormat> g_format = LogFormat::kText;
// The fields of the line that this thread is writing. spdlog passes no fields to the formatter, but calls it on the
// thread that writes the line, so the formatter finds them here.
thread_local const LogFields* t_fields = nullptr;

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& line, spdlog::memory_buf_t& out) override {
    using std::chrono::microseconds;
    const auto us = std::chrono::duration_cast<microseconds>(line.time.time_since_epoch()).count();
    const auto view = [](const spdlog::string_view_t& text) { return std::string_view(text.data(), text.size()); };
    const std::string text = json_log_line(us, view(spdlog::level::to_string_view(line.level)), view(line.logger_name),
                                           view(line.payload), t_fields == nullptr ? LogFields() : *t_fields) +
                             "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

}  // namespace

void open_log(const std::string& program, LogFormat format) {
  const spdlog::level::level_enum level = spdlog::get_level();
  auto logger = std::make_shared<spdlog::logger>(program, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (format == LogFormat::kJson) logger->set_formatter(std::make_unique<JsonFormatter>());
  logger->set_level(level);
  spdlog::set_default_logger(std::move(logger));
  g_format = format;
}

void log_line(spdlog::level::level_enum level, std::string_view message, const LogFields& fields) {
  if (!spdlog::should_log(level)) return;
  std::string text(message);
  if (g_format == LogFormat::kText) {
    std::string all;
    for (const LogField& field : fields)
      if (!field.value.empty())
        append(&all, all.empty() ? "" : " ", field.name, "=", fitted(field.value, TextKind::kName, kMostField));
    if (!all.empty()) append(&text, " (", all, ")");
  }
  t_fields = &fields;
  spdlog::log(level, "{}", text);
  t_fields = nullptr;
}

void log_audit(spdlog::level::level_enum level, const std::string& json) {
  if (g_format == LogFormat::kText) return spdlog::log(level, "audit {}", json);
  log_line(level, "audit", {{.name = "audit", .value = json, .json = true}});
}

void log_end(const char* program, const std::string& message) {
  if (g_format == LogFormat::kJson) return spdlog::error("{}", message);
  std::fprintf(stderr, "%s: %s\n", program, message.c_str());
}

std::string json_log_line(int64_t unix_us, std::string_view level, std::string_view program, std::string_view message,
                          const LogFields& fields) {
  constexpr int64_t kSecond = 1'000'000;
  nlohmann::ordered_json line = {
      {"ts", cat(utc_text(unix_us / kSecond, "%Y-%m-%dT%H:%M:%S"), absl::StrFormat(".%06dZ", unix_us % kSecond))},
      {"level", std::string(level)},
      {"program", std::string(program)},
      {"message", std::string(message)},
  };
  for (const LogField& field : fields) {
    if (field.value.empty()) continue;
    nlohmann::ordered_json value = field.value;
    if (field.json) {
      if (auto parsed = nlohmann::ordered_json::parse(field.value, nullptr, /*allow_exceptions=*/false);
          !parsed.is_discarded())
        value = std::move(parsed);
    }
    line[field.name] = std::move(value);
  }
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace wl
