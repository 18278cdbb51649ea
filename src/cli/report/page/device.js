/* A device: its picture, the chosen moment, and what belongs to that moment. */

function showDevice(home, run, device, range) {
  const moments = device.moments, choices = views(run, device);
  const gauged = device.traffic.filter(row => "committed" in row);
  const ooms = run.ooms.filter(oom => oom.device === device.ordinal);
  const limit = Math.max(0, ...gauged.map(row => row.limit));
  let view = run.categories_known ? choices.category : choices.site, chosen = 0, wanted = "";
  let only = null, life = null; /* the chosen layer, and the chosen block */
  if (!device.unpacked) unpack(run, device); /* a run may be shown again */
  element("h2", `Device ${device.ordinal}: peak ${size(device.peak)} after ` +
    seconds(device.peak_us), home);
  element("p", device.text, home);
  const buttons = Object.entries(choices).map(([name, choice]) =>
    [button(choice.button, home, "by-" + name, () => { view = choice; draw(); }), choice]);

  /* A limit far above all other figures would flatten the curve. */
  const most = Math.max(device.peak, 1, ...gauged.map(row => row.committed));
  const limitShown = limit > 0 && limit <= 2 * most;
  const highest = limitShown ? Math.max(most, limit) : most;
  const y = bytes => HEIGHT - bytes / highest * (HEIGHT - 12);
  const plot = element("div", "", home, "plot");
  const svg = picture("memory", HEIGHT, `Live memory of device ${device.ordinal} over time. ` +
    "Arrow keys choose a moment, Home and End the first and the last, P the peak. " +
    "Plus and minus zoom, 0 shows the whole run.", plot);
  svg.setAttribute("tabindex", "0");
  const layers = shape("g", {}, svg);
  levels(plot, svg, highest, y);
  const over = shape("g", {}, svg);
  const tip = element("div", "", plot, "tip");
  tip.hidden = true;
  lanes(home, run, range);
  moved(home, device, range);

  const axis = element("p", "", home, "axis");
  const begin = element("span", "", axis);
  element("span", `to the top: ${size(highest)}`, axis);
  const end = element("span", "", axis);
  element("p", "Areas: live memory. " + (gauged.length > 0 ? "Line: committed memory. " : "") +
    (limit === 0 ? "" : limitShown ? `Dashes: the limit, ${size(limit)}. `
      : `The limit, ${size(limit)}, is above the picture. `) + "Red dashes: the peak." +
    (ooms.length > 0 ? " Red lines: out of memory." : "") +
    " Wheel or drag: zoom.", home, "key");
  button("Peak", home, "to-peak", () => { only = null; choose(atPeak()); });
  button("Zoom in", home, "zoom-in", () => range.zoom(0.5, moments[chosen].us));
  button("Zoom out", home, "zoom-out", () => range.zoom(2, (range.from + range.to) / 2));
  const whole = button("Whole run", home, "zoom-whole", () => range.show(0, range.last));
  const search = element("input", "", home, "search");
  search.type = "search";
  search.placeholder = "Find a function, file or call site";
  search.setAttribute("aria-label", search.placeholder);
  const now = element("p", "", home, "now");
  now.setAttribute("aria-live", "polite");
  const unused = element("p", "", home, "unused");
  const hits = element("p", "", home, "hits");
  const rows = table(home, "held", [["bytes", true], ["share", true], ["held then by", false]]);
  const flame = flames(home, run, device);
  const blocks = showBlocks(home, run, device, block => { life = block; mark(); });
  outOfMemory(home, run, ooms, us => choose(nearest(us)));
  growth(home, run, device);
  siteTable(home, device);

  const atPeak = () => moments.reduce((best, moment, i) =>
    moment.live > moments[best].live ? i : best, 0);
  const nearest = us => moments.reduce((best, moment, i) =>
    Math.abs(moment.us - us) < Math.abs(moments[best].us - us) ? i : best, 0);
  const siteMatches = site => [site.label, ...site.frames.map(frame => frame.text)]
    .some(text => matches(text, wanted));
  function fill(moment) {
    rows.clear();
    const found = view.bytes(moment).map((bytes, i) => ({bytes, i})).filter(row => row.bytes > 0);
    found.sort((a, b) => b.bytes - a.bytes);
    const rest = moment.live - sum(view.bytes(moment));
    if (rest > 0) found.push({bytes: rest, i: -1});
    for (const row of found) {
      const frames = row.i < 0 ? null : view.details(row.i);
      if (wanted !== "" && frames && !siteMatches(device.sites[row.i])) continue;
      const cell = element(frames ? "details" : "span", "");
      const label = element(frames ? "summary" : "span", "", cell);
      element("span", "", label, "swatch").style.background =
        row.i < 0 ? OTHER : view.colour(row.i);
      label.append(row.i < 0 ? view.rest : view.names[row.i]);
      if (frames) element("pre", frames.join("\n"), cell);
      rows.add([size(row.bytes), share(row.bytes, moment.live), cell]);
    }
  }
  function sayHits(moment) {
    const found = sum(moment.held.filter((bytes, i) => siteMatches(device.sites[i])));
    hits.textContent = wanted === "" ? ""
      : `Found: ${size(found)} of this moment (${share(found, moment.live)})`;
  }
  function choose(number) {
    chosen = Math.max(0, Math.min(moments.length - 1, number));
    const moment = moments[chosen];
    if (!moment) return;
    if (moment.us < range.from || moment.us > range.to) {
      const half = (range.to - range.from) / 2;
      range.show(moment.us - half, moment.us + half);
    }
    now.textContent = `After ${seconds(moment.us)}: ${size(moment.live)} live` +
      (chosen === atPeak() ? " (the peak)" : "");
    const held = moment.committed + moment.host, free = Math.max(0, held - moment.pooled);
    unused.textContent = held === 0 ? "" : `${size(moment.committed)} committed on the device, ` +
      `${size(moment.host)} on the host; ${size(free)} of that free (${share(free, held)})`;
    mark();
    blocks(moment, chosen === atPeak(), only, wanted);
    sayHits(moment);
    fill(moment);
    flame(moment, wanted);
  }
  /* Draws the lines over the areas. */
  function mark() {
    const x = us => ({x1: range.x(us), x2: range.x(us)});
    over.replaceChildren();
    if (gauged.length > 0) trace(over, "committed", gauged, "committed", y, range, {});
    if (limitShown) {
      trace(over, "limit", gauged, "limit", y, range, {"stroke-dasharray": "8 4"});
    }
    for (const oom of ooms) {
      titled(line(over, "oom", {...x(oom.us), stroke: "var(--mark)", "stroke-width": 3}),
        `out of memory after ${seconds(oom.us)}: ${size(oom.bytes)}`);
    }
    if (life) {
      const until = range.x(life.died < 0 ? range.last : life.died);
      shape("rect", {class: "lived", x: range.x(life.born), y: 0, height: HEIGHT,
        width: Math.max(2, until - range.x(life.born)), fill: "var(--cold)",
        "fill-opacity": 0.25, stroke: "var(--cold)", "vector-effect": "non-scaling-stroke"}, over);
    }
    if (moments[chosen]) line(over, "cursor", {...x(moments[chosen].us), stroke: "var(--ink)"});
    line(over, "peak", {...x(device.peak_us), stroke: "var(--mark)",
      "stroke-dasharray": "4 3"}); /* over the cursor, which begins at the peak */
  }
  function drawTime() {
    stack(layers, moments, view, y, range);
    mark();
    begin.textContent = seconds(range.from);
    end.textContent = seconds(range.to);
    whole.disabled = range.isWhole();
  }
  function draw() {
    for (const [made, choice] of buttons) made.setAttribute("aria-pressed", choice === view);
    drawTime();
    choose(chosen);
  }
  const before = us => {
    const later = moments.findIndex(moment => moment.us > us);
    return moments[(later < 0 ? moments.length : later) - 1];
  };
  /* The layer at a height; -1 above all of them. */
  function layerAt(moment, height) {
    for (let layer = 0, level = 0; layer <= view.layers; layer++) {
      const bytes = layerBytes(view, moment, layer);
      level += bytes;
      if (bytes > 0 && y(level) <= height) return layer;
    }
    return -1;
  }
  const layerName = layer => view.names[layer] || view.rest;
  /* Says what is under the pointer: the moment, and the layer. */
  function point(x, height) {
    const us = x === null ? -1 : range.us(x);
    const moment = before(us);
    tip.hidden = us < 0 || !moment;
    if (tip.hidden) return;
    const layer = layerAt(moment, height);
    tip.textContent = `${seconds(us)}: ${size(moment.live)} live` + (layer < 0 ? ""
      : `; ${size(layerBytes(view, moment, layer))} ${layerName(layer)}`);
    tip.style.left = Math.min(70, 100 * x) + "%";
  }
  /* A click chooses the moment, and the layer whose blocks are shown. */
  function click(us, height) {
    const moment = before(us), layer = moment ? layerAt(moment, height) : -1;
    const isCategory = view === choices.category, name = layerName(layer);
    only = layer < 0 || layer >= view.layers ? null : {name, has: block =>
      isCategory ? block.category === layer : block.label === name};
    choose(nearest(us));
  }
  pointing(svg, range, click, point);
  svg.addEventListener("keydown", event => {
    const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity,
      End: Infinity}[event.key];
    const factor = {"+": 0.5, "=": 0.5, "-": 2}[event.key];
    if (step) choose(chosen + step);
    else if (factor) range.zoom(factor, moments[chosen].us);
    else if (event.key === "0") range.show(0, range.last);
    else if (event.key === "p" || event.key === "P") choose(atPeak());
    else return;
    event.preventDefault();
  });
  search.addEventListener("input", () => {
    wanted = search.value.trim().toLowerCase();
    choose(chosen);
  });
  range.watchers.push(drawTime);
  chosen = atPeak();
  draw();
}
