// The functions that all pages share: requests to the coordinator, the form for a token, tables that are updated in
// place, and texts of numbers. Answers may have texts of users, so they are inserted as text and never as markup.

const TOKEN = "warploom-token";
const QUIET = 15000, PATIENCE = 30000;  // in ms: longest pause between requests after failures; time limit of a request

export const find = (id) => document.getElementById(id);

// Makes an element: el("a", {href: "/jobs/7"}, "7") has an attribute and a child. Children are elements or texts.
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

// The parts of the page's path: "/jobs/7" has "jobs" and "7".
export const parts = location.pathname.split("/").filter((part) => part !== "").map(decodeURIComponent);
export const query = new URLSearchParams(location.search);

export function path(...segments) {
  return "/" + segments.map(encodeURIComponent).join("/");
}

export function title(text) {
  find("title").textContent = text;
  document.title = `${text} - Warploom`;
}

// Shows a text as the page's status, which screen readers announce. It is not for texts that change all the time.
export function say(text, kind = "") {
  const status = find("status");
  if (status.textContent !== text) status.textContent = text;
  status.className = text === "" ? "" : kind;
}

export function notices(...texts) {
  const wanted = texts.filter((text) => text !== "");
  const place = find("notices");
  if (place.dataset.texts === JSON.stringify(wanted)) return;
  place.dataset.texts = JSON.stringify(wanted);
  place.replaceChildren(...wanted.map((text) => el("p", {class: "notice"}, text)));
}

// --- asking

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Returns the answer to a GET below /api; null if it has not changed since the answer whose ETag is `seen.tag`.
async function ask(address, seen) {
  const headers = {};
  const token = sessionStorage.getItem(TOKEN);
  if (token !== null) headers["Authorization"] = `Bearer ${token}`;
  if (seen.tag !== undefined) headers["If-None-Match"] = seen.tag;
  const answer = await fetch(address, {headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE)});
  if (answer.status === 304) return null;
  const json = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, json.error ?? `the coordinator answered ${answer.status}`);
  seen.tag = answer.headers.get("ETag") ?? undefined;
  return json;
}

// Asks for an address repeatedly, and calls `show` with each new answer. `show` returns after how many ms to ask again;
// 0: never. Nothing is asked while the page is hidden. Returns a function that asks at once.
export function live(address, show) {
  const seen = {};
  let timer = 0, failures = 0, again = 0, asking = false;

  function later(ms) {
    clearTimeout(timer);
    if (ms > 0 && !document.hidden) timer = setTimeout(run, ms);
  }

  async function run() {
    if (asking) return;
    asking = true;
    try {
      const json = await ask(address, seen);
      if (json !== null) again = show(json) ?? 0;
      if (failures > 0) say("The coordinator answers again.");
      failures = 0;
      if (again > 0) find("fresh").textContent = `Updated ${new Date().toLocaleTimeString()}`;
      if (document.body.dataset.shown !== "yes") performance.mark("shown");
      document.body.dataset.shown = "yes";
    } catch (error) {
      again = failed(error);
    }
    asking = false;
    later(again);
  }

  // Shows an error. Returns after how many ms to ask again; 0: never.
  function failed(error) {
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
      askForToken(error, run);
      return 0;
    }
    if (error instanceof Refused && error.status !== 503) {
      say(sentence(error.message), "error");
      return 0;
    }
    if (!(error instanceof Refused) && !(error instanceof TypeError) && error.name !== "TimeoutError") throw error;
    failures += 1;
    say(error instanceof Refused ? sentence(error.message) : "The coordinator does not answer. Trying again.", "error");
    return Math.min(QUIET, 1000 * 2 ** failures);
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && again > 0) run();
  });
  run();
  return run;
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.?!]$/.test(text) ? "" : ".");
}

// --- tokens

const waiting = new Set();  // functions to be called once a token was entered

function askForToken(error, proceed) {
  waiting.add(proceed);
  const had = sessionStorage.getItem(TOKEN) !== null;
  const nobody = "This coordinator asks who you are. Enter a token: whoever runs the coordinator makes one with " +
    "`warploomd token NAME --callers FILE --role client`. A browser with a client certificate needs none.";
  say(error.status === 401 && !had ? nobody : sentence(error.message), "error");
  if (find("token-form") !== null) return;
  const input = el("input", {id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: "",
    "aria-describedby": "status"});
  const form = el("form", {id: "token-form"}, el("label", {for: "token"}, "Token"), input, el("button", {}, "Use it"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(TOKEN, input.value.trim());
    form.remove();
    say("");
    showForget();
    const all = [...waiting];
    waiting.clear();
    for (const one of all) one();
  });
  find("status").after(form);
  input.focus();
}

// Adds a button that removes the token, which is otherwise kept until the tab is closed.
function showForget() {
  if (sessionStorage.getItem(TOKEN) === null || find("forget") !== null) return;
  const button = el("button", {id: "forget", type: "button"}, "Forget the token");
  button.addEventListener("click", () => {
    sessionStorage.removeItem(TOKEN);
    location.reload();
  });
  document.querySelector("header").append(button);
}
showForget();

// --- tables

// Returns a function that shows items as the rows of a table. A cell is a text, or {text, href, kind, time, node,
// stamp}: `kind` is the cell's class, `time` makes it a date, `node` is a function that makes its element, again
// whenever `stamp` has changed. Rows and links stay the same elements, so that the focus stays. The first cell of a row
// is its heading.
export function table(id, key, cells) {
  const body = find(id), rows = new Map();
  const labels = [...body.parentElement.querySelectorAll("thead th")].map((heading) => heading.textContent);
  return (items) => {
    const wanted = new Set(items.map(key));
    for (const [name, row] of rows) {
      if (wanted.has(name)) continue;
      row.element.remove();
      rows.delete(name);
    }
    let before = null;
    items.forEach((item, number) => {
      const name = key(item);
      if (!rows.has(name)) rows.set(name, {element: el("tr"), shown: []});
      const row = rows.get(name);
      const after = before === null ? body.firstElementChild : before.nextElementSibling;
      if (after !== row.element) body.insertBefore(row.element, after);
      before = row.element;
      cells(item, number).forEach((cell, at) => fill(row, at, labels[at], typeof cell === "object" ? cell : {text: cell}));
    });
  };
}

// `label`: the heading of the cell's column, which narrow screens show above the cell.
function fill(row, at, label, cell) {
  const shown = JSON.stringify({...cell, node: undefined});
  if (row.shown[at] === shown) return;
  row.shown[at] = shown;
  while (row.element.cells.length <= at) {
    const attributes = {"data-label": label};
    row.element.append(row.element.cells.length === 0 ? el("th", {scope: "row", ...attributes}) : el("td", attributes));
  }
  const place = row.element.cells[at];
  place.className = cell.kind ?? "";
  const text = String(cell.text ?? "");
  if (cell.node !== undefined) {
    const held = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    place.replaceChildren(cell.node());
    if (held !== null) place.querySelector(`a[href="${CSS.escape(held)}"]`)?.focus();
  } else if (cell.href !== undefined) {
    const link = place.querySelector("a") ?? el("a");
    link.href = cell.href;
    link.textContent = text;
    if (link.parentNode !== place) place.replaceChildren(link);
  } else if (cell.time !== undefined) {
    place.replaceChildren(moment(cell.time));
  } else {
    place.textContent = text;
  }
}

export function facts(id, pairs) {
  const list = find(id);
  const known = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const stamp = JSON.stringify(known.map(([name, value]) => [name, value instanceof Node ? value.outerHTML : value]));
  if (list.dataset.stamp === stamp) return;
  list.dataset.stamp = stamp;
  list.replaceChildren(...known.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

// Shows the links to other pages of a list. `first`: the address of the first page; null on the first page itself.
export function pager(first, next, names) {
  const links = [];
  if (first !== null) links.push(el("a", {href: first}, names[0]));
  if (next !== null) links.push(el("a", {href: next, rel: "next"}, names[1]));
  const place = find("pager"), stamp = `${first} ${next}`;
  if (place.dataset.stamp === stamp) return;
  place.dataset.stamp = stamp;
  place.replaceChildren(...links);
}

// --- texts

export function moment(ms) {
  if (!(ms > 0)) return "";
  const date = new Date(ms);
  const today = date.toDateString() === new Date().toDateString();
  return el("time", {datetime: date.toISOString(), title: date.toLocaleString()},
    today ? date.toLocaleTimeString() : date.toLocaleString());
}

function scaled(value, steps, digits = 3) {
  let [factor, unit] = steps[0];
  for (const step of steps) if (Math.abs(value) >= step[0]) [factor, unit] = step;
  return `${Number((value / factor).toPrecision(digits))} ${unit}`;
}

export const time = (ns) =>
  ns === null || ns === undefined ? "-" : scaled(ns, [[1, "ns"], [1e3, "us"], [1e6, "ms"], [1e9, "s"]]);
export const bytes = (count) => scaled(count, [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"]]);
export const rate = (perNs, unit) =>
  perNs > 0 ? scaled(perNs * 1e9, [[1e6, `M${unit}`], [1e9, `G${unit}`], [1e12, `T${unit}`]]) : "-";
export const speedUp = (before, after) => before > 0 && after > 0 ? `${(before / after).toFixed(2)}x` : "-";

export function duration(seconds) {
  if (!(seconds > 0)) return "";
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export const trialsText = ({trials_done: done, trials_total: total}) =>
  total > done ? `${done} of ${total}` : `${done}`;

// Returns the state of a job in a few words.
export function stateText(job) {
  if (job.cancelling && !job.done) return "being cancelled";
  if (job.state === "not_cached") return "not in the store";
  return job.cached && job.state === "succeeded" ? "succeeded, from the store" : job.state;
}
export const stateKind = (job) => job.state === "succeeded" ? "good" : job.state === "failed" ? "bad" : "";
