// Draws charts as SVG. Each chart is an image with a label for screen readers, beside a table of its figures. A chart
// is as wide as the element that contains it, so that its texts have the size of the page's texts.
import {el, svg, time} from "/web/page.js";

const LEFT = 64, RIGHT = 16, TOP = 30, BOTTOM = 44;
const NARROWEST = 260, LETTER = 8;  // in pixels: least width of a chart, largest width of a letter
const COLOURS = 6, DASHES = 3;  // numbers of classes of curves in the style sheet: colours c0, c1, .. and dashes d0, ..

// Shows a figure in an element, and draws it again when the element's width changes. `draw` returns the figure for a
// given width in pixels.
export function show(place, draw) {
  if (place.draw === undefined) {
    new ResizeObserver(() => {
      if (widthOf(place) > 0 && widthOf(place) !== place.drawn) redraw(place);
    }).observe(place);
  }
  place.draw = draw;
  redraw(place);
}

function redraw(place) {
  place.drawn = widthOf(place);
  place.replaceChildren(place.draw(Math.max(place.drawn, NARROWEST)));
}

const widthOf = (place) => Math.floor(place.getBoundingClientRect().width);
const heightOf = (width) => Math.round(Math.min(480, Math.max(280, width * 0.4)));

function picture(width, height, label, ...children) {
  const attributes = {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label};
  return svg("svg", attributes, ...children);
}

const line = (kind, ...points) =>
  svg("polyline", {class: kind, points: points.map((point) => point.join(",")).join(" ")});
const text = (x, y, anchor, content) => svg("text", {x, y, "text-anchor": anchor, class: "small"}, content);
const grid = (y, right, label) => [line("grid", [LEFT, y], [right, y]), text(LEFT - 6, y + 4, "end", label)];
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

// Returns the labelled values of an axis of whole numbers: from 0 to at most `most`, and at most `count` + 1 of them.
function wholeTicks(most, count) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((one) => most / one <= count) ?? most;
  return Array.from({length: Math.floor(most / step) + 1}, (_, number) => number * step);
}

// Returns the trials that were faster than all earlier ones, [[trial, ns], ...]: the steps of the best time so far.
export function steps(points) {
  const better = [];
  for (const [trial, ns] of points)
    if (ns !== null && (better.length === 0 || ns < better[better.length - 1][1])) better.push([trial, ns]);
  return better;
}

// Returns the corners of a step curve of the best time so far, whose steps are `better`.
function stairs(better, x, y) {
  return better.flatMap(([trial, ns], at) =>
    at > 0 ? [[x(trial), y(better[at - 1][1])], [x(trial), y(ns)]] : [[x(trial), y(ns)]]);
}

// Returns the axes of a chart of trials up to `last`, and the title of its vertical axis.
function axes(last, x, width, title) {
  const bottom = heightOf(width) - BOTTOM, right = width - RIGHT;
  return [...wholeTicks(last, width / 80).map((value) => text(x(value), bottom + 17, "middle", String(value))),
    line("axis", [LEFT, TOP], [LEFT, bottom], [right, bottom]),
    text((LEFT + right) / 2, heightOf(width) - 8, "middle", "trial"), text(2, 14, "start", title)];
}

// Draws a small curve for a table: the best time so far, by trial.
export function spark(better, trials, name) {
  const width = 140, height = 34;
  if (better.length === 0) return el("span", {class: "quiet"}, "no correct trial yet");
  const most = better[0][1], least = better[better.length - 1][1];
  const x = (trial) => 2 + (width - 4) * trial / Math.max(trials - 1, 1);
  const y = logarithmic(least * 0.98, most * 1.02, height - 3, 3);
  const points = [...stairs(better, x, y), [x(Math.max(trials - 1, better[better.length - 1][0])), y(least)]];
  const label = `${name}: from ${time(most)} to ${time(least)} in ${trials} trials`;
  return picture(width, height, label, line("best", ...points));
}

// Draws the curves of a job's groups, [{name, better, trials}, ...]: the best time so far divided by the final best
// time, by trial. `better`: the result of steps().
export function searches(groups, width) {
  const searched = groups.filter(({better}) => better.length > 0);
  if (searched.length === 0) return null;
  const final = (better) => better[better.length - 1][1];
  const last = Math.max(1, ...searched.map(({better, trials}) => Math.max(trials - 1, better[better.length - 1][0])));
  const most = Math.max(1.1, ...searched.map(({better}) => better[0][1] / final(better)));
  const height = heightOf(width), right = width - RIGHT, bottom = height - BOTTOM;
  const x = (trial) => LEFT + (right - LEFT) * trial / last, y = logarithmic(1, most, bottom, TOP);
  const parts = [0, 0.25, 0.5, 0.75, 1].map((share) => most ** share)
    .flatMap((value) => grid(y(value), right, `${Number(value.toPrecision(3))}x`));
  parts.push(...axes(last, x, width, "best time so far / best time"));
  const kind = (number) => `c${number % COLOURS} d${Math.floor(number / COLOURS) % DASHES}`;
  searched.forEach(({better}, number) => {
    parts.push(line(`curve ${kind(number)}`, ...stairs(better, x, (ns) => y(ns / final(better))), [right, bottom]));
  });
  return el("figure", {}, picture(width, height, "Best time of each group by trial, over its last", ...parts),
    el("ul", {class: "keys"}, ...searched.map(({name}, number) =>
      el("li", {}, el("span", {class: kind(number)}), name))));
}

// Draws the curve of a search: every trial, and the best time so far. `outcome` 0 means correct.
export function curve(points, outcomes, defaultNs, name, width) {
  const correct = points.filter(([, outcome, ns]) => outcome === 0 && ns !== null);
  if (correct.length === 0) return null;
  const last = points[points.length - 1][0];
  const better = steps(correct.map(([trial, , ns]) => [trial, ns]));
  const best = better[better.length - 1][1];
  const times = correct.map(([, , ns]) => ns).concat(defaultNs ?? []);
  // Trials over 100 times slower than the best are left out, since the scale would hide the differences of others.
  const most = Math.min(Math.max(...times), best * 100) * 1.05, least = best * 0.95;
  const height = heightOf(width), right = width - RIGHT, bottom = height - BOTTOM;
  const x = (trial) => LEFT + (right - LEFT) * trial / Math.max(last, 1);
  const y = logarithmic(least, most, bottom, TOP);
  const parts = ticks(least, most).flatMap((value) => grid(y(value), right, time(value)));
  parts.push(...axes(last, x, width, "time of a run"));
  if (defaultNs !== null && defaultNs <= most && defaultNs >= least) {
    parts.push(line("default", [LEFT, y(defaultNs)], [right, y(defaultNs)]),
      text(right, y(defaultNs) - 5, "end", "before"));
  }
  for (const [trial, outcome, ns] of points) {
    if (outcome !== 0) {
      parts.push(svg("path", {class: "failed", d: `M${x(trial)} ${bottom}v-7`},
        svg("title", {}, `trial ${trial}: ${outcomes[outcome]}`)));
    } else if (ns !== null && ns <= most) {
      parts.push(svg("circle", {class: "dot", cx: x(trial), cy: y(ns), r: 2.5},
        svg("title", {}, `trial ${trial}: ${time(ns)}`)));
    }
  }
  parts.push(line("best", ...stairs(better, x, (ns) => y(Math.min(ns, most))), [x(last), y(best)]));
  return el("figure", {}, picture(width, height, `${name}: best time against trial number`, ...parts),
    el("figcaption", {}, `Best time against trial number: from ${time(better[0][1])} at trial ${better[0][0]} to ` +
      `${time(best)} at trial ${better[better.length - 1][0]}, of ${points.length} trials. Dots are correct trials, ` +
      "marks on the axis others."));
}

// Draws two bars for each group: the time of all its launches with the default schedule, and with the winner.
export function beforeAfter(groups, width) {
  const rows = groups.filter((group) => group.best_ns !== null && group.default_ns !== null)
    .map((group) => ({name: group.name, before: group.default_ns * group.count, after: group.best_ns * group.count}))
    .sort((a, b) => b.before - a.before).slice(0, 24);
  if (rows.length === 0) return null;
  const bar = 13, row = 54, most = Math.max(...rows.map((one) => Math.max(one.before, one.after)));
  const wide = (ns) => Math.max(1, (width - 80) * ns / most), letters = Math.floor(width / LETTER);
  const parts = rows.flatMap((one, number) => {
    const y = number * row + 20;
    const name = one.name.length > letters ? `${one.name.slice(0, letters - 3)}...` : one.name;
    return [svg("text", {x: 0, y: y - 6}, name),
      svg("rect", {class: "bar-before", x: 0, y, width: wide(one.before), height: bar}),
      svg("rect", {class: "bar-after", x: 0, y: y + bar + 1, width: wide(one.after), height: bar}),
      text(wide(one.before) + 5, y + 11, "start", time(one.before)),
      text(wide(one.after) + 5, y + bar + 12, "start", time(one.after))];
  });
  const left = groups.length - rows.length;
  const drawing = picture(width, rows.length * row, "Time of each group before and after the search", ...parts);
  return el("figure", {}, drawing,
    el("figcaption", {}, "Time of all launches of a group: above with the default schedule and one kernel per " +
      `operation, below with the winner.${left > 0 ? ` The table has ${left} more groups.` : ""}`));
}

// Draws a roofline: each kernel's arithmetic rate by its operations per byte, on logarithmic scales, and the machine's
// rates as lines above.
export function roofline(data, width) {
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
  const height = heightOf(width) + 40, end = width - RIGHT, bottom = height - BOTTOM;
  const x = logarithmic(left, right, LEFT, end), y = logarithmic(low, high, bottom, TOP);
  const parts = ticks(low, high).flatMap((value) => grid(y(value), end, short(value)));
  for (const value of ticks(left, right)) parts.push(text(x(value), bottom + 17, "middle", short(value)));
  parts.push(line("axis", [LEFT, TOP], [LEFT, bottom], [end, bottom]),
    text((LEFT + end) / 2, height - 8, "middle", "operations per byte"), text(2, 14, "start", "GFLOP/s"));
  data.rates.forEach((rate, number) => {
    const ridge = Math.min(peak / rate.gbps, right), from = Math.max(left, low / rate.gbps);
    if (from >= ridge) return;
    parts.push(line("roof", [x(from), y(from * rate.gbps)], [x(ridge), y(ridge * rate.gbps)]));
    // The lines of caches are close together, so the last line's label is above it and all other labels are below.
    const label = from * (ridge / from) ** (0.3 + 0.15 * number), above = number === data.rates.length - 1;
    parts.push(text(x(label) + (above ? -6 : 10), y(label * rate.gbps) + (above ? -6 : 12), above ? "end" : "start",
      `${rate.name} ${Math.round(rate.gbps)} GB/s`));
  });
  const fastest = data.rates[data.rates.length - 1].gbps;
  parts.push(line("roof", [x(Math.min(peak / fastest, right)), y(peak)], [x(right), y(peak)]),
    text(end, y(peak) - 5, "end", `${data.measured ? "" : "nominal "}${Math.round(peak)} GFLOP/s`));
  const labels = [];  // positions of the marks' numbers; those of marks that are close together stand side by side
  for (const {kernel, number} of marks) {
    const [after, rate] = at(kernel, kernel.bytes, kernel.best_ns);
    const side = x(after) > (LEFT + end) / 2 ? -1 : 1, label = [x(after) + 8 * side, y(rate) + 4];
    while (labels.some(([a, b]) => Math.abs(a - label[0]) < 18 && Math.abs(b - label[1]) < 12)) label[0] += 18 * side;
    labels.push(label);
    if (kernel.default_ns !== null) {
      const [before, was] = at(kernel, kernel.bytes_default, kernel.default_ns);
      parts.push(line("link", [x(before), y(was)], [x(after), y(rate)]),
        svg("circle", {class: "before", cx: x(before), cy: y(was), r: 4}));
    }
    parts.push(svg("a", {href: `#kernel-${number}`, "aria-label": `kernel ${number}: ${kernel.name}`},
      svg("circle", {class: "after", cx: x(after), cy: y(rate), r: 5},
        svg("title", {}, `${number}: ${kernel.name}, ${time(kernel.best_ns)}`)),
      text(...label, side > 0 ? "start" : "end", String(number))));
  }
  const drawing = picture(width, height, "Roofline of the job's kernels", ...parts);
  drawing.setAttribute("role", "group");  // the role is not "img", since the drawing has links
  return el("figure", {}, drawing, el("figcaption", {}, "Filled marks are the kernels by their number in the table, " +
    "hollow ones the same work with the default schedule and one kernel per operation. Lines are " +
    (data.measured ? "what a worker measured of the machine: reads and multiply-adds of f32. What fits a cache may be above the " +
    "lines of the memories behind it." : "nominal rates of the machine, which kernels may exceed.")));
}
