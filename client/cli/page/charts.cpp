#include "client/cli/page/charts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/remote/report.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr double kWidth = 760, kLeft = 70, kRight = 20, kTop = 14, kBottom = 44;

std::string begin_svg(double height, const std::string& label) {
  return absl::StrFormat("<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", kWidth, height,
                         html_text(label));
}

void text_at(std::string* out, double x, double y, std::string_view anchor, std::string_view text) {
  absl::StrAppendFormat(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
                        html_text(text));
}

// A logarithmic scale between two powers of ten.
struct LogScale {
  double least, most, begin, end;  // least and greatest exponent of ten on the axis, and their coordinates on the page
  LogScale(double low, double high, double from, double to) : begin(from), end(to) {
    least = std::floor(std::log10(low) + 1e-9);
    most = std::max(least + 1, std::ceil(std::log10(high) - 1e-9));
  }
  double at(double value) const { return begin + (std::log10(value) - least) / (most - least) * (end - begin); }
};

std::string power_text(int exponent) {
  return exponent >= 0 && exponent < 4 ? absl::StrFormat("%g", std::pow(10, exponent))
                                       : absl::StrFormat("1e%d", exponent);
}

void line(std::string* out, std::string_view kind, double x1, double y1, double x2, double y2) {
  absl::StrAppendFormat(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", kind, x1, y1, x2,
                        y2);
}

void grid(std::string* out, const LogScale& x, const LogScale& y) {
  for (int power = static_cast<int>(x.least); power <= static_cast<int>(x.most); ++power) {
    const double at = x.at(std::pow(10, power));
    line(out, "grid", at, y.begin, at, y.end);
    text_at(out, at, y.begin + 16, "middle", power_text(power));
  }
  for (int power = static_cast<int>(y.least); power <= static_cast<int>(y.most); ++power) {
    const double at = y.at(std::pow(10, power));
    line(out, "grid", x.begin, at, x.end, at);
    text_at(out, x.begin - 6, at + 4, "end", power_text(power));
  }
}

}  // namespace

double number_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string html_text(std::string_view text) {
  return absl::StrReplaceAll(std::string(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string bars_svg(const Json& groups) {
  double longest = 0;
  for (const Json& group : groups)
    longest = std::max({longest, number_in(group, "default_ns") * number_in(group, "count"),
                        number_in(group, "best_ns") * number_in(group, "count")});
  if (longest <= 0) return "";
  constexpr double kRow = 34, kNames = 280;
  const double height = kTop + kRow * static_cast<double>(groups.size()) + 10, room = kWidth - kNames - 90;
  std::string out = begin_svg(height, "Time of each group before and after tuning");
  double y = kTop;
  for (const Json& group : groups) {
    const double count = number_in(group, "count");
    const std::string name = text_in(group, "what");
    text_at(&out, kNames - 8, y + 16, "end", name.size() > 34 ? cat(name.substr(0, 33), "…") : name);
    int half = 0;
    for (const char* key : {"default_ns", "best_ns"}) {
      const double ns = number_in(group, key) * count, top = y + 12 * half;
      absl::StrAppendFormat(
          &out, "<rect class=\"%s\" x=\"%g\" y=\"%.1f\" width=\"%.1f\" height=\"11\"><title>%s: %s</title></rect>\n",
          half == 0 ? "before" : "after", kNames, top, std::max(1.0, ns / longest * room), html_text(name),
          time_text(ns));
      text_at(&out, kNames + ns / longest * room + 6, top + 10, "start", time_text(ns));
      ++half;
    }
    y += kRow;
  }
  return out + "</svg>\n";
}

std::string curves_svg(const std::vector<Curve>& curves) {
  int64_t trials = 1;
  double worst = 1;
  for (const Curve& curve : curves) {
    if (curve.best.empty()) continue;
    trials = std::max(trials, curve.best.back().first);
    worst = std::max(worst, curve.best.front().second / curve.best.back().second);
  }
  constexpr double kHeight = 320;
  const double floor = kHeight - kBottom, most = std::max(1.1, worst);
  const auto x = [&](double at) { return kLeft + at / static_cast<double>(trials) * (kWidth - kLeft - kRight); };
  const auto y = [&](double times) { return floor - std::log(times) / std::log(most) * (floor - kTop); };
  std::string out = begin_svg(kHeight, "Best time of each group by trials, over its last");
  for (int i = 0; i <= 4; ++i) {
    const double times = std::pow(most, i / 4.0), trial = static_cast<double>(trials) * i / 4.0;
    line(&out, "grid", kLeft, y(times), kWidth - kRight, y(times));
    text_at(&out, kLeft - 6, y(times) + 4, "end", absl::StrFormat("%.3gx", times));
    text_at(&out, x(trial), floor + 16, "middle", absl::StrFormat("%.4g", trial));
  }
  text_at(&out, (kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", "trials");
  int colour = 0;
  for (const Curve& curve : curves) {
    if (curve.best.empty()) continue;
    const double last = curve.best.back().second;
    std::string points;
    double before = 0;
    for (const auto& [trial, ns] : curve.best) {
      if (before > 0) absl::StrAppendFormat(&points, "%.1f,%.1f ", x(static_cast<double>(trial)), y(before / last));
      absl::StrAppendFormat(&points, "%.1f,%.1f ", x(static_cast<double>(trial)), y(ns / last));
      before = ns;
    }
    absl::StrAppendFormat(
        &out, "<polyline class=\"curve c%d\" points=\"%s%.1f,%.1f\"><title>%s: %s</title></polyline>\n", colour++ % 6,
        points, x(static_cast<double>(trials)), y(1), html_text(curve.name), time_text(last));
  }
  return out + "</svg>\n";
}

std::string roofline_svg(const Json& groups, const Limits& limits) {
  struct Point {
    double intensity, gflops;
    std::string what;
  };
  std::vector<Point> points;
  for (const Json& group : groups) {
    const double flops = number_in(group, "flops"), bytes = number_in(group, "bytes"), ns = number_in(group, "best_ns");
    if (flops <= 0 || bytes <= 0 || ns <= 0) continue;
    points.push_back(
        {flops / bytes, flops / ns,
         absl::StrFormat("%s: %.3g operations a byte, %.3g G/s", text_in(group, "what"), flops / bytes, flops / ns)});
  }
  if (points.empty()) return "";
  double low = points[0].intensity, high = low, slow = points[0].gflops, fast = std::max(slow, limits.gflops);
  for (const Point& point : points) {
    low = std::min(low, point.intensity), high = std::max(high, point.intensity);
    slow = std::min(slow, point.gflops), fast = std::max(fast, point.gflops);
  }
  constexpr double kHeight = 380;
  const LogScale x(low, high * 1.01, kLeft, kWidth - kRight), y(slow, fast * 1.01, kHeight - kBottom, kTop);
  std::string out = begin_svg(kHeight, "Operations a second of every kernel beside the machine's limits");
  grid(&out, x, y);
  const double from = std::pow(10, x.least), to = std::pow(10, x.most), bottom = std::pow(10, y.least);
  double share = 0.1;
  for (const auto& [name, rate] : limits.rates) {
    // The line of a memory begins where it enters the chart, at the left or bottom edge, and ends at the peak of
    // arithmetic.
    const double begin = std::max(from, bottom / rate),
                 end = limits.gflops > 0 ? std::min(to, limits.gflops / rate) : to;
    if (end <= begin) continue;
    line(&out, "limit", x.at(begin), y.at(begin * rate), x.at(end), y.at(end * rate));
    // Each memory's name stands at another part of its line, so that names do not overlap.
    const double at = begin * std::pow(end / begin, share);
    text_at(&out, x.at(at) + 8, y.at(at * rate) + 12, "start", absl::StrFormat("%s %.3g GB/s", name, rate));
    share += 0.3;
  }
  if (limits.gflops > 0) {
    line(&out, "limit", x.begin, y.at(limits.gflops), x.end, y.at(limits.gflops));
    text_at(&out, x.end, y.at(limits.gflops) - 6, "end",
            absl::StrFormat("%.3g Gflop/s of multiply-adds", limits.gflops));
  }
  for (const Point& point : points)
    absl::StrAppendFormat(&out, "<circle class=\"after\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"><title>%s</title></circle>\n",
                          x.at(point.intensity), y.at(point.gflops), html_text(point.what));
  text_at(&out, (kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", "operations a byte");
  text_at(&out, 4, kTop, "start", "G/s");
  return out + "</svg>\n";
}

}  // namespace wl
