// The log of a program: lines on stderr, for people or, with --log-format json, an object of JSON each. Every line goes
// through spdlog; this file says how it looks and gives a line fields.
//
//   [2026-11-24 09:30:12.123] [warploomd] [info] job begins (job=jobs/7 trace=4bf92f3577b34da6a3ce929d0e0e4736)
//   {"ts":"2026-11-24T09:30:12.123456Z","level":"info","program":"warploomd","message":"job begins","job":"jobs/7",
//    "trace":"4bf92f3577b34da6a3ce929d0e0e4736"}
#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wl {

enum class LogFormat : uint8_t { kText, kJson };
// By the value of enum LogFormat: what --log-format takes.
inline constexpr const char* kLogFormatNames[] = {"text", "json"};

// What a line says beside its message. A field without a value is left out.
struct LogField {
  const char* name;
  std::string value;
  bool json = false;  // the value is JSON, and becomes a part of the line's
};
using LogFields = std::vector<LogField>;

// Makes all that spdlog writes from here on lines of `program` in this form. Call it before threads write.
void open_log(const std::string& program, LogFormat format);
// Writes a line. Control characters of fields become '?' where they would end or colour a line of text.
void log_line(spdlog::level::level_enum level, std::string_view message, const LogFields& fields);
// Writes who did what: `json` is an object.
void log_audit(spdlog::level::level_enum level, const std::string& json);
// Tells why the program ends, on stderr: "PROGRAM: MESSAGE", and in a log of JSON as a line of it.
void log_end(const char* program, const std::string& message);

// A line of JSON without its end, for tests. `unix_us`: microseconds since 1970. Bytes that are not UTF-8 are replaced.
std::string json_log_line(int64_t unix_us, std::string_view level, std::string_view program, std::string_view message,
                          const LogFields& fields);

}  // namespace wl
