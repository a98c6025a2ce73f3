import {el, find, live, parts, path, say, svg, title} from "/web/page.js";

const id = parts[1];
// The SVG elements, with their attributes, that are copied from the picture of a graph; all others are left out.
const SHAPES = {
  path: ["class", "d", "fill", "stroke"],
  rect: ["class", "x", "y", "width", "height", "rx", "fill", "fill-opacity", "stroke"],
  text: ["x", "y"],
};

function picture(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  const width = Number(root.getAttribute("width")), height = Number(root.getAttribute("height"));
  const shapes = [];
  for (const shape of root.children) {
    const kept = SHAPES[shape.localName];
    if (kept === undefined) continue;
    const attributes = Object.fromEntries(kept.map((name) => [name, shape.getAttribute(name)]));
    shapes.push(svg(shape.localName, attributes, ...(shape.localName === "text" ? [shape.textContent] : [])));
  }
  return svg("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": "The graph of the job, with its operations in the colours of their kernels"}, ...shapes);
}

title(`Graph of job ${id}`);
find("links").append(el("a", {href: path("jobs", id)}, `Job ${id}`));
live(`/api/jobs/${encodeURIComponent(id)}/graph`, (answer) => {
  if (answer.drawing) {
    say("The graph is being drawn. This may take as long as planning the job did.");
    return 1000;
  }
  say("");
  find("summary").replaceChildren(...answer.summary.map((line) => el("li", {}, line)));
  find("picture").replaceChildren(picture(answer.picture));
  find("picture-part").hidden = false;
  find("reasons").replaceChildren(...answer.kernels.map((kernel, number) => el("section", {id: `g${number}`},
    el("h3", {}, `g${number}: ${kernel.ops}`),
    el("p", {}, "Group ", el("a", {href: path("jobs", id, "groups", kernel.key)}, kernel.name)),
    el("ul", {}, ...kernel.reasons.map((reason) => el("li", {}, reason))))));
  find("reasons-part").hidden = false;
  return 0;
});
