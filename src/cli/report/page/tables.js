/* The tables below the pictures. */

function outOfMemory(home, run, ooms, go) {
  if (ooms.length === 0) return;
  element("h3", "Out of memory", home);
  const rows = table(home, "ooms", [["after", true], ["asked for", true], ["missing", true],
    ["live", true], ["limit", true], ["by", false]]);
  for (const oom of ooms) {
    const made = button(seconds(oom.us), null, "", () => go(oom.us));
    rows.add([made, size(oom.bytes), size(oom.missing), size(oom.live), size(oom.limit),
      oom.label]);
  }
  if (run.oom_count > run.ooms.length) {
    element("p", `${run.oom_count} times in all; the first ${run.ooms.length} are shown`, home);
  }
}

/* Growth from step to step: the live memory at the ends of steps, and the sites that grow. */
function growth(home, run, device) {
  const ends = device.step_ends;
  if (ends.length < 2) return;
  element("h3", "From step to step", home);
  const steps = ends[ends.length - 1][0], most = Math.max(1, ...ends.map(row => row[2]));
  element("p", device.growth > 0 ? `Memory grows by ${size(device.growth)} a step.`
    : steps < 8 ? `No growth can be told from ${steps} ${run.steps_kind}: 8 are needed.`
      : `No memory grows from step to step (${steps} ${run.steps_kind}).`, home, "growth" +
    (device.growth > 0 ? " note" : ""));
  element("p", `Live memory at the end of each step; to the top: ${size(most)}`, home,
    "lane-name");
  const svg = picture("ends", 60, "Live memory at the end of each step", home);
  const wide = WIDTH / ends.length;
  ends.forEach(([number, us, live], i) => {
    titled(shape("rect", {class: "end", x: i * wide, y: 60 - 58 * live / most,
      width: Math.max(1, wide * 0.9), height: 58 * live / most, fill: "var(--cold)"}, svg),
    `step ${number}, after ${seconds(us)}: ${size(live)}`);
  });
  if (device.growing.length === 0) return;
  const rows = table(home, "growing", [["a step", true], ["call site that grows", false]]);
  for (const [bytes, label] of device.growing) rows.add([size(bytes), label]);
}

function siteTable(home, device) {
  const details = element("details", "", home);
  element("summary", `The ${device.sites.length} call sites that held most`, details);
  const rows = table(details, "sites", [["held most", true], ["at the end", true],
    ["in all", true], ["allocations", true], ["call site", false]]);
  for (const site of device.sites) {
    rows.add([size(site.peak), size(site.end), size(site.total), String(site.allocs),
      site.label]);
  }
}

function parts(home, run) {
  if (run.parts.length === 0) return;
  element("h2", "Marked parts", home);
  const rows = table(home, "parts", [["times", true], ["time", true], ["peak", true],
    ["part", false]]);
  for (const part of run.parts) {
    rows.add([String(part.count), seconds(part.us), part.peak.map(size).join(", "),
      part.name + (part.open > 0 ? " (not ended)" : "")]);
  }
}

function rules(home, run) {
  if (run.rules.length === 0) return;
  element("h2", "Policy", home);
  if (run.policy !== "") element("p", run.policy, home);
  const rows = table(home, "rules", [["rule", false], ["blocks", true], ["held most", true],
    ["placed on the host", true], ["bytes in all", true]]);
  for (const rule of run.rules) {
    rows.add([rule.number === 0 ? "no rule" : rule.name || `rule ${rule.number}`,
      String(rule.allocs), size(rule.live_peak),
      rule.host_allocs === 0 ? "" : `${size(rule.host_bytes)} in ${rule.host_allocs}`,
      size(rule.bytes)]);
  }
}
