/* Several recordings: the ranks of a job or runs to compare, and the difference of two of them. */

const runName = run => run.rank === undefined ? run.file : `rank ${run.rank}`;

/* "2 ranks of python train.py" if the runs are those of a job. */
function jobName(runs) {
  const programs = new Set(runs.map(run => run.title));
  const ranks = new Set(runs.map(run => run.rank));
  return ranks.size < runs.length || ranks.has(undefined) || programs.size > 1
    ? `${runs.length} recordings` : `${runs.length} ranks of ${runs[0].title}`;
}

/* Lists the runs with their peaks. `show` gets the run that the user chooses. */
function showJob(home, runs, show) {
  const most = Math.max(1, ...runs.flatMap(run => run.devices.map(device => device.peak)));
  element("h1", jobName(runs), home);
  const rows = table(home, "runs", [["recording", false], ["peaks", false], ["verdict", false]]);
  const choices = runs.map(run => {
    const choose = button(runName(run), null, "run", () => {
      for (const other of choices) other.setAttribute("aria-pressed", other === choose);
      show(run);
    });
    choose.title = run.file;
    choose.setAttribute("aria-pressed", run === runs[0]);
    const peaks = element("div", "");
    for (const device of run.devices) {
      const peak = element("div", "", peaks, "job-peak");
      const bar = shape("rect", {y: 0, height: 12, width: device.peak / most * WIDTH,
        fill: "var(--cold)"}, picture("job-bar", 12, "", peak));
      titled(bar, size(device.peak));
      peak.append(`device ${device.ordinal}: ${size(device.peak)}`);
    }
    rows.add([choose, peaks, run.verdict]);
    return choose;
  });
}

/* Line numbers move when a script changes, so call sites are matched without them. */
const siteKey = label => label.replace(/:\d+/g, "");

/* The bytes at the peak by call site, over all devices; the first label of a site names it. */
function atPeakOf(run) {
  const found = new Map();
  for (const device of run.devices) {
    for (const site of device.sites) {
      const key = siteKey(site.label);
      const entry = found.get(key) || {label: site.label, bytes: 0};
      entry.bytes += site.at_peak;
      found.set(key, entry);
    }
  }
  return found;
}

/* Compares the shown run with another one that the user chooses. */
function showDifference(home, runs, run) {
  const others = runs.filter(other => other !== run);
  element("h2", "Difference at the peak", home);
  const label = element("label", `${runName(run)}, less `, home);
  const select = element("select", "", label, "other");
  others.forEach((other, i) => { element("option", runName(other), select).value = i; });
  const said = element("p", "", home, "difference-said");
  const rows = table(home, "difference", [["difference", true], [runName(run), true],
    ["the other", true], ["call site", false]]);
  function draw() {
    const other = others[select.value], mine = atPeakOf(run), theirs = atPeakOf(other);
    const peak = sum(run.devices.map(device => device.peak)) -
      sum(other.devices.map(device => device.peak));
    const found = [...new Set([...mine.keys(), ...theirs.keys()])].map(key => ({
      label: (mine.get(key) || theirs.get(key)).label,
      mine: mine.has(key) ? mine.get(key).bytes : 0,
      theirs: theirs.has(key) ? theirs.get(key).bytes : 0}))
      .filter(row => row.mine !== row.theirs)
      .sort((a, b) => Math.abs(b.mine - b.theirs) - Math.abs(a.mine - a.theirs));
    rows.clear();
    said.textContent = `The peak differs by ${size(peak)}. Of the call sites on this page, ` +
      (found.length === 0 ? "none differs." : `${found.length} differ${found.length === 1 ? "s"
        : ""}; call sites are matched without line numbers.`);
    for (const row of found) {
      rows.add([size(row.mine - row.theirs), size(row.mine), size(row.theirs), row.label]);
    }
  }
  select.addEventListener("change", draw);
  draw();
}
