#include "client/cli/page/charts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/remote/report.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr int kColours = 6, kDashes = 3;  // numbers of colours and of dash patterns in the page's style sheet
constexpr double kNear = 4;               // distance in % of the plot below which labels of points overlap

// A chart takes the width of its page, so positions in it are percentages of the plot. Texts keep their size, and stand
// at distances in pixels from such positions. Labels of axes are in the margins around the plot.
std::string begin_svg(const std::string& label) {
  return absl::StrFormat("<svg class=\"chart\" role=\"img\" aria-label=\"%s\">\n", html_text(label));
}

// `x`, `y`: position in % of the plot; `dx`, `dy`: distance of the text from it, in pixels.
void text_at(std::string* out, double x, double y, double dx, double dy, std::string_view anchor,
             std::string_view text) {
  absl::StrAppendFormat(out, "<text x=\"%.2f%%\" y=\"%.2f%%\" dx=\"%g\" dy=\"%g\" text-anchor=\"%s\">%s</text>\n", x, y,
                        dx, dy, anchor, html_text(text));
}

// A logarithmic scale between two powers of ten.
struct LogScale {
  double least, most, begin, end;  // least and greatest exponent of ten on the axis, and their positions in %
  LogScale(double low, double high, double from, double to) : begin(from), end(to) {
    least = std::floor(std::log10(low) + 1e-9);
    most = std::max(least + 1, std::ceil(std::log10(high) - 1e-9));
  }
  double at(double value) const { return begin + (std::log10(value) - least) / (most - least) * (end - begin); }
};

std::string power_text(int exponent) {
  return exponent > -4 && exponent < 4 ? absl::StrFormat("%g", std::pow(10, exponent))
                                       : absl::StrFormat("1e%d", exponent);
}

void line(std::string* out, std::string_view kind, double x1, double y1, double x2, double y2) {
  absl::StrAppendFormat(out, "<line class=\"%s\" x1=\"%.2f%%\" y1=\"%.2f%%\" x2=\"%.2f%%\" y2=\"%.2f%%\"/>\n", kind, x1,
                        y1, x2, y2);
}

void label_x(std::string* out, double x, std::string_view text) {
  line(out, "grid", x, 0, x, 100);
  text_at(out, x, 100, 0, 18, "middle", text);
}

void label_y(std::string* out, double y, std::string_view text) {
  line(out, "grid", 0, y, 100, y);
  text_at(out, 0, y, -6, 4, "end", text);
}

// Writes the titles of the axes: `x` below the labels of the horizontal axis, `y` above those of the vertical axis.
void axes(std::string* out, std::string_view x, std::string_view y) {
  text_at(out, 50, 100, 0, 38, "middle", x);
  text_at(out, 0, 0, -50, -12, "start", y);
}

// Draws the limits of a roofline: a line for the rate of each memory, and one for the peak rate of arithmetic.
void draw_limits(std::string* out, const Limits& limits, const LogScale& x, const LogScale& y) {
  const double from = std::pow(10, x.least), to = std::pow(10, x.most), bottom = std::pow(10, y.least);
  double share = 0.1;
  for (const auto& [name, rate] : limits.rates) {
    // The line of a memory begins where it enters the chart, at the left or bottom edge, and ends at the peak of
    // arithmetic.
    const double begin = std::max(from, bottom / rate),
                 end = limits.gflops > 0 ? std::min(to, limits.gflops / rate) : to;
    if (end <= begin) continue;
    line(out, "limit", x.at(begin), y.at(begin * rate), x.at(end), y.at(end * rate));
    // Each memory's name stands at another part of its line, so that names do not overlap.
    const double at = begin * std::pow(end / begin, share);
    const bool left = x.at(at) > 60;
    text_at(out, x.at(at), y.at(at * rate), left ? -8 : 8, left ? -6 : 12, left ? "end" : "start",
            absl::StrFormat("%s %.3g GB/s", name, rate));
    share += 0.3;
  }
  if (limits.gflops <= 0) return;
  line(out, "limit", x.begin, y.at(limits.gflops), x.end, y.at(limits.gflops));
  text_at(out, x.end, y.at(limits.gflops), 0, -6, "end",
          absl::StrFormat("%.3g Gflop/s of multiply-adds", limits.gflops));
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

std::string bars_html(const Json& groups) {
  double longest = 0;
  for (const Json& group : groups)
    longest = std::max({longest, number_in(group, "default_ns") * number_in(group, "count"),
                        number_in(group, "best_ns") * number_in(group, "count")});
  if (longest <= 0) return "";
  std::string out = "<ul class=\"bars\">\n";
  int number = 0;
  for (const Json& group : groups) {
    append(&out, "<li>", number++, ": ", html_text(text_in(group, "what")), "\n");
    for (const auto& [key, kind] : {std::pair("default_ns", "before"), std::pair("best_ns", "after")}) {
      const double ns = number_in(group, key) * number_in(group, "count");
      absl::StrAppendFormat(&out, "<div><span class=\"%s\" style=\"width:%.2f%%\"></span>%s</div>\n", kind,
                            100 * ns / longest, time_text(ns));
    }
    out += "</li>\n";
  }
  return out + "</ul>\n";
}

std::string curves_svg(const std::vector<Curve>& curves) {
  int64_t trials = 1;
  double worst = 1;
  for (const Curve& curve : curves) {
    if (curve.best.empty()) continue;
    trials = std::max(trials, curve.best.back().first);
    worst = std::max(worst, curve.best.front().second / curve.best.back().second);
  }
  const double most = std::max(1.1, worst);
  const auto x = [&](int64_t at) { return 100 * static_cast<double>(at) / static_cast<double>(trials); };
  const auto y = [&](double times) { return 100 - 100 * std::log(times) / std::log(most); };
  std::string out = begin_svg("Best time of each group by trials, over its last"), lines, keys;
  for (int i = 0; i <= 4; ++i) {
    const double times = std::pow(most, i / 4.0);
    const int64_t trial = trials * i / 4;
    label_y(&out, y(times), absl::StrFormat("%.3gx", times));
    label_x(&out, x(trial), cat(trial));
  }
  axes(&out, "trials", "best time so far / best time");
  int number = 0;
  for (const Curve& curve : curves) {
    if (curve.best.empty()) continue;
    const double last = curve.best.back().second;
    const std::string kind = absl::StrFormat("c%d d%d", number % kColours, number / kColours % kDashes);
    ++number;
    absl::StrAppendFormat(&lines, "<polyline class=\"curve %s\" points=\"", kind);
    double before = 0;
    for (const auto& [trial, ns] : curve.best) {
      if (before > 0) absl::StrAppendFormat(&lines, "%.2f,%.2f ", x(trial), y(before / last));
      absl::StrAppendFormat(&lines, "%.2f,%.2f ", x(trial), y(ns / last));
      before = ns;
    }
    absl::StrAppendFormat(&lines, "100,100\"><title>%s: %s</title></polyline>\n", html_text(curve.name),
                          time_text(last));
    append(&keys, "<li><span class=\"", kind, "\"></span>", html_text(curve.name), "</li>\n");
  }
  // The inner picture is stretched to the plot, without its lines becoming wider.
  return cat(out, "<svg viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\" width=\"100%\" height=\"100%\">\n", lines,
             "</svg>\n</svg>\n<ul class=\"keys\">\n", keys, "</ul>\n");
}

std::string roofline_svg(const Json& groups, const Limits& limits) {
  struct Point {
    int number;
    double intensity, gflops;
    std::string what;
  };
  std::vector<Point> points;
  int number = -1;
  for (const Json& group : groups) {
    ++number;
    const double flops = number_in(group, "flops"), bytes = number_in(group, "bytes"), ns = number_in(group, "best_ns");
    if (flops <= 0 || bytes <= 0 || ns <= 0) continue;
    points.push_back({number, flops / bytes, flops / ns,
                      absl::StrFormat("%d: %s: %.3g operations a byte, %.3g G/s", number, text_in(group, "what"),
                                      flops / bytes, flops / ns)});
  }
  if (points.empty()) return "";
  double low = points[0].intensity, high = low, slow = points[0].gflops, fast = std::max(slow, limits.gflops);
  for (const Point& point : points) {
    low = std::min(low, point.intensity), high = std::max(high, point.intensity);
    slow = std::min(slow, point.gflops), fast = std::max(fast, point.gflops);
  }
  const LogScale x(low, high * 1.01, 0, 100), y(slow, fast * 1.01, 100, 0);
  std::string out = begin_svg("Operations a second of every kernel beside the machine's limits");
  for (int power = static_cast<int>(x.least); power <= static_cast<int>(x.most); ++power)
    label_x(&out, x.at(std::pow(10, power)), power_text(power));
  for (int power = static_cast<int>(y.least); power <= static_cast<int>(y.most); ++power)
    label_y(&out, y.at(std::pow(10, power)), power_text(power));
  axes(&out, "operations a byte", "operations a second, in G/s");
  draw_limits(&out, limits, x, y);
  for (auto point = points.begin(); point != points.end(); ++point) {
    const double across = x.at(point->intensity), down = y.at(point->gflops);
    absl::StrAppendFormat(&out,
                          "<circle class=\"after\" cx=\"%.2f%%\" cy=\"%.2f%%\" r=\"5\"><title>%s</title></circle>\n",
                          across, down, html_text(point->what));
    // The numbers of points that are close together stand side by side.
    const auto near = std::count_if(points.begin(), point, [&](const Point& other) {
      return std::abs(x.at(other.intensity) - across) < kNear && std::abs(y.at(other.gflops) - down) < kNear;
    });
    const double aside = 8 + 20 * static_cast<double>(near);
    text_at(&out, across, down, across < 80 ? aside : -aside, 4, across < 80 ? "start" : "end", cat(point->number));
  }
  return out + "</svg>\n";
}

}  // namespace wl
