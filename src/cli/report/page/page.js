/* The whole page: the top, the devices, and the program. */

const data = JSON.parse(document.getElementById("data").textContent);

/* The verdict, what to do next, and the facts about the run. */
function showHead(home, run) {
  element("h1", run.title, home).id = "title";
  const verdict = element("div", "", home, "verdict " + run.tone);
  element("p", "verdict: " + run.verdict, verdict, "outcome");
  if (run.most) element("p", run.most, verdict);
  for (const next of run.next) element("p", "next: " + next, verdict, "next");
  const facts = element("dl", "", home, "facts");
  for (const [name, value] of run.facts) {
    const fact = element("div", "", facts);
    element("dt", name, fact);
    element("dd", value, fact);
  }
  for (const note of run.notes) element("p", note, home, "note");
}

function showRun(run) {
  const home = document.getElementById("run");
  const range = makeRange(Math.max(run.duration_us, 1));
  document.title = "spillway: " + run.title;
  home.replaceChildren(); /* and forgets the pictures that watched the range before */
  showHead(element("header", "", home), run);
  if (data.advice) showAdvice(element("section", "", home), data.advice);
  for (const device of run.devices) showDevice(element("section", "", home), run, device, range);
  parts(home, run);
  rules(home, run);
  if (data.runs.length > 1) showDifference(home, data.runs, run);
}

data.runs.sort((a, b) => (a.rank || 0) - (b.rank || 0));
if (data.runs.length > 1) showJob(document.getElementById("job"), data.runs, showRun);
showRun(data.runs[0]);
