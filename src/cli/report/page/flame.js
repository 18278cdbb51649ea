/* The flame graph of a moment. */

const hash = text => [...text].reduce((all, letter) =>
  (all * 31 + letter.codePointAt(0)) % 1000003, 7);
const matches = (text, wanted) => wanted !== "" && text.toLowerCase().includes(wanted);

/* The stacks that hold memory as a tree, from their outermost frames on. */
function treeOf(device, moment, wrappers) {
  const root = {name: "all", bytes: moment.live, children: new Map(), depth: 0, up: null};
  const grow = (names, bytes) => {
    let node = root;
    for (const name of names) {
      if (!node.children.has(name)) {
        node.children.set(name, {name, bytes: 0, children: new Map(), depth: node.depth + 1,
          up: node});
      }
      node = node.children.get(name);
      node.bytes += bytes;
    }
  };
  moment.held.forEach((bytes, site) => {
    if (bytes > 0) {
      grow(device.sites[site].frames.filter(frame => wrappers || !frame.wrapper)
        .map(frame => frame.text).reverse(), bytes);
    }
  });
  const rest = moment.live - sum(moment.held);
  if (rest > 0) grow(["other call sites"], rest);
  return root;
}

/* Returns a function that draws a moment, and marks the frames with the wanted text. A frame that
 * the user chooses fills the width. */
function flames(home, run, device) {
  const details = element("details", "", home, "flames");
  details.open = true;
  element("summary", "Flame graph of this moment (Enter or click widens a frame, arrow keys " +
    "move, Escape goes back)", details);
  let root, top, latest, wanted = "", wrappers = false;
  if (run.wrappers.length > 0) {
    const toggle = button("Wrapper frames", details, "wrappers", () => {
      wrappers = !wrappers;
      toggle.setAttribute("aria-pressed", wrappers);
      draw(root = treeOf(device, latest, wrappers));
    });
    toggle.setAttribute("aria-pressed", false);
    toggle.title = "Functions of PyTorch and its companions that only call another function";
  }
  if (run.frames.includes("backward pass")) {
    element("p", "Nodes of the backward pass are below their line of the forward pass, if only " +
      "one line calls their operator. The recording does not tell the line of other nodes.",
    details, "key backward");
  }
  const read = element("p", "\u00a0", details, "flame-read");
  const box = element("div", "", details, "flame");
  const plane = element("div", "", box);
  plane.setAttribute("role", "tree");
  plane.setAttribute("aria-label", "Stacks that hold memory, outermost frames first");
  const made = new Map();
  const kin = node => [...node.children.values()].filter(child => made.has(child))
    .sort((a, b) => b.bytes - a.bytes);
  const about = node => `${node.name}: ${size(node.bytes)}, ${share(node.bytes, root.bytes)}`;
  function focus(node) {
    if (!node || !made.has(node)) return;
    for (const item of made.values()) item.tabIndex = -1;
    made.get(node).tabIndex = 0;
    made.get(node).focus();
  }
  function put(node, left, width) {
    const item = element("span", node.name.replace(/  .*\//, "  "), plane);
    item.setAttribute("role", "treeitem");
    item.setAttribute("aria-level", node.depth + 1);
    item.title = `${node.name}\n${size(node.bytes)}, ${share(node.bytes, root.bytes)}`;
    item.setAttribute("aria-label", item.title);
    item.tabIndex = node === top ? 0 : -1;
    item.style.cssText = `left:${left}%;width:${width}%;top:${node.depth * 18}px;` +
      `background:hsl(${20 + 35 * (hash(node.name) % 100) / 100},75%,68%)`;
    if (wanted !== "") item.classList.add(matches(node.name, wanted) ? "found" : "not-found");
    item.addEventListener("click", () => { draw(node); focus(node); });
    item.addEventListener("keydown", event => key(event, node));
    for (const when of ["pointerenter", "focus"]) {
      item.addEventListener(when, () => { read.textContent = about(node); });
    }
    made.set(node, item);
  }
  function key(event, node) {
    const beside = node.up ? kin(node.up) : [node], at = beside.indexOf(node);
    if (event.key === "ArrowUp") focus(node.up);
    else if (event.key === "ArrowDown") focus(kin(node)[0]);
    else if (event.key === "ArrowLeft") focus(beside[at - 1]);
    else if (event.key === "ArrowRight") focus(beside[at + 1]);
    else if (event.key === "Enter" || event.key === " ") { draw(node); focus(node); }
    else if (event.key === "Escape") { draw(root); focus(root); }
    else return;
    event.preventDefault();
  }
  /* Frames too narrow to see are left out. */
  function below(node, left, width) {
    let deepest = node.depth;
    put(node, left, width);
    for (const child of [...node.children.values()].sort((a, b) => b.bytes - a.bytes)) {
      const wide = width * child.bytes / Math.max(node.bytes, 1);
      if (wide >= 0.1) deepest = Math.max(deepest, below(child, left, wide));
      left += wide;
    }
    return deepest;
  }
  function draw(node) {
    top = node;
    made.clear();
    plane.replaceChildren();
    for (let up = node.up; up; up = up.up) put(up, 0, 100);
    plane.style.height = (below(node, 0, 100) + 1) * 18 + "px";
  }
  return (moment, text) => {
    latest = moment;
    wanted = text;
    draw(root = treeOf(device, moment, wrappers));
  };
}
