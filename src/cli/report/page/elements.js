/* Elements, figures and tables. Texts of the recording become text nodes, never markup. */

const WIDTH = 1000, HEIGHT = 320;
const OTHER = "#999";
const colours = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866",
  "#44bb99", "#99ddff", "#bbcc33", "#aaaa00", "#77aadd"];
const svgName = "http://www.w3.org/2000/svg";

const size = bytes => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const sign = bytes < 0 ? "-" : "";
  let unit = 0;
  for (bytes = Math.abs(bytes); bytes >= 1024 && unit < units.length - 1; unit++) bytes /= 1024;
  return sign + (unit === 0 || bytes >= 100 ? bytes.toFixed(0) : bytes.toFixed(2)) + " " +
    units[unit];
};
const seconds = us => (us / 1e6).toFixed(3) + " s";
const share = (part, whole) => (100 * part / Math.max(whole, 1)).toFixed(1) + " %";
const sum = values => values.reduce((all, value) => all + value, 0);

const element = (name, text, parent, type) => {
  const made = document.createElement(name);
  if (text !== "") made.textContent = text;
  if (type) made.className = type;
  if (parent) parent.append(made);
  return made;
};
const shape = (name, attributes, parent) => {
  const made = document.createElementNS(svgName, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (parent) parent.append(made);
  return made;
};
const picture = (type, height, label, parent) =>
  shape("svg", {viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", class: type,
    role: "img", "aria-label": label}, parent);
const titled = (made, text) => shape("title", {}, made).append(text);
const line = (parent, type, attributes) => shape("line", {class: type, y1: 0, y2: HEIGHT,
  "stroke-width": 1.5, "vector-effect": "non-scaling-stroke", ...attributes}, parent);
const button = (text, parent, type, act) => {
  const made = element("button", text, parent, type);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
};

/* Columns are [title, is a number]. `add` adds a row, whose cells are texts or elements, and
 * returns it. */
function table(parent, type, columns) {
  const made = element("table", "", element("div", "", parent, "scroll"), type);
  const head = element("tr", "", element("thead", "", made));
  for (const [title, number] of columns) {
    element("th", title, head, number ? "number" : "text").scope = "col";
  }
  const body = element("tbody", "", made);
  return {clear: () => body.replaceChildren(), add: cells => {
    const row = element("tr", "", body);
    cells.forEach((cell, i) =>
      element("td", "", row, columns[i][1] ? "number" : "text").append(cell));
    return row;
  }};
}
