import {bytes, facts, find, live, parts, speedUp, table, time, title} from "/web/page.js";

const show = table("times", (row) => row.name, (row) => [
  row.name,
  {text: time(row.median), kind: "number"},
  {text: time(row.samples.length > 0 ? Math.min(...row.samples) : null), kind: "number"},
  {text: time(row.samples.length > 0 ? Math.max(...row.samples) : null), kind: "number"},
  {text: row.samples.length, kind: "number"},
  {text: row.plan, kind: "name"},
]);

const small = (value) => value === null ? "-" : value.toExponential(1);

const tried = (record) => record.in_place.map((one) =>
  `${one.after === record.digest ? "This kernel" : "A later or earlier kernel"} in programs: ${one.outcome}`
  + `${one.seen === "" ? "" : ` (${one.seen})`}${one.calls > 0 ? `, ${one.calls} runs` : ""}`).join("; ");

live(`/api/records/${encodeURIComponent(parts[1])}`, (record) => {
  title(record.name);
  facts("facts", [
    ["Digest", record.digest],
    ["Key", record.key],
    ["Target", `${record.target} on ${record.device}`],
    ["Environment", record.environment],
    ["Speed-up", speedUp(record.default_ns, record.best_ns)],
    ["Error", `${small(record.max_error)}, of ${small(record.bound)} allowed`],
    ["Bytes moved", bytes(record.bytes)],
    ["Strategy", record.strategy],
    ["Measured by", record.measured_by],
    ["Confirmed by", record.confirmed_by],
    ["Tried in place", tried(record)],
    ["Signed by", record.signed_by],
    ["Compiler", record.compiler],
  ]);
  show([{name: "default", median: record.default_ns, samples: record.default_samples_ns, plan: record.default_plan},
    {name: "winner", median: record.best_ns, samples: record.samples_ns, plan: record.plan}]);
  find("graph").textContent = record.graph;
  find("source").textContent = record.source;
  return 0;
});
