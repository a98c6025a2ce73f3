import {duration, el, live, notices, pager, path, query, stateKind, stateText, table} from "/web/page.js";

function trials(job) {
  if (job.done) return {text: job.trials_done > 0 ? `${job.trials_done}` : "", kind: "plain"};
  if (job.trials_total === 0) return {text: ""};
  return {stamp: `${job.trials_done} ${job.trials_total}`, kind: "plain", node: () => el("span", {},
    el("progress", {max: job.trials_total, value: job.trials_done, "aria-label": `trials of job ${job.id}`}),
    ` ${job.trials_done} of ${job.trials_total}`)};
}

const show = table("jobs", (job) => job.id, (job) => [
  {text: job.id, href: path("jobs", job.id)},
  {text: job.label === "" ? "-" : job.label, kind: "name"},
  {text: stateText(job), kind: stateKind(job)},
  trials(job),
  {text: job.target, kind: "plain"},
  job.device,
  {time: job.created_ms, kind: "plain"},
  {text: duration(job.elapsed_s), kind: "number"},
]);

const before = query.get("before");
live(`/api/jobs?before=${encodeURIComponent(before ?? "")}`, (answer) => {
  show(answer.jobs);
  const all = answer.groups_found + answer.groups_missed, found = document.getElementById("found");
  found.hidden = all === 0;
  found.textContent = `Since the coordinator started, ${answer.groups_found} of ${all} kernels of jobs were in the store ` +
    `(${Math.round(100 * answer.groups_found / Math.max(1, all))} %), which saved ${duration(answer.saved_s)} of search.`;
  notices(answer.drained ? "The coordinator is drained: workers get no new work." : "",
    answer.jobs.length > 0 || before !== null ? "" :
      "There are no jobs yet. `warploom tune model.onnx --server ADDRESS` makes one.");
  const next = answer.next === null ? null : `/?before=${answer.next}`;
  pager(before === null ? null : "/", next, ["Newest jobs", "Older jobs"]);
  return answer.jobs.some((job) => !job.done) ? 2000 : 5000;
});
