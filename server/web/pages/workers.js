import {duration, el, find, live, notices, pager, path, query, table} from "/web/page.js";

function lease(doing) {
  const what = `${doing.purpose}: ${doing.step === "" ? "" : `${doing.step}, `}${doing.candidates} candidates`;
  const place = doing.job === null ? " of another team" :
    el("a", {href: doing.key === undefined ? path("jobs", doing.job) : path("jobs", doing.job, "groups", doing.key)},
      `${doing.group ?? "a group"} of job ${doing.job}`);
  return el("div", {}, `${what}, `, place, doing.seconds >= 5 ? `, for ${duration(doing.seconds)}` : "");
}

const show = table("workers", (worker) => worker.name, (worker) => [
  {text: worker.name, kind: "name"},
  {text: worker.alive ? "alive" : "lost", kind: worker.alive ? "good" : "bad"},
  {text: worker.devices.map((device) => `${device.name} (${device.target})`).join(", "), kind: "name"},
  worker.doing.length === 0 ? {text: worker.alive ? "waits" : "", kind: "quiet"} :
    {stamp: JSON.stringify(worker.doing), kind: "name", node: () => el("div", {}, ...worker.doing.map(lease))},
  {text: worker.team === "" ? "all" : worker.team},
  {time: worker.seen_ms, kind: "plain"},
]);
const showWaiting = table("waiting", ([target]) => target,
  ([target, count]) => [target, {text: count, kind: "number"}]);

const after = query.get("after");
live(`/api/workers${after === null ? "" : `?after=${encodeURIComponent(after)}`}`, (answer) => {
  show(answer.workers);
  const waiting = Object.entries(answer.waiting).filter(([, count]) => count > 0);
  showWaiting(waiting);
  find("waiting-part").hidden = waiting.length === 0;
  notices(answer.drained ? "The coordinator is drained: workers get no new work." : "",
    answer.workers.length > 0 || after !== null ? "" :
      "No worker has registered. `warploom-worker --server ADDRESS` starts one.");
  const next = answer.next === null ? null : `/workers?after=${encodeURIComponent(answer.next)}`;
  pager(after === null ? null : "/workers", next, ["First workers", "More workers"]);
  return 2000;
});
