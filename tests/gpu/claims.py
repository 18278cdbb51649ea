"""What documents say of a card, and where a page says otherwise.

Figures in sentences cannot be generated. Each is a claim here: where it stands, and the finding
that it is of."""
import dataclasses
import pathlib
import re

from reading import NUMBER

SOURCE = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Claim:
    """document; text: a pattern of what it says, in which a space is any white space and the group
    the figure, or the answer in words; row and subject: the finding, whose subject may be cut at a
    colon; value: a pattern of the rest, whose group is the figure, or, without a group, of the
    answer that agrees with the document; scale: what the page's figure is multiplied with for the
    document's unit; percent: how far they may be apart."""
    document: str
    text: str
    row: str
    subject: str
    value: str
    scale: float = 1.0
    percent: float = 2.0


MS = rf"({NUMBER.pattern}) ms\b.*"
US = rf"({NUMBER.pattern}) us\b.*"
NS = rf"({NUMBER.pattern}) ns\b.*"
RATE = rf"({NUMBER.pattern}) GB/s"
TIMES = rf".* ({NUMBER.pattern}) of the plain one.*"
ANY = r"([\d.]+)"
VARYING = "bf16, varying length, checkpointing, "
GPU = "docs/dev/gpu.md"

CLAIMS = (
    Claim("README.md", rf"any memory, to the host \| {ANY} times", "spill", "90 %: step", TIMES),
    Claim("README.md", rf"activations, to the host \| {ANY} times", "spill", "save_on_cpu: step",
          TIMES),
    Claim("README.md", rf"took up to {ANY} times", "training",
          VARYING + "under spillway: step", TIMES),
    Claim("README.md", rf"fp32: {ANY} times", "training", "fp32, under spillway: step", TIMES),
    Claim(GPU, rf"of its peak memory, a step takes {ANY} ms", "spill", "90 %: step", MS),
    Claim(GPU, rf"with all memory, or {ANY} times as long", "spill", "90 %: step", TIMES),
    Claim(GPU, rf"`save_on_cpu`, a step takes {ANY} ms", "spill", "save_on_cpu: step", MS),
    Claim(GPU, rf"`save_on_cpu`, a step takes \d+ ms, {ANY} times", "spill", "save_on_cpu: step",
          TIMES),
    Claim(GPU, rf"For {ANY} ms of this time, the device's work was held back", "spill",
          "90 %: counters", r".*closed_ns (\d+).*", 1e-6 / 24),
    Claim(GPU, rf"CAP_SYS_NICE\), a step with 85 % of the memory takes {ANY} times",
          "host-refused", "85 %, host chunks refused: step", TIMES),
    Claim(GPU, rf"as long \({ANY} ms, ", "host-refused", "85 %, host chunks refused: step", MS),
    Claim(GPU, rf"bf16 with all memory, the factors are {ANY},", "host-refused",
          "all memory: step", TIMES),
    Claim(GPU, rf"bf16 with all memory, the factors are [\d.]+, {ANY} and", "verified-moves",
          "all memory: step", TIMES),
    Claim(GPU, rf"bf16 with all memory, the factors are [\d.]+, [\d.]+ and {ANY} ", "spill",
          "all memory: step", TIMES),
    Claim(GPU, rf"{ANY} tensors of 128 MiB", "exhausted", "tensors beyond the card",
          r"(\d+) blocks of 128 MiB.*", percent=0),
    Claim(GPU, rf"may one copy cross from device to host chunks\? \| (yes)", "crossing-copies",
          "DtoD out, 50331648 bytes, crossing", "right"),
    Claim(GPU, r"may access change while a kernel reads\? \| (\*\*no\*\*)", "read-only",
          "a kernel that reads while access changes", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    Claim(GPU, r"does a write to read-only memory fault\? \| (yes)", "read-only",
          "a kernel writes to read-only memory", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    Claim(GPU, rf"a fence of the whole device cost\? \| {ANY} us", "record-event",
          "cuCtxRecordEvent, 96 streams", US, percent=20),
    Claim(GPU, r"set-access wait for running work\? \| (no); ", "beside-kernel",
          "cuMemUnmap, device beside a kernel: waits", "no"),
    Claim(GPU, r"set-access wait for running work\? \| (no); ", "beside-kernel",
          "cuMemMap, device beside a kernel: waits", "no"),
    Claim(GPU, r"set-access wait for running work\? \| (no); ", "beside-kernel",
          "cuMemSetAccess, device beside a kernel: waits", "no"),
    Claim(GPU, r"running work\? \| no; (`cuMemFree` and page-locking do)", "beside-kernel",
          "cuMemFree, 32 MiB beside a kernel: waits", "yes"),
    Claim(GPU, r"running work\? \| no; (`cuMemFree` and page-locking do)", "beside-kernel",
          "cuMemHostAlloc and cuMemFreeHost beside a kernel: waits", "yes"),
    Claim(GPU, rf"512 threads at one word take {ANY} ms", "instructions",
          "probe_atomics on host memory", US, 1e-3),
    Claim(GPU, rf"had in chunks\? \| all but 2 MiB; {ANY} s in chunks of 2 MiB", "fill-card",
          "2 MiB: to fill", rf"({NUMBER.pattern}) s"),
    Claim(GPU, rf"chunks of 2 MiB, {ANY} s in chunks of 32 MiB", "fill-card", "32 MiB: to fill",
          rf"({NUMBER.pattern}) s", percent=5),
    Claim(GPU, rf"1 GiB takes {ANY} ms to create", "move-cost", "16 x 32 MiB to the host: create",
          MS, 2.0, 10),
    Claim(GPU, rf"page-locked memory reach {ANY} and", "link",
          "copy from page-locked memory to the device", RATE),
    Claim(GPU, rf"page-locked memory reach \d+ and {ANY} GB/s", "link",
          "copy from the device to page-locked memory", RATE),
    Claim(GPU, rf"both directions at once, each reaches {ANY} GB/s", "link",
          "copies both ways at once, each way", RATE),
    Claim(GPU, rf"read host chunks with {ANY} GB/s", "link", "a kernel reads host chunks", RATE),
    Claim(GPU, rf"and write them with {ANY} GB/s", "link", "a kernel writes host chunks", RATE),
    Claim("docs/guide/spilling.md", rf"the allocation took {ANY} ms for each GiB", "move-cost",
          "16 x 32 MiB to the host: create", MS, 2.0, 10),
    Claim("docs/guide/pausing.md", rf"20 pauses of 30 MiB took {ANY} s", "pauses",
          "20 pauses of 30 MiB", rf"({NUMBER.pattern}) s"),
)


def says(page, claim):
    """The page's answer: its figure in the document's unit, or a text; None where it has none."""
    texts = [f"{finding['subject']}: {finding['value']}"
             for finding in page.rows.get(claim.row, {}).get("findings", ())]
    rests = [text[len(claim.subject) + 2:] for text in texts
             if text.startswith(claim.subject + ": ")]
    if re.compile(claim.value).groups == 0:
        return rests[0] if rests else None
    figures = [match.group(1) for rest in rests if (match := re.fullmatch(claim.value, rest))]
    return float(figures[0]) * claim.scale if figures else None


def contradicts(claim, said, answer):
    """True if the document's word and the page's answer cannot both be."""
    if isinstance(answer, str):
        return re.fullmatch(claim.value, answer) is None
    return abs(float(said) - answer) > abs(answer) * claim.percent / 100


def check(page, source=SOURCE):
    """(lines on what contradicts the page, lines on claims that no document makes any more, how
    many claims the page says nothing of)"""
    wrong, stale, silent = [], [], 0
    for claim in CLAIMS:
        text = (source / claim.document).read_text()
        match = re.search(claim.text.replace(" ", r"\s+"), text)
        answer = says(page, claim)
        if match is None:
            stale.append(f"{claim.document}: nothing there matches {claim.text!r}: its claim in "
                         "tests/gpu/claims.py is out of date")
        elif answer is None:
            silent += 1
        elif contradicts(claim, match.group(1), answer):
            line = text.count("\n", 0, match.start(1)) + 1
            shown = answer if isinstance(answer, str) else f"{answer:.4g}"
            wrong.append(f"{claim.document}:{line}: says {match.group(1)}, the page says {shown} "
                         f"({claim.row}, \"{claim.subject}\")")
    return wrong, stale, silent
