import {curve, show, steps} from "/web/charts.js";
import {el, facts, find, live, moment, parts, path, speedUp, table, time, title, trialsText} from "/web/page.js";

const [, id, , key] = parts;
const showOutcomes = table("outcomes", ([name]) => name,
  ([name, count]) => [name.replace("_", " "), {text: count, kind: "number"}]);
const showBetter = table("better", ([trial]) => trial, ([trial, ns]) => [trial, {text: time(ns), kind: "number"}]);

live(`/api${path("jobs", id, "groups", key)}`, ({job, group, points, outcomes, record}) => {
  const gain = speedUp(group.default_ns, group.best_ns);
  title(group.name);
  facts("facts", [
    ["Job", el("a", {href: path("jobs", job.id)}, `${job.id}${job.label === "" ? "" : `: ${job.label}`}`)],
    ["Key", group.key],
    ["Launches", group.count > 0 ? String(group.count) : ""],
    ["Before", time(group.default_ns)],
    ["After", time(group.best_ns) + (gain === "-" ? "" : `: ${gain}`)],
    ["Trials", trialsText(group)],
  ]);
  const nothing = points.length > 0 ? "No trial was correct so far." :
    "This job has no trials of this group: its kernel came from the store, or nothing was measured yet.";
  show(find("curve"), (width) => curve(points, outcomes, group.default_ns, group.name, width) ?? el("p", {}, nothing));
  showBetter(steps(points.filter(([, outcome]) => outcome === 0).map(([trial, , ns]) => [trial, ns])));
  showOutcomes(Object.entries(group.outcomes));
  find("winner").hidden = record === null;
  if (record !== null) {
    facts("winner-facts", [
      ["Record", el("a", {href: path("records", record.digest)}, record.digest)],
      ["Plan", record.plan],
      ["Default plan", record.default_plan],
      ["Measured by", record.measured_by],
      ["Confirmed by", record.confirmed_by],
      ["Made", moment(record.created_ms)],
    ]);
  }
  return job.done ? 0 : 2000;
});
