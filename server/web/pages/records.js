import {el, find, live, notices, pager, path, query, speedUp, table, time} from "/web/page.js";

const show = table("records", (record) => record.digest, (record) => [
  {text: record.digest.slice(0, 12), href: path("records", record.digest)},
  {text: record.name, kind: "name"},
  {text: record.target, kind: "plain"},
  record.device,
  {text: time(record.default_ns), kind: "number"},
  {text: time(record.best_ns), kind: "number"},
  {text: speedUp(record.default_ns, record.best_ns), kind: "number"},
  {text: record.measured_by, kind: "name"},
  {time: record.created_ms, kind: "plain"},
]);

function address(base, after) {
  const wanted = new URLSearchParams();
  for (const name of ["model", "machine"]) if (query.get(name)) wanted.set(name, query.get(name));
  if (after !== null) wanted.set("after", after);
  return wanted.size > 0 ? `${base}?${wanted}` : base;
}

function choices(name, all) {
  const options = all.map((one) => el("option", {value: one.name}, `${one.name} (${one.count})`));
  find(name).replaceChildren(el("option", {value: ""}, "All"), ...options);
  find(name).value = query.get(name) ?? "";
}

live("/api/records-by", (answer) => {
  choices("model", answer.models);
  choices("machine", answer.machines);
  return 0;
});

const after = query.get("after");
live(address("/api/records", after), (answer) => {
  show(answer.records);
  notices(answer.records.length > 0 ? "" : "No record is here that fits.");
  const next = answer.next === null ? null : address("/records", answer.next);
  pager(after === null ? null : address("/records", null), next, ["Newest records", "Older records"]);
  return 10000;
});
