import {beforeAfter, roofline, searches, show, spark} from "/web/charts.js";
import {bytes, duration, el, facts, find, live, moment, parts, path, rate, say, speedUp, stateText, table, time, title,
  trialsText} from "/web/page.js";

const id = parts[1];
let curves = {}, groups = [], askCurves = null, askKernels = null, made = "";

function covers(job) {
  return job.covers.map((cover) => [`Timed whole: ${cover.name}`,
    `${cover.kernels} kernels, ${bytes(cover.bytes)}, ${time(cover.least_ns)}` +
      (cover.chosen ? "; chosen" : "") + (cover.why === "" ? "" : `: ${cover.why}`)]);
}

// Marks the time of one kernel per operation, and what follows from it, where it is an estimate.
function about(of) {
  return of.default_estimated ? "~" : "";
}

function totals(job) {
  if (job.totals === null) return [];
  const {totals} = job;
  return [
    ["Kernels", `${totals.kernels_default} before, ${totals.kernels} after`],
    ["Bytes moved", `${bytes(totals.bytes_default)} before, ${bytes(totals.bytes)} after`],
    ["Time", `${about(totals)}${time(totals.default_ns)} before, ${time(totals.best_ns)} after: ` +
      about(totals) + speedUp(totals.default_ns, totals.best_ns)],
    ["Spent", [["compiling", totals.compile_s], ["checking", totals.check_s], ["measuring", totals.measure_s]]
      .map(([what, seconds]) => `${what} ${duration(seconds) || "0 s"}`).join(", ")],
  ];
}

function from(group) {
  if (group.from === "cached") return "the store";
  if (group.compared) return "for comparison";
  return group.confirmed_by ? `${group.from}, confirmed` : group.from || (group.done ? "searched" : "");
}

const showGroups = table("groups", (group) => group.key, (group) => {
  const {better, trials} = curves[group.key] ?? {better: [], trials: 0};
  return [
    {text: group.name, href: path("jobs", id, "groups", group.key), kind: "name"},
    {text: group.count, kind: "number"},
    {text: trialsText(group), kind: "number"},
    trials === 0 ? "" : {stamp: JSON.stringify([better, trials]), node: () => spark(better, trials, group.name)},
    {text: about(group) + time(group.default_ns), kind: "number"},
    {text: time(group.best_ns), kind: "number"},
    {text: about(group) + speedUp(group.default_ns, group.best_ns), kind: "number"},
    from(group),
  ];
});

const showKernels = table("kernels", (kernel) => kernel.key, (kernel, number) => {
  const {bound_ns: bound, best_ns: best, flops, bytes: moved} = kernel;
  const name = `${number}: ${kernel.name}`;
  return [
    {stamp: name, kind: "name", node: () => el("span", {id: `kernel-${number}`, tabindex: "-1"}, name)},
    {text: moved > 0 ? (flops / moved).toPrecision(3) : "-", kind: "number"},
    {text: best === null ? "-" : rate(flops / best, "FLOP/s"), kind: "number"},
    {text: best === null ? "-" : rate(moved / best, "B/s"), kind: "number"},
    {text: time(best), kind: "number"},
    {text: time(bound), kind: "number"},
    {text: bound === null || best === null ? "-" : `${Math.round(100 * bound / best)} %`, kind: "number"},
  ];
});

// Shows a chart in its section, which is hidden if there is nothing to draw.
function chart(section, place, draw) {
  find(section).hidden = draw(0) === null;
  if (!find(section).hidden) show(find(place), draw);
}

live(`/api/jobs/${encodeURIComponent(id)}`, (job) => {
  title(`Job ${job.id}${job.label === "" ? "" : `: ${job.label}`}`);
  say(`State of the job: ${stateText(job)}${job.error ? `: ${job.error}` : ""}.`, job.error ? "error" : "");
  groups = job.groups;
  facts("facts", [
    ["State", stateText(job) + (job.done || job.phase === "" ? "" : `, ${job.phase}`)],
    ["Trials", job.trials_total > 0 ? `${job.trials_done} of ${job.trials_total}` : ""],
    ["Target", `${job.target}${job.device === "" ? "" : ` on ${job.device}`}`],
    ["Workers", job.done ? "" : String(job.workers)],
    ["Created", moment(job.created_ms)],
    [job.done ? "Took" : "Runs for", duration(job.elapsed_s)],
    ["Left, about", job.done ? "" : duration(job.left_s)],
    ...totals(job),
    ...covers(job),
    ["Options", `${job.options.strategy}, cover ${job.options.cover}, ${job.options.trials} trials per group` +
      (job.options.budget_s > 0 ? `, ${duration(job.options.budget_s)} in all` : "")],
  ]);
  find("links").replaceChildren(el("a", {href: path("jobs", id, "graph")}, "The fused graph, and why it is cut so"));
  showGroups(groups);
  chart("before-after", "before-chart", (width) => beforeAfter(job.groups.filter((group) => !group.compared), width));
  // The browser asks for curves and kernels only when they may have changed.
  if (askCurves === null) askCurves = live(`/api/jobs/${encodeURIComponent(id)}/curves`, showCurves);
  else askCurves();
  const finished = `${job.done} ${groups.filter((group) => group.done).length}`;
  if (askKernels === null) askKernels = live(`/api/jobs/${encodeURIComponent(id)}/kernels`, showRoofline);
  else if (finished !== made) askKernels();
  made = finished;
  return job.done ? 0 : 2000;
});

function showCurves(answer) {
  curves = answer.curves;
  showGroups(groups);
  const drawn = groups.map((group) => ({name: group.name, better: [], trials: 0, ...curves[group.key]}));
  chart("search", "search-chart", (width) => searches(drawn, width));
  return 0;
}

function showRoofline(answer) {
  showKernels(answer.kernels);
  chart("roofline", "roofline-chart", (width) => answer.kernels.length > 0 ? roofline(answer, width) : null);
  return 0;
}
