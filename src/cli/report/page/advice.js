/* The answer of spillway advise: the curve of memory against time, and its ways. */

const adviceWays = [["recompute", "recompute modules"], ["placement", "place memory on the host"]];
const times = ratio => ratio.toFixed(2) + " times";

/* The points of the picture: [name, bytes, ratio, colour, it was measured in a replay]. */
function advicePoints(advice) {
  return adviceWays.flatMap(([key, name], i) => ["predicted", "replayed"]
    .filter(kind => advice[key] && advice[key][kind] && advice[key][kind].step_ratio > 0)
    .map(kind => [`${name}, ${kind}`, advice[key][kind].device_bytes,
      advice[key][kind].step_ratio, colours[i + 1], kind === "replayed"]));
}

/* A round mark, whatever the picture's proportions are. */
function adviceDot(svg, x, y, colour, wide, text) {
  titled(shape("line", {class: "dot", x1: x, x2: x, y1: y, y2: y, stroke: colour,
    "stroke-width": wide, "stroke-linecap": "round", "vector-effect": "non-scaling-stroke"}, svg),
  text);
}

function adviceCurve(home, advice) {
  const points = advicePoints(advice), curve = advice.curve;
  const last = curve[curve.length - 1].step_ratio;
  /* A way that is far slower than the curve would flatten it. */
  const near = points.filter(point => point[2] <= 1 + 4 * (last - 1));
  const longest = Math.max(...curve.map(point => point.step_ratio), ...near.map(point => point[2]));
  const highest = 1.05 * Math.max(curve[0].peak_bytes, advice.budget_bytes);
  const x = ratio => 16 + (ratio - 1) / Math.max(longest - 1, 1e-9) * (WIDTH - 32);
  const y = bytes => HEIGHT - bytes / highest * (HEIGHT - 12);
  const plot = element("div", "", home, "plot");
  const svg = picture("advice", HEIGHT, `Peak memory against the time of a step: from ` +
    `${size(curve[0].peak_bytes)} at 1.00 times to ${size(curve[curve.length - 1].peak_bytes)} ` +
    `at ${times(last)}.`, plot);
  levels(plot, svg, highest, y);
  line(svg, "budget", {x1: 0, x2: WIDTH, y1: y(advice.budget_bytes), y2: y(advice.budget_bytes),
    stroke: "var(--mark)", "stroke-dasharray": "6 4"});
  shape("polyline", {class: "curve", points: curve.map(point =>
    `${x(point.step_ratio)},${y(point.peak_bytes)}`).join(" "), fill: "none", stroke: "var(--cold)",
  "stroke-width": 2, "vector-effect": "non-scaling-stroke"}, svg);
  for (const point of curve) {
    adviceDot(svg, x(point.step_ratio), y(point.peak_bytes), "var(--cold)", 7,
      `${point.blocks} blocks run again: ${size(point.peak_bytes)}, ${times(point.step_ratio)}`);
  }
  for (const [name, bytes, ratio, colour, replayed] of near) {
    adviceDot(svg, x(ratio), y(bytes), colour, replayed ? 11 : 15,
      `${name}: ${size(bytes)}, ${times(ratio)}`);
  }
  const axis = element("p", "", home, "axis");
  for (const part of [0, 0.5, 1]) element("span", times(1 + part * (longest - 1)), axis);
  const far = points.filter(point => !near.includes(point)).map(point =>
    `${point[0]}: ${times(point[2])}`);
  element("p", "Up: the peak of memory. To the right: the time of a step, as a multiple of that " +
    "with ample memory. Each point of the line recomputes more repeated blocks. Large points: " +
    `as predicted, smaller ones: as replayed. Dashes: the budget, ${size(advice.budget_bytes)}.` +
    (far.length > 0
    ? ` Beyond the picture: ${far.join("; ")}.` : ""), home, "key");
}

function showAdvice(home, advice) {
  element("h2", `Memory against time, for a budget of ${size(advice.budget_bytes)}`, home);
  if (advice.curve && advice.curve.length > 1) adviceCurve(home, advice);
  const spilling = advice.without_rules;
  const spills = spilling && spilling.step_ratio > 0;
  const compares = spills || adviceWays.some(([key]) => advice[key]);
  const rows = compares && table(home, "ways", [["", false], ["device, live", true],
    ["host", true], ["moved in all", true], ["a step takes", true]]);
  adviceWays.forEach(([key, name], i) => {
    for (const kind of ["predicted", "replayed"]) {
      const figures = advice[key] && advice[key][kind];
      if (!figures) continue;
      const cell = element("span", "");
      element("span", "", cell, "swatch").style.background = colours[i + 1];
      cell.append(`${name}, ${kind}`);
      rows.add([cell, size(figures.device_bytes), size(figures.host_bytes),
        kind === "replayed" ? size(figures.moved_bytes) : "",
        figures.step_ratio > 0 ? times(figures.step_ratio) : ""]);
    }
  });
  if (spills) {
    rows.add(["spilling without rules", "", size(spilling.host_bytes), size(spilling.moved_bytes),
      times(spilling.step_ratio)]);
  }
  const said = {fits: "It fits as it is.", impossible: "No rules make it fit."}[advice.answer];
  element("p", (said || "Times are those of a cost model.") + (spilling
    ? " The recording on this page is that of the run with ample memory." : ""), home, "key");
}
