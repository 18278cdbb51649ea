/* Memory over time: the part of the run that is shown, the areas, and the lanes below them. */

/* The part of the run that all pictures show, in microseconds. */
function makeRange(last) {
  const range = {from: 0, to: last, last, watchers: []};
  range.x = us => (us - range.from) / (range.to - range.from) * WIDTH;
  range.us = x => range.from + x * (range.to - range.from);
  range.show = (from, to) => {
    const wide = Math.min(last, Math.max(10, to - from));
    range.from = Math.max(0, Math.min(last - wide, from));
    range.to = range.from + wide;
    for (const draw of range.watchers) draw();
  };
  range.zoom = (factor, at) => range.show(at - (at - range.from) * factor,
    at + (range.to - at) * factor);
  range.isWhole = () => range.from === 0 && range.to === last;
  return range;
}

/* The two kinds of layers in a stack: their names, colours, and bytes at a moment. */
function views(run, device) {
  const sites = device.sites;
  return {
    category: {button: "By category", details: () => null,
      names: run.categories, colour: i => i + 1 < run.categories.length ? colours[i] : OTHER,
      layers: run.categories.length, bytes: moment => moment.by, rest: ""},
    site: {button: "By call site", details: i => sites[i].frames.map(frame => frame.text),
      names: sites.map(site => site.label),
      colour: i => colours[i] || `hsl(${i * 137 % 360} 35% 58%)`,
      layers: sites.length, bytes: moment => moment.held, rest: "other call sites"},
  };
}

/* In the data, sites have numbers of frames, and moments only the sites that have changed. */
function unpack(run, device) {
  const wrappers = new Set(run.wrappers);
  device.unpacked = true;
  for (const site of device.sites) {
    site.frames = site.frames.map(number =>
      ({text: run.frames[number], wrapper: wrappers.has(number)}));
  }
  let held = device.sites.map(() => 0);
  for (const moment of device.moments) {
    held = held.slice();
    for (let i = 0; i < moment.held.length; i += 2) held[moment.held[i]] = moment.held[i + 1];
    moment.held = held;
  }
}

/* The bytes of a layer; the layer behind the last is what the view does not name. */
const layerBytes = (view, moment, layer) => layer < view.layers ? view.bytes(moment)[layer]
  : moment.live - sum(view.bytes(moment));

function stack(group, moments, view, y, range) {
  group.replaceChildren();
  const first = Math.max(0, moments.findIndex(moment => moment.us >= range.from) - 1);
  const beyond = moments.findIndex(moment => moment.us > range.to);
  const shown = moments.slice(first, beyond < 0 ? moments.length : beyond + 1);
  const base = shown.map(() => 0);
  const until = i => range.x(i + 1 < shown.length ? shown[i + 1].us : range.last);
  const steps = level => shown.flatMap((moment, i) =>
    [`${range.x(moment.us)},${y(level(i))}`, `${until(i)},${y(level(i))}`]);
  for (let layer = 0; layer <= view.layers; layer++) {
    const values = shown.map(moment => layerBytes(view, moment, layer));
    if (!values.some(value => value > 0)) continue;
    const upper = steps(i => base[i] + values[i]);
    const lower = steps(i => base[i]).reverse();
    values.forEach((value, i) => { base[i] += value; });
    shape("polygon", {points: upper.concat(lower).join(" "),
      fill: layer < view.layers ? view.colour(layer) : OTHER}, group);
  }
}

/* Draws a figure, which keeps its value until the next window, as a line. */
function trace(parent, type, rows, figure, y, range, attributes) {
  const points = rows.flatMap((row, i) => {
    const to = range.x(i + 1 < rows.length ? rows[i + 1].us : range.last);
    return [`${range.x(row.us)},${y(row[figure])}`, `${to},${y(row[figure])}`];
  });
  shape("polyline", {class: type, points: points.join(" "), fill: "none",
    stroke: "var(--ink)", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke",
    ...attributes}, parent);
}

/* Lines at round sizes. */
function levels(plot, svg, highest, y) {
  const step = Math.max(1, 2 ** Math.floor(Math.log2(highest / 2.5)));
  for (let bytes = step; bytes <= highest; bytes += step) {
    line(svg, "", {x1: 0, x2: WIDTH, y1: y(bytes), y2: y(bytes), stroke: "var(--line)",
      "stroke-width": 0.7});
    element("span", size(bytes), plot, "level").style.top = 100 * y(bytes) / HEIGHT + "%";
  }
}

/* Lets the pointer zoom, pan and choose. `point` gets the place under the pointer, or null. */
function pointing(svg, range, choose, point) {
  const box = shape("rect", {class: "dragged", y: 0, height: HEIGHT, fill: "var(--cold)",
    "fill-opacity": 0.25, visibility: "hidden"}, svg);
  const place = event => {
    const around = svg.getBoundingClientRect();
    return [(event.clientX - around.left) / around.width,
      (event.clientY - around.top) / around.height * HEIGHT, around.width];
  };
  let began = null, dragged = false;
  svg.addEventListener("wheel", event => {
    /* With Shift, some browsers turn the wheel's distance into a horizontal one. */
    const along = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    const tenth = Math.sign(along) * (range.to - range.from) / 10;
    if (event.shiftKey || Math.abs(along) > Math.abs(event.deltaY)) {
      range.show(range.from + tenth, range.to + tenth);
    } else if (event.deltaY !== 0) {
      range.zoom(event.deltaY > 0 ? 1.25 : 0.8, range.us(place(event)[0]));
    }
    event.preventDefault();
  }, {passive: false});
  svg.addEventListener("pointerdown", event => {
    if (event.button === 0 && event.pointerType !== "touch") began = place(event)[0];
    dragged = false;
  });
  svg.addEventListener("pointermove", event => {
    const [x, y, width] = place(event);
    point(x, y);
    if (began === null) return;
    dragged = dragged || Math.abs(x - began) * width > 4;
    if (dragged) {
      box.setAttribute("visibility", "visible");
      box.setAttribute("x", Math.min(x, began) * WIDTH);
      box.setAttribute("width", Math.abs(x - began) * WIDTH);
    }
  });
  addEventListener("pointerup", event => {
    if (began !== null && dragged) {
      const ends = [began, place(event)[0]].map(end => Math.max(0, Math.min(1, end)));
      range.show(range.us(Math.min(...ends)), range.us(Math.max(...ends)));
    }
    began = null;
    box.setAttribute("visibility", "hidden");
  });
  svg.addEventListener("pointerleave", () => point(null));
  svg.addEventListener("click", event => {
    const [x, y] = place(event);
    if (!dragged) choose(range.us(x), y);
    dragged = false;
  });
}

/* The marks of the program: a lane for the steps, and a lane for each of the first parts. */
function lanes(home, run, range) {
  const lane = (name, draw) => {
    element("p", name, home, "lane-name");
    const svg = picture("lane", 12, name, home);
    range.watchers.push(() => { svg.replaceChildren(); draw(svg); });
    draw(svg);
  };
  if (run.steps.length > 0) {
    lane(`${sum(run.steps.map(step => step.count))} ${run.steps_kind}`, svg => {
      for (const step of run.steps) {
        titled(shape("rect", {class: "step", x: range.x(step.us), y: 0, width: 1.5, height: 12,
          fill: "var(--ink)"}, svg), `step ${step.number} after ${seconds(step.us)}`);
      }
    });
  }
  for (const part of run.parts) {
    if (!part.spans || part.spans.length === 0) continue;
    lane(part.name, svg => {
      for (const [from, to] of part.spans) {
        const width = Math.max(1.5, range.x(to) - range.x(from));
        titled(shape("rect", {class: "part", x: range.x(from), y: 1, width, height: 10,
          fill: "var(--cold)"}, svg), `${part.name}: ${seconds(from)} to ${seconds(to)}`);
      }
    });
  }
}

/* Bytes that moved in each window: to the host above the middle, back below it. */
function moved(home, device, range) {
  const rows = device.traffic.filter(row => row.moves);
  const waits = device.closed_us + device.stall_us;
  if (rows.length === 0 && waits === 0) return;
  const most = Math.max(1, ...rows.map(row => Math.max(row.to_host, row.to_device)));
  element("p", `Moved: above to the host, below back; at most ${size(most)} in ` +
    `${seconds(device.window_us)}. Work was held back for ${seconds(device.closed_us)}, the ` +
    `program waited ${seconds(device.stall_us)} (red).`, home, "lane-name traffic");
  const svg = picture("moved", 70, "Bytes moved between device and host over time", home);
  function draw() {
    svg.replaceChildren();
    const wide = Math.max(2, range.x(device.window_us) - range.x(0));
    for (const row of device.traffic) {
      const wait = Math.max(row.held_back_us || 0, row.stall_us || 0);
      const bars = [[row.to_host, 30 - 30 * row.to_host / most, 30 * row.to_host / most, "cold"],
        [row.to_device, 30, 30 * row.to_device / most, "cold"],
        [wait, 62, 8, "mark"]];
      for (const [figure, top, height, colour] of bars) {
        if (!figure) continue;
        titled(shape("rect", {x: range.x(row.us), y: top, width: wide, height,
          fill: `var(--${colour})`}, svg), `after ${seconds(row.us)}: ` +
          `${size(row.to_host || 0)} to the host, ${size(row.to_device || 0)} back, ` +
          `${seconds(wait)} of waiting`);
      }
    }
  }
  range.watchers.push(draw);
  draw();
}
