/* Single blocks with their lives. */

const BLOCK_ROWS = 30;

/* In the data, a block is [address, bytes, label, birth, death, category]; death is -1 at the
 * end. */
function unpackBlocks(run, device) {
  const unpack = ([address, bytes, label, born, died, category], atPeak) =>
    ({address, bytes, label: run.frames[label], born, died, category, atPeak});
  return device.blocks_at_peak.map(block => unpack(block, true))
    .concat(device.blocks.map(block => unpack(block, false)))
    .sort((a, b) => b.bytes - a.bytes);
}

/* Returns a function that shows the blocks of a moment. `only` is a layer of the picture, {name,
 * has(block)}, or null. `select` gets the block that the user chooses, or null. */
function showBlocks(home, run, device, select) {
  const blocks = unpackBlocks(run, device);
  const details = element("details", "", home, "blocks");
  details.open = true;
  element("summary", "Blocks of this moment", details);
  const said = element("p", "", details, "blocks-said");
  const rows = table(details, "block-rows", [["bytes", true], ["block", false], ["life", false],
    ["address", false]]);
  const end = Math.max(run.duration_us, 1);

  function life(block) {
    const made = picture("life", 10, "", null);
    const until = block.died < 0 ? end : block.died;
    shape("rect", {x: block.born / end * WIDTH, y: 1, height: 8, fill: "var(--cold)",
      width: Math.max(4, (until - block.born) / end * WIDTH)}, made);
    return made;
  }
  function row(block) {
    const choose = button(block.address, null, "address", () => {
      const was = made.classList.contains("chosen");
      for (const other of details.querySelectorAll(".chosen")) other.classList.remove("chosen");
      made.classList.toggle("chosen", !was);
      select(was ? null : block);
    });
    const until = block.died < 0 ? "to the end"
      : `to ${seconds(block.died)} (${seconds(block.died - block.born)})`;
    const lived = element("span", "");
    lived.append(life(block), `from ${seconds(block.born)} ${until}`);
    const made = rows.add([size(block.bytes),
      `${block.label} (${run.categories[block.category]})`, lived, choose]);
  }
  return (moment, isPeak, only, wanted) => {
    const live = blocks.filter(block => isPeak ? block.atPeak
      : block.born <= moment.us && (block.died < 0 || block.died > moment.us));
    const found = live.filter(block => (!only || only.has(block)) &&
      (wanted === "" || matches(block.label, wanted)));
    rows.clear();
    select(null);
    found.slice(0, BLOCK_ROWS).forEach(row);
    said.textContent = (only ? `Of ${only.name}: ` : "") +
      `${Math.min(found.length, BLOCK_ROWS)} of ${found.length} blocks, the largest first. ` +
      `This page has the largest ${blocks.length} of ${device.blocks_in_all} blocks` +
      (blocks.length < device.blocks_in_all ? "; the call sites above count all of them." : ".");
  };
}
