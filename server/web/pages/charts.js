// Draws charts as SVG. Each chart is an image with a label for screen readers, beside a table of its figures.
import {el, svg, time} from "/web/page.js";

const WIDTH = 640, HEIGHT = 300, LEFT = 64, RIGHT = 16, TOP = 14, BOTTOM = 40;

function picture(width, height, label, ...children) {
  const attributes = {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label};
  return svg("svg", attributes, ...children);
}

const line = (kind, ...points) =>
  svg("polyline", {class: kind, points: points.map((point) => point.join(",")).join(" ")});
const text = (x, y, anchor, content) => svg("text", {x, y, "text-anchor": anchor, class: "small"}, content);
const grid = (y, label) => [line("grid", [LEFT, y], [WIDTH - RIGHT, y]), text(LEFT - 6, y + 4, "end", label)];
const short = (value) => String(Number(value.toPrecision(2)));

// Returns a function that maps values to coordinates on a logarithmic scale.
function logarithmic(least, most, from, to) {
  const low = Math.log10(least), high = Math.log10(most);
  return (value) => from + (to - from) * (Math.log10(value) - low) / Math.max(high - low, 1e-9);
}

// Returns the labelled values of a logarithmic axis: 1, 2 and 5 of each decade, or powers of ten if there are many.
function ticks(least, most) {
  const found = [], many = most / least > 1e3;
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); ++power) {
    for (const digit of many ? [1] : [1, 2, 5]) {
      const value = digit * 10 ** power;
      if (value >= least * 0.999 && value <= most * 1.001) found.push(value);
    }
  }
  return found;
}

function wholeTicks(most) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((one) => most / one <= 8) ?? most;
  return Array.from({length: Math.floor(most / step) + 1}, (_, number) => number * step);
}

// Returns the steps of the best time so far: [[trial, ns], ...] in the order of trials.
export function steps(points) {
  const better = [];
  for (const [trial, ns] of points)
    if (ns !== null && (better.length === 0 || ns < better[better.length - 1][1])) better.push([trial, ns]);
  return better;
}

// Draws a small curve for a table: the best time so far, by trial.
export function spark(better, trials, name) {
  const width = 140, height = 34;
  if (better.length === 0) return el("span", {class: "quiet"}, "no correct trial yet");
  const most = better[0][1], least = better[better.length - 1][1];
  const x = (trial) => 2 + (width - 4) * trial / Math.max(trials - 1, 1);
  const y = logarithmic(least * 0.98, most * 1.02, height - 3, 3);
  const points = [];
  better.forEach(([trial, ns], at) => {
    if (at > 0) points.push([x(trial), y(better[at - 1][1])]);
    points.push([x(trial), y(ns)]);
  });
  points.push([x(Math.max(trials - 1, better[better.length - 1][0])), y(least)]);
  const label = `${name}: from ${time(most)} to ${time(least)} in ${trials} trials`;
  return picture(width, height, label, line("best", ...points));
}

// Draws the curve of a search: every trial, and the best time so far. `outcome` 0 means correct.
export function curve(points, outcomes, defaultNs, name) {
  const correct = points.filter(([, outcome, ns]) => outcome === 0 && ns !== null);
  if (correct.length === 0) return null;
  const last = points[points.length - 1][0];
  const better = steps(correct.map(([trial, , ns]) => [trial, ns]));
  const best = better[better.length - 1][1];
  const times = correct.map(([, , ns]) => ns).concat(defaultNs ?? []);
  // Trials over 100 times slower than the best are left out, since the scale would hide the differences of others.
  const most = Math.min(Math.max(...times), best * 100) * 1.05, least = best * 0.95;
  const x = (trial) => LEFT + (WIDTH - LEFT - RIGHT) * trial / Math.max(last, 1);
  const y = logarithmic(least, most, HEIGHT - BOTTOM, TOP);
  const parts = ticks(least, most).flatMap((value) => grid(y(value), time(value)));
  for (const value of wholeTicks(last)) parts.push(text(x(value), HEIGHT - BOTTOM + 16, "middle", String(value)));
  parts.push(line("axis", [LEFT, TOP], [LEFT, HEIGHT - BOTTOM], [WIDTH - RIGHT, HEIGHT - BOTTOM]),
    text((LEFT + WIDTH) / 2, HEIGHT - 6, "middle", "trial"));
  if (defaultNs !== null && defaultNs <= most && defaultNs >= least) {
    parts.push(line("default", [LEFT, y(defaultNs)], [WIDTH - RIGHT, y(defaultNs)]),
      text(WIDTH - RIGHT, y(defaultNs) - 5, "end", "before"));
  }
  for (const [trial, outcome, ns] of points) {
    if (outcome !== 0) {
      parts.push(svg("path", {class: "failed", d: `M${x(trial)} ${HEIGHT - BOTTOM}v-7`},
        svg("title", {}, `trial ${trial}: ${outcomes[outcome]}`)));
    } else if (ns !== null && ns <= most) {
      parts.push(svg("circle", {class: "dot", cx: x(trial), cy: y(ns), r: 2.5},
        svg("title", {}, `trial ${trial}: ${time(ns)}`)));
    }
  }
  const path = [];
  better.forEach(([trial, ns], at) => {
    if (at > 0) path.push([x(trial), y(Math.min(better[at - 1][1], most))]);
    path.push([x(trial), y(Math.min(ns, most))]);
  });
  path.push([x(last), y(best)]);
  parts.push(line("best", ...path));
  return el("figure", {}, picture(WIDTH, HEIGHT, `${name}: best time against trial number`, ...parts),
    el("figcaption", {}, `Best time against trial number: from ${time(better[0][1])} at trial ${better[0][0]} to ` +
      `${time(best)} at trial ${better[better.length - 1][0]}, of ${points.length} trials. Dots are correct trials, ` +
      "marks on the axis others."));
}

// Draws two bars for each group: the time of all its launches with the default schedule, and with the winner.
export function beforeAfter(groups) {
  const rows = groups.filter((group) => group.best_ns !== null && group.default_ns !== null)
    .map((group) => ({name: group.name, before: group.default_ns * group.count, after: group.best_ns * group.count}))
    .sort((a, b) => b.before - a.before).slice(0, 24);
  if (rows.length === 0) return null;
  const names = 230, bar = 9, row = 30, most = Math.max(...rows.map((one) => Math.max(one.before, one.after)));
  const wide = (ns) => Math.max(1, (WIDTH - names - 80) * ns / most);
  const parts = rows.flatMap((one, number) => {
    const y = number * row + 6;
    const name = one.name.length > 34 ? `${one.name.slice(0, 33)}...` : one.name;
    return [text(names - 8, y + 13, "end", name),
      svg("rect", {class: "bar-before", x: names, y, width: wide(one.before), height: bar}),
      svg("rect", {class: "bar-after", x: names, y: y + bar + 1, width: wide(one.after), height: bar}),
      text(names + wide(one.before) + 5, y + 9, "start", time(one.before)),
      text(names + wide(one.after) + 5, y + bar + 10, "start", time(one.after))];
  });
  const left = groups.length - rows.length;
  const drawing = picture(WIDTH, rows.length * row + 8, "Time of each group before and after the search", ...parts);
  return el("figure", {}, drawing,
    el("figcaption", {}, "Time of all launches of a group: above with the default schedule and one kernel per " +
      `operation, below with the winner.${left > 0 ? ` The table has ${left} more groups.` : ""}`));
}

// Draws a roofline: the rate of arithmetic over operations per byte, on logarithmic scales, below the machine's rates.
export function roofline(data) {
  const marks = data.kernels.map((kernel, number) => ({kernel, number})).filter(({kernel}) => kernel.best_ns !== null);
  if (marks.length === 0) return null;
  const intensity = (kernel, moved) => kernel.flops > 0 && moved > 0 ? kernel.flops / moved : null;
  const memory = data.rates[0].gbps, peak = data.gflops;
  const xs = marks.flatMap(({kernel}) => [intensity(kernel, kernel.bytes), intensity(kernel, kernel.bytes_default)])
    .filter((one) => one !== null);
  const left = Math.min(0.05, ...xs) / 2, right = Math.max(peak / memory * 4, ...xs) * 2;
  // A kernel without arithmetic is drawn at the left edge, as far below the line of the memory as its bandwidth is
  // below that of the memory.
  const at = (kernel, moved, ns) => {
    const x = intensity(kernel, moved) ?? left;
    return [x, x * moved / ns];
  };
  const ys = marks.flatMap(({kernel}) => [at(kernel, kernel.bytes, kernel.best_ns)[1],
    at(kernel, kernel.bytes_default, kernel.default_ns ?? kernel.best_ns)[1]]);
  const low = Math.min(left * memory, ...ys) / 2, high = Math.max(peak, ...ys) * 2;
  const bottom = HEIGHT + 60 - BOTTOM;
  const x = logarithmic(left, right, LEFT, WIDTH - RIGHT), y = logarithmic(low, high, bottom, TOP);
  const parts = ticks(low, high).flatMap((value) => grid(y(value), short(value)));
  for (const value of ticks(left, right)) parts.push(text(x(value), bottom + 16, "middle", short(value)));
  parts.push(line("axis", [LEFT, TOP], [LEFT, bottom], [WIDTH - RIGHT, bottom]),
    text((LEFT + WIDTH) / 2, HEIGHT + 54, "middle", "operations per byte"),
    text(LEFT + 6, TOP + 10, "start", "GFLOP/s"));
  data.rates.forEach((rate, number) => {
    const ridge = Math.min(peak / rate.gbps, right), from = Math.max(left, low / rate.gbps);
    if (from >= ridge) return;
    parts.push(line("roof", [x(from), y(from * rate.gbps)], [x(ridge), y(ridge * rate.gbps)]));
    // The lines of caches are close together, so the last label is above its line and the others are below theirs.
    const label = from * (ridge / from) ** (0.3 + 0.15 * number), above = number === data.rates.length - 1;
    parts.push(text(x(label) + (above ? -6 : 10), y(label * rate.gbps) + (above ? -6 : 12), above ? "end" : "start",
      `${rate.name} ${Math.round(rate.gbps)} GB/s`));
  });
  const fastest = data.rates[data.rates.length - 1].gbps;
  parts.push(line("roof", [x(Math.min(peak / fastest, right)), y(peak)], [x(right), y(peak)]),
    text(WIDTH - RIGHT, y(peak) - 5, "end", `${data.measured ? "" : "nominal "}${Math.round(peak)} GFLOP/s`));
  for (const {kernel, number} of marks) {
    const [after, rate] = at(kernel, kernel.bytes, kernel.best_ns);
    if (kernel.default_ns !== null) {
      const [before, was] = at(kernel, kernel.bytes_default, kernel.default_ns);
      parts.push(line("link", [x(before), y(was)], [x(after), y(rate)]),
        svg("circle", {class: "before", cx: x(before), cy: y(was), r: 4}));
    }
    parts.push(svg("a", {href: `#kernel-${number}`, "aria-label": `kernel ${number}: ${kernel.name}`},
      svg("circle", {class: "after", cx: x(after), cy: y(rate), r: 5},
        svg("title", {}, `${number}: ${kernel.name}, ${time(kernel.best_ns)}`)),
      text(x(after) + 8, y(rate) + 4, "start", String(number))));
  }
  const drawing = picture(WIDTH, HEIGHT + 60, "Roofline of the job's kernels", ...parts);
  drawing.setAttribute("role", "group");  // the role is not "img", since the drawing has links
  return el("figure", {}, drawing, el("figcaption", {}, "Filled marks are the kernels by their number in the table, " +
    "hollow ones the same work with the default schedule and one kernel per operation. Lines are " +
    (data.measured ? "what a worker measured of the machine: reads and multiply-adds of f32. What fits a cache may be above the " +
    "lines of the memories behind it." : "nominal rates of the machine, which kernels may exceed.")));
}
