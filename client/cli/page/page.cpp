#include "client/cli/page/page.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/page/charts.h"
#include "client/cli/page/style.h"
#include "client/remote/report.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

const Json& part(const Json& json, const char* key) {
  static const Json kNothing = Json::object();
  const auto found = json.find(key);
  return found == json.end() ? kNothing : *found;
}

std::string times_text(double before, double after) {
  return before > 0 && after > 0 ? absl::StrFormat("%.2fx", before / after) : "";
}

std::string section(const std::string& title, const std::string& body) {
  return body.empty() ? "" : cat("<section>\n<h2>", html_text(title), "</h2>\n", body, "</section>\n");
}

struct HtmlColumn {
  const char* title;
  bool text = false;  // whether the column's cells are texts, which are aligned to the left
};

class HtmlTable {
 public:
  HtmlTable(const std::string& caption, const std::vector<HtmlColumn>& columns) : columns_(columns) {
    out_ = cat("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"", html_text(caption),
               "\"><table>\n<caption>", html_text(caption), "</caption>\n<thead><tr>");
    for (const HtmlColumn& column : columns)
      append(&out_, column.text ? "<th scope=\"col\" class=\"text\">" : "<th scope=\"col\">", html_text(column.title),
             "</th>");
    out_ += "</tr></thead>\n<tbody>\n";
  }
  void add(const std::vector<std::string>& cells) {
    out_ += "<tr>";
    for (size_t i = 0; i < cells.size(); ++i)
      append(&out_, columns_[i].text ? "<td class=\"text\"" : "<td", " data-label=\"", html_text(columns_[i].title),
             "\">", html_text(cells[i]), "</td>");
    out_ += "</tr>\n";
  }
  std::string text() const { return out_ + "</tbody></table></div>\n"; }

 private:
  std::vector<HtmlColumn> columns_;
  std::string out_;
};

// Returns the mark of times of one kernel per operation, and of what follows from them, where these are estimates.
std::string estimate_mark(const Json& of) {
  return of.value("default_estimated", false) ? "~" : "";
}

std::string figures(const Json& report) {
  const Json& totals = part(report, "totals");
  const double before = number_in(totals, "default_ns"), after = number_in(totals, "best_ns"),
               whole = number_in(totals, "whole_ns");
  const std::string about = estimate_mark(totals);
  const std::pair<const char*, std::string> all[] = {
      {"one kernel per operation", about + time_text(before)},
      {"tuned, each kernel alone", time_text(after)},
      {"speed-up", about + times_text(before, after)},
      {"the whole program as it runs", whole > 0 ? time_text(whole) : "not timed"},
      {"kernels", cat(text_in(totals, "kernels_default"), " → ", text_in(totals, "kernels"))},
      {"memory traffic",
       absl::StrFormat("%.4g → %.4g MB", number_in(totals, "bytes_default") / 1e6, number_in(totals, "bytes") / 1e6)},
      {"trials", text_in(totals, "trials")},
  };
  std::string out = "<ul class=\"figures\">\n";
  for (const auto& [name, value] : all)
    append(&out, "<li><span class=\"quiet\">", name, "</span> <b>", html_text(value), "</b></li>\n");
  return out + "</ul>\n";
}

std::string groups_table(const Json& groups) {
  HtmlTable table("Groups: operations that share a kernel. Times are of one occurrence; ~: estimated.",
                  {{"what", true},
                   {"count"},
                   {"kernels"},
                   {"default"},
                   {"best"},
                   {"speed-up"},
                   {"Gop/s"},
                   {"GB/s"},
                   {"error/bound"}});
  int number = 0;
  for (const Json& group : groups) {
    const double before = number_in(group, "default_ns"), after = number_in(group, "best_ns");
    const auto rate = [&](const char* key) {
      return after > 0 ? absl::StrFormat("%.4g", number_in(group, key) / after) : std::string();
    };
    table.add({cat(number++, ": ", text_in(group, "what")), text_in(group, "count"),
               cat(text_in(group, "kernels_default"), " → ", text_in(group, "kernels")),
               estimate_mark(group) + time_text(before), time_text(after),
               estimate_mark(group) + times_text(before, after), rate("flops"), rate("bytes"),
               cat(number_text(number_in(group, "max_error")), "/", number_text(number_in(group, "bound")))});
  }
  return table.text();
}

std::string schedules(const Json& groups) {
  HtmlTable table("The schedule of each group's kernel", {{"group", true}, {"schedule", true}});
  int number = 0;
  for (const Json& group : groups) table.add({cat(number++, ": ", text_in(group, "what")), text_in(group, "plan")});
  return cat("<details><summary>Schedules</summary>\n", table.text(), "</details>\n");
}

std::string covers_table(const Json& covers) {
  if (covers.empty()) return "";
  HtmlTable table("Covers that were timed whole before one was chosen", {{"cover", true},
                                                                         {"kernels"},
                                                                         {"MB"},
                                                                         {"kernels alone"},
                                                                         {"least"},
                                                                         {"median"},
                                                                         {"chosen", true},
                                                                         {"why", true}});
  for (const Json& cover : covers)
    table.add({text_in(cover, "name"), text_in(cover, "kernels"),
               absl::StrFormat("%.4g", number_in(cover, "bytes") / 1e6), time_text(number_in(cover, "kernels_ns")),
               time_text(number_in(cover, "least_ns")), time_text(number_in(cover, "median_ns")),
               part(cover, "chosen") == true ? "yes" : "", text_in(cover, "why")});
  return table.text();
}

std::string environment_list(const Json& report) {
  const Json &target = part(report, "target"), &environment = part(report, "environment");
  std::string out = "<dl>\n";
  const auto add = [&](std::string_view name, const std::string& value) {
    append(&out, "<dt>", html_text(name), "</dt><dd>", html_text(value), "</dd>\n");
  };
  add("target", text_in(target, "name"));
  add("device", text_in(target, "device"));
  for (const char* key : {"warploom", "compiler", "driver"})
    if (!text_in(environment, key).empty()) add(key, text_in(environment, key));
  for (const auto& [key, value] : part(environment, "host").items())
    add(key, text_in(part(environment, "host"), key.c_str()));
  return out + "</dl>\n";
}

std::string curves_table(const std::vector<Curve>& curves) {
  HtmlTable table("Best time of each group", {{"group", true}, {"first"}, {"last"}, {"trials"}, {"improvements"}});
  for (const Curve& curve : curves)
    if (!curve.best.empty())
      table.add({curve.name, time_text(curve.best.front().second), time_text(curve.best.back().second),
                 cat(curve.best.back().first), cat(curve.best.size() - 1)});
  return table.text();
}

std::string graph_section(const Page& page) {
  std::string out;
  if (!page.picture.empty())
    append(&out,
           "<div class=\"paper\" tabindex=\"0\" role=\"region\" aria-label=\"The graph; operations of one colour share "
           "a kernel\">\n",
           page.picture, "</div>\n");
  if (!page.why.empty())
    append(&out, "<details><summary>Why each group is what it is</summary><pre>", html_text(page.why),
           "</pre></details>\n");
  return section("The graph", out);
}

// Returns the paragraph that explains the lines of the roofline, and which marks may lie above them.
std::string roof_text(const Limits& limits) {
  std::string out = "<p>";
  if (limits.gflops <= 0)
    out += "Nothing is known of what this machine reaches.";
  else if (limits.measured)
    out +=
        "The lines are what the worker measured of this machine: reads from its memory and from each of its caches, "
        "and multiply-adds of f32. Other load at that moment makes them lower.";
  else
    out += "No worker has measured this machine: the lines are rates of the cost model, which kernels may exceed.";
  return out +
         " A kernel is timed again and again, so what it reads lies in the nearest cache that has room for it: it may "
         "be above the lines of the memories behind that one. Products of narrower types by matrix instructions may "
         "be above the line of multiply-adds.</p>\n";
}

}  // namespace

Limits measured_limits(const Json& report) {
  const Json& rates = part(part(report, "environment"), "rates");
  Limits out;
  out.gflops = number_in(rates, "gflops");
  for (const Json& memory : part(rates, "memories"))
    if (const double gbps = number_in(memory, "gbps"); gbps > 0) out.rates.emplace_back(text_in(memory, "name"), gbps);
  out.measured = out.gflops > 0;
  return out.measured ? out : Limits();
}

std::string page_html(const Page& page) {
  static const Json kNone = Json::array();
  const Json& groups = page.report.contains("groups") ? page.report["groups"] : kNone;
  const bool watched =
      std::any_of(page.curves.begin(), page.curves.end(), [](const Curve& curve) { return curve.best.size() > 1; });
  const std::string title = html_text(page.title), roofline = roofline_svg(groups, page.limits);
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
      title, " – Warploom</title>\n<style>\n", page_style(), "</style>\n</head>\n<body>\n<main>\n<h1>", title,
      "</h1>\n", figures(page.report),
      section(
          "Before and after",
          cat("<p><span class=\"key before\"></span>one kernel per operation<span class=\"key after\"></span>tuned; "
              "all occurrences of a group together</p>\n",
              bars_html(groups), groups_table(groups), schedules(groups))),
      watched ? section("The search", curves_svg(page.curves) + curves_table(page.curves)) : "",
      roofline.empty() ? "" : section("What the machine allows", roof_text(page.limits) + roofline),
      section("Covers", covers_table(part(page.report, "covers"))), graph_section(page),
      section("Environment", environment_list(page.report)), "</main>\n</body>\n</html>\n");
}

}  // namespace wl
