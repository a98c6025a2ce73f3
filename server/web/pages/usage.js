import {duration, el, facts, find, live, notices, path, query, svg, table, time} from "/web/page.js";

const SHOWN = 12;  // rows of each table of shares
const KINDS = ["tuned", "predicted", "default"];
const BEGIN = "No program has said in the last week what it runs. Programs count what they load from this coordinator: " +
  "with `warploom::Client` of the C library, with `warploom.Client(server)` of Python, or by `torch.compile` with the " +
  "backend warploom and a server. They say it about once a minute, unless they switch it off (no_counts, counts=False).";

const seconds = (row) => KINDS.reduce((sum, kind) => sum + row[kind].s, 0);
const calls = (row) => KINDS.reduce((sum, kind) => sum + row[kind].calls, 0);
const percent = (part, all) => all > 0 ? `${Number((100 * part / all).toPrecision(2))} %` : "0 %";

// Returns a time of seconds in words, also for much less than a second and for many hours.
function length(s) {
  if (!(s > 0)) return "0 s";
  if (s < 1) return time(s * 1e9);
  return s < 36e4 ? duration(s) : `${Math.round(s / 3600).toLocaleString("en")} h`;
}

function count(number) {
  return number < 10 ? String(Number(number.toPrecision(2))) : Math.round(number).toLocaleString("en");
}

// Draws the shares of kinds in a row's time as a bar, whose length is the row's share of the longest row.
function bar(row, most) {
  const all = seconds(row), width = most > 0 ? 100 * all / most : 0;
  const label = KINDS.map((kind) => `${kind} ${percent(row[kind].s, all)}`).join(", ");
  const picture = svg("svg", {class: "share", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": label});
  let x = 0;
  for (const kind of KINDS) {
    const part = all > 0 ? width * row[kind].s / all : 0;
    picture.append(svg("rect", {class: kind, x, y: 0, width: part, height: 10}));
    x += part;
  }
  return picture;
}

function shares(id, none) {
  let most = 0;
  const show = table(id, (row) => row.name, (row) => [
    {text: row.name === "" ? none : row.name, kind: "name"},
    {stamp: JSON.stringify([row, most]), kind: "bar", node: () => bar(row, most)},
    {text: length(seconds(row)), kind: "number"},
    {text: count(calls(row)), kind: "number"},
    ...KINDS.map((kind) => ({text: percent(row[kind].s, seconds(row)), kind: "number"})),
    ...(row.saved_s === undefined ? [] : [
      {text: length(row.saved_s), kind: "number"}, {text: length(row.cost_s), kind: "number"},
      {text: count(row.missed), kind: "number"}]),
  ]);
  return (rows, more) => {
    most = Math.max(0, ...rows.map(seconds));
    show(rows.slice(0, SHOWN));
    const others = more + Math.max(0, rows.length - SHOWN);
    find(`more-${id}`).hidden = others === 0;
    find(`more-${id}`).textContent = `${count(others)} more, of less time, are not shown.`;
  };
}

// Returns what a row is of: its model, its device and its team.
const of = (row) => [row.model, row.device === "" ? row.target : `${row.device} (${row.target})`,
  row.team === "" ? "" : `team ${row.team}`].filter((part) => part !== "").join(", ");

const showTeams = shares("teams", "no team"), showDevices = shares("devices", "-"), showModels = shares("models", "-");
const showKernels = table("kernels", (kernel) => `${kernel.team} ${kernel.key}`, (kernel) => [
  {stamp: `${kernel.name} ${kernel.digest}`, kind: "name", node: () => el("div", {},
    el("a", {href: path("records", kernel.digest)}, kernel.name), el("div", {class: "quiet"}, kernel.key.slice(0, 12)))},
  {text: of(kernel), kind: "name"},
  kernel.kind,
  {text: length(kernel.saving_s_per_day), kind: "number"},
  {text: length(kernel.s_per_day), kind: "number"},
  {text: count(kernel.calls_per_day), kind: "number"},
  {text: time(kernel.best_ns), kind: "number"},
  {text: time(kernel.default_ns), kind: "number"},
  {text: time(kernel.bound_ns), kind: "number"},
  {text: kernel.trials, kind: "number"},
  {text: kernel.stopped === "" ? "when workers have nothing else to do" : `none: ${kernel.stopped}`, kind: "name"},
]);
const showMissed = table("missed", (graph) => graph.job, (graph) => [
  {text: of(graph), kind: "name"},
  {text: graph.job, href: path(...graph.job.split("/")), kind: "plain"},
  {text: count(graph.count), kind: "number"},
  {time: graph.last_unix_ms, kind: "plain"},
  {text: graph.why, kind: "name"},
]);

live(`/api/usage?limit=${encodeURIComponent(query.get("limit") ?? 50)}`, (answer) => {
  const ran = answer.kernels_in_all > 0;
  notices(ran || answer.left_out > 0 ? "" : BEGIN,
    answer.left_out === 0 ? "" : `${count(answer.left_out)} kernels are not in these sums: the store has no record of them any more, or they are too many.`);
  find("sums").hidden = !ran && answer.teams.length === 0;
  const days = answer.days === 1 ? "today" : `the last ${answer.days} days`;
  find("span").textContent = !ran ? "" :
    `Sums of ${days} (UTC), as programs counted. Times are estimates from launches that were timed; where none was, the time of the record counts.`;
  facts("facts", [
    ["Device time of programs", ran ? `${length(seconds(answer.total))} in ${count(calls(answer.total))} launches` : "none"],
    ["Tuning has saved", `${length(answer.saved_s)}: launches times how much faster the present kernel is than its default schedule`],
    ["Searches took", `${length(answer.cost_s)} of workers for ${count(answer.trials)} candidates, compilation included`],
  ]);
  showTeams(answer.teams, answer.more.teams);
  showDevices(answer.devices, answer.more.devices);
  showModels(answer.models, answer.more.models);
  find("worth").hidden = !ran;
  find("worth-text").textContent = (answer.kernels.length < answer.kernels_in_all ?
    `The first ${answer.kernels.length} of ${count(answer.kernels_in_all)} kernels, by ` : "By ") +
    "what the next search of each is expected to save each day: an estimate from what searches have saved so far.";
  showKernels(answer.kernels);
  find("misses").hidden = answer.missed.length === 0;
  find("misses-text").textContent = (answer.missed.length < answer.missed_in_all ?
    `The first ${answer.missed.length} of ${count(answer.missed_in_all)} graphs, by how often ` : "How often ") +
    "programs asked for kernels of a graph in the last week that the store did not have, without waiting for a search.";
  showMissed(answer.missed);
  return 10000;
});
