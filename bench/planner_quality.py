"""Gap to the proven bound and planning time of every planner on the three public traces.

    python bench/planner_quality.py [--batches 20] [--page docs/results/planner.md]

Full batches of 2M tokens (at most --batches of each trace), 64 ranks, 8 a host; Qwen3-30B-A3B with sp_max 32
and Qwen3-235B-A22B with sp_max 64; maximum length 192K and 384K; token budget 1.2 x mean; H200 profiles.
Gap: load / bound - 1, both of one layer under the serial cost model; planning times are CPU times. Then:
rounds planned together at smaller token budgets, what recompute marks save, and simulated steps: static / nsp
with the same backends, beside static / a step at the bound. --only NAMES measures and renews some tables.
Writes one JSON line for each plan to --json, and renews the tables and the picture of --page (what stands
between its markers).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from nsp._native import core

import nsp

TRACES = {
    "common_crawl": "flexsp_common_crawl_head.txt",
    "github": "flexsp_github_head.txt",
    "wikipedia": "flexsp_wikipedia.txt.gz",
}
MODELS = {"30b": ("qwen3-30b-a3b", 32), "235b": ("qwen3-235b-a22b", 64)}
LAYERS = {"30b": 48, "235b": 94}
LIMITS = {"192K": 196608, "384K": 393216}
BATCH_TOKENS, RANKS, RANKS_PER_HOST = 2**21, 64, 8
COLUMNS = (
    ("static", "default"),
    ("megatron-dcp", "default"),
    ("nsp-2l", "default"),
    ("flexsp", "default"),
    ("algorithm1", "default"),
    ("nsp", "fast"),
    ("nsp", "default"),
    ("nsp", "thorough"),
)
SLOW = {"flexsp": 5}  # batches of a cell
ROUNDS = (2, 4)  # parts of the token budget
MARKS = (0.1, 0.25, 0.5)  # parts of the attention output of the fullest rank
SAVED_TOKEN_BYTES = 32 * 128 * 2 + 32 * 4  # 30B: output and log-sum-exp

# Simulated cells: a static baseline and nsp with the backends that it may use.
PAIRS = {"ulysses": ("static", ("ulysses",)), "ulysses, usp-ring": ("static-usp", ("ulysses", "usp-ring"))}
# Dense part of a layer under torch.compile(fullgraph=True, dynamic=True) on one H200 at 8K, 20,000 and 32K
# tokens, lines through it: seconds a layer and a token, forward and backward. The frozen profiles are eager.
COMPILED = {
    "30b": {"dense_forward": (1.1e-4, 2.86e-7), "dense_backward": (5.0e-4, 4.52e-7)},
    "235b": {"dense_forward": (0.0, 9.2e-7), "dense_backward": (2.6e-3, 1.43e-6)},
}

Record = dict[str, Any]


def batches(trace: str, limit: int, most: int) -> list[list[int]]:
    folder = Path(__file__).parent.parent / "tests/data/traces"
    lengths = core().load_lengths(str(folder / TRACES[trace]))
    return list(core().full_batches(lengths, limit, BATCH_TOKENS))[:most]


def record_of(cell: str, index: int, lengths: list[int], **settings: object) -> Record:
    start = time.process_time()  # planning takes one thread; a busy machine disturbs this less
    plan = nsp.plan(lengths, world=RANKS, ranks_per_host=RANKS_PER_HOST, **settings)
    spent = 1000 * (time.process_time() - start)
    return {
        "cell": cell, "batch": index, "planner": settings["planner"], "effort": settings["effort"],
        "load": plan.predicted.forward + plan.predicted.backward, "bound": plan.bound_seconds,
        "step": plan.predicted.seconds, "feasible": plan.feasible, "rounds": len(plan.rounds),
        "simulated": nsp.simulate(plan, model=str(settings["model"])).step_seconds, "ms": spent,
    }  # fmt: skip


def measure(most: int) -> list[Record]:
    records: list[Record] = []
    for model, (shape, sp_max) in MODELS.items():
        for limit, tokens in LIMITS.items():
            for trace in TRACES:
                cell = f"{model} {limit} {trace}"
                print(f"{cell}: {len(records)} plans so far", file=sys.stderr, flush=True)
                for index, lengths in enumerate(batches(trace, tokens, most)):
                    for planner, effort in COLUMNS:
                        if index < SLOW.get(planner, most):
                            given = {"sp_max": sp_max, "model": shape, "planner": planner, "effort": effort}
                            records.append(record_of(cell, index, lengths, **given))
    return records


def measure_rounds(most: int) -> list[Record]:
    """30B, 192K, token budgets that ask for several rounds; algorithm1 deals, longest first."""
    records: list[Record] = []
    shape, sp_max = MODELS["30b"]
    for part in ROUNDS:
        for trace in TRACES:
            for index, lengths in enumerate(batches(trace, LIMITS["192K"], most)):
                budget = math.ceil(1.2 * sum(lengths) / RANKS / part)
                for planner in ("algorithm1", "nsp"):
                    given = {"sp_max": sp_max, "model": shape, "planner": planner, "effort": "default"}
                    cell = f"/ {part}, {trace}"
                    records.append(record_of(cell, index, lengths, token_budget=budget, **given))
    return records


def profile_of(model: str, layers: str) -> str:
    """The frozen profile as JSON text, with the dense part of compiled layers if asked."""
    name = f"nsp/cost/presets/{MODELS[model][0]}-h200.json"
    profile = json.loads((Path(__file__).parent.parent / name).read_text())
    if layers == "compiled":
        for field, (fixed, token) in COMPILED[model].items():
            profile[field] |= {"fixed_seconds": fixed, "token_seconds": token}
            profile[field]["expert_token_seconds"] = min(profile[field]["expert_token_seconds"], token)
    return json.dumps(profile)


def simulated_pair(cell: str, index: int, lengths: list[int], layers: str, pair: str) -> Record:
    """Steps of a static baseline and of nsp, and nsp's if its load were the bound (serial exchanges)."""
    model = cell.split()[0]
    shape, sp_max = MODELS[model]
    profile = profile_of(model, layers)
    rival, backends = PAIRS[pair]
    settings = {"world": RANKS, "ranks_per_host": RANKS_PER_HOST, "sp_max": sp_max}
    settings |= {"model": shape, "profile": profile}
    static = nsp.plan(lengths, planner=rival, **settings)
    own = nsp.plan(lengths, backends=backends, **settings)
    steps = [nsp.simulate(p, model=shape, profile=profile).step_seconds for p in (static, own)]
    load = own.predicted.forward + own.predicted.backward
    least = own.predicted.seconds - LAYERS[model] * (load - own.bound_seconds)
    return {"cell": cell, "batch": index, "layers": layers, "backends": pair, "rival": rival,
            "static": steps[0], "step": steps[1], "bound": least}  # fmt: skip


def measure_simulated(most: int) -> list[Record]:
    records: list[Record] = []
    for model in MODELS:
        for limit, tokens in LIMITS.items():
            for trace in TRACES:
                print(f"simulated {model} {limit} {trace}", file=sys.stderr, flush=True)
                for index, lengths in enumerate(batches(trace, tokens, most)):
                    for layers in ("eager", "compiled"):
                        records += [
                            simulated_pair(f"{model} {limit} {trace}", index, lengths, layers, pair)
                            for pair in PAIRS
                        ]
    return records


def geometric_ratio(records: list[Record], above: str, below: str) -> float:
    return statistics.geometric_mean(r[above] / r[below] for r in records)


def simulated_table(records: list[Record]) -> str:
    """static / nsp, static / bound, and the part of the one that the other is, as geometric means."""
    kinds = [(layers, pair) for layers in ("eager", "compiled") for pair in PAIRS]
    rows = [row("cell (batches)", *(f"{layers}, {pair}" for layers, pair in kinds), "batches nsp lost")]
    rows.append("|---" * (len(kinds) + 2) + "|")
    cells = list(dict.fromkeys(str(r["cell"]) for r in records))
    for cell in [*cells, "geometric mean"]:
        own = [r for r in records if cell in (r["cell"], "geometric mean")]
        texts = []
        for layers, pair in kinds:
            some = [r for r in own if (r["layers"], r["backends"]) == (layers, pair)]
            ratio, most = (geometric_ratio(some, "static", below) for below in ("step", "bound"))
            texts.append(f"{ratio:.3f} of {most:.3f}: {ratio / most:.3f}")
        lost = sum(r["step"] > r["static"] * (1 + 1e-12) for r in own)
        rows.append(row(f"{cell} ({len(own) // len(kinds)})", *texts, f"{lost} of {len(own)}"))
    return "\n".join(rows)


def saved_part(lengths: list[int], part: float, order: str) -> float:
    """Forward attention seconds that a fast plan's marks save, of all."""
    shape, sp_max = MODELS["30b"]
    settings = {"world": RANKS, "ranks_per_host": RANKS_PER_HOST, "sp_max": sp_max, "model": shape}
    settings |= {"effort": "fast", "mark_order": order}
    fullest = nsp.plan(lengths, **settings).predicted.tokens_max
    plan = nsp.plan(lengths, byte_budget=int(part * fullest * SAVED_TOKEN_BYTES), **settings)
    with tempfile.NamedTemporaryFile() as file:
        file.write(plan.to_json())
        file.flush()
        command = [
            str(Path(sys.executable).parent / "nsp"),
            "explain",
            file.name,
            "--model",
            shape,
            "--json",
            "-",
        ]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    levels = json.loads(answer)["saved"]
    return sum(level["seconds_saved"] for level in levels) / sum(level["seconds"] for level in levels)


def marks_table(most: int) -> str:
    rows = ["| budget | order | " + " | ".join(TRACES) + " |", "|---|---|---|---|---|"]
    for part in MARKS:
        for order in ("tree", "seconds-per-byte"):
            cells = [
                statistics.mean(
                    saved_part(lengths, part, order) for lengths in batches(trace, LIMITS["384K"], most)
                )
                for trace in TRACES
            ]
            rows.append(
                f"| {100 * part:.0f} % | {order} | " + " | ".join(f"{100 * c:.1f}" for c in cells) + " |"
            )
    return "\n".join(rows)


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def gap(record: Record) -> float:
    return record["load"] / record["bound"] - 1


def quantile(values: list[float], part: float) -> float:
    return sorted(values)[round(part * (len(values) - 1))]


def title(planner: str, effort: str) -> str:
    return f"{planner} {effort}" if planner == "nsp" else planner


def grouped(records: list[Record]) -> dict[tuple[str, str], dict[str, list[Record]]]:
    """By column, then by cell."""
    groups: dict[tuple[str, str], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        groups[record["planner"], record["effort"]][record["cell"]].append(record)
    return groups


def geometric(cells: dict[str, list[Record]]) -> tuple[float, float]:
    """Geometric mean over the cells of their mean gap, and the worst cell's."""
    means = [statistics.mean(map(gap, records)) for records in cells.values()]
    return math.expm1(statistics.mean(map(math.log1p, means))), max(means)


def beaten(records: list[Record], column: tuple[str, str], by: str) -> tuple[int, int]:
    """Batches on which some other planner has less load, or step, of those that the column planned."""
    best: dict[tuple[object, object], float] = {}
    for r in records:
        if r["planner"] != column[0] and r["feasible"]:
            key = (r["cell"], r["batch"])
            best[key] = min(best.get(key, math.inf), r[by])
    own = [r for r in records if (r["planner"], r["effort"]) == column]
    lost = [r for r in own if best.get((r["cell"], r["batch"]), math.inf) < r[by] * (1 - 1e-12)]
    return len(lost), len(own)


def table(records: list[Record]) -> str:
    groups = grouped(records)
    columns = list(groups)
    rows = [["cell (batches)", *(title(*c) for c in columns)], ["---"] * (len(columns) + 1)]
    for cell in dict.fromkeys(str(r["cell"]) for r in records):
        count = len({r["batch"] for r in records if r["cell"] == cell})
        row = [f"{cell} ({count})"]
        for column in columns:
            own = groups[column].get(cell, [])
            gaps, ms = [100 * gap(r) for r in own], [r["ms"] for r in own]
            row.append(
                f"{statistics.mean(gaps):.2f} (worst {max(gaps):.1f}; "
                f"{quantile(ms, 0.5):.1f} / {quantile(ms, 0.99):.1f})"
            )
        rows.append(row)
    means, times = ["geometric mean, worst cell"], ["ms of all batches, p50 / p99"]
    lost, slower = ["another planner has less load on"], ["is faster, simulated, on"]
    for column in columns:
        mean, worst = geometric(groups[column])
        ms = [r["ms"] for own in groups[column].values() for r in own]
        means.append(f"{100 * mean:.2f}, {100 * worst:.2f}")
        times.append(f"{quantile(ms, 0.5):.1f} / {quantile(ms, 0.99):.1f}")
        lost.append("{} of {}".format(*beaten(records, column, "load")))
        slower.append("{} of {}".format(*beaten(records, column, "simulated")))
    return "\n".join("| " + " | ".join(row) + " |" for row in [*rows, means, times, lost, slower])


def points(records: list[Record]) -> list[tuple[str, float, float, float]]:
    """(title, median ms, geometric mean gap, worst cell) of each column, in order of time."""
    result = []
    for column, cells in grouped(records).items():
        ms = [r["ms"] for own in cells.values() for r in own]
        result.append((" ".join(column), statistics.median(ms), *geometric(cells)))
    return sorted(result, key=lambda point: point[1])


def curve(records: list[Record]) -> str:
    rows = ["| planner, effort | ms p50 | gap %, geometric mean | worst cell |", "|---|---|---|---|"]
    for name, ms, mean, worst in points(records):
        rows.append(f"| {name} | {ms:.1f} | {100 * mean:.2f} | {100 * worst:.2f} |")
    return "\n".join(rows)


def rounds_table(records: list[Record]) -> str:
    rows = [
        "| budget, trace (batches) | gap %, dealt by algorithm1 (worst) | gap %, nsp (worst) | rounds | "
        "step, nsp / algorithm1 (worst) | ms p50 / p99 |",
        "|---|---|---|---|---|---|",
    ]
    groups = grouped(records)
    for cell, own in groups["nsp", "default"].items():
        rival = groups["algorithm1", "default"][cell]
        ratio = [a["step"] / b["step"] for a, b in zip(own, rival, strict=True)]
        ms = [r["ms"] for r in own]
        texts = [
            f"{statistics.mean(g):.2f} ({max(g):.1f})"
            for g in ([100 * gap(r) for r in x] for x in (rival, own))
        ]
        counts = sorted({r["rounds"] for r in own})
        rows.append(
            row(
                f"{cell} ({len(own)})",
                *texts,
                " or ".join(map(str, counts)),
                f"{statistics.mean(ratio):.3f} ({max(ratio):.3f})",
                f"{quantile(ms, 0.5):.0f} / {quantile(ms, 0.99):.0f}",
            )
        )
    return "\n".join(rows)


def flexsp_table(records: list[Record]) -> str:
    """Loads beside flexsp's on the batches that it planned, and simulated steps of `thorough`."""
    rows = [
        "| cell | static / flexsp | flexsp / nsp | gap % | simulated: flexsp / thorough (least) | rounds | "
        "seconds, mean / worst |",
        "|---|---|---|---|---|---|---|",
    ]
    load = {(r["cell"], r["batch"], r["planner"], r["effort"]): r["load"] for r in records}
    thorough = {(r["cell"], r["batch"]): r["simulated"] for r in records if r["effort"] == "thorough"}
    cells = grouped(records)["flexsp", "default"]
    for cell, own in [*cells.items(), ("all", [r for each in cells.values() for r in each])]:

        def ratio(planner: str, own: list[Record] = own) -> float:
            logs = [math.log(r["load"] / load[r["cell"], r["batch"], planner, "default"]) for r in own]
            return math.exp(statistics.mean(logs))

        seconds = [r["ms"] / 1000 for r in own]
        steps = [r["simulated"] / thorough[r["cell"], r["batch"]] for r in own]
        rounds = " ".join(str(r["rounds"]) for r in own) if cell != "all" else ""
        rows.append(
            row(
                cell,
                f"{1 / ratio('static'):.3f}",
                f"{ratio('nsp'):.3f}",
                f"{100 * statistics.mean(map(gap, own)):.1f}",
                f"{statistics.geometric_mean(steps):.3f} ({min(steps):.3f})",
                rounds,
                f"{statistics.mean(seconds):.1f} / {max(seconds):.1f}",
            )
        )
    return "\n".join(rows)


def picture(records: list[Record], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "nsp"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    line = points([r for r in records if r["planner"] == "nsp"])
    axes.plot([p[1] for p in line], [100 * p[2] for p in line], "o-", label="nsp fast, default, thorough")
    for name, ms, mean, _ in points([r for r in records if r["planner"] != "nsp"]):
        axes.plot(ms, 100 * mean, "s", label=name.removesuffix(" default"))
    axes.set(
        xscale="log", xlabel="planning ms a batch (median)", ylabel="gap to the bound, %", ylim=(0, None)
    )
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")


CELL_TABLES = {"cells": table, "curve": curve, "flexsp": flexsp_table}


def renew(page: str, marker: str, text: str) -> str:
    begin, end = f"<!-- {marker} -->\n", f"<!-- end {marker} -->"
    head, tail = page.index(begin) + len(begin), page.index(end)
    return page[:head] + text + "\n" + page[tail:]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=20, help="of a trace, at most (default 20)")
    parser.add_argument("--json", default="build/planner_quality.jsonl")
    parser.add_argument("--page", default="docs/results/planner.md")
    names = ("cells", "rounds", "marks", "simulated")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="cells: curve, flexsp, too")
    options = parser.parse_args()
    records: dict[str, list[Record]] = {}
    tables: dict[str, str] = {}
    if "cells" in options.only:
        records["cells"] = measure(options.batches)
        tables |= {name: make(records["cells"]) for name, make in CELL_TABLES.items()}
    if "rounds" in options.only:
        records["rounds"] = measure_rounds(options.batches)
        tables["rounds"] = rounds_table(records["rounds"])
    if "marks" in options.only:
        tables["marks"] = marks_table(min(8, options.batches))
    if "simulated" in options.only:
        records["simulated"] = measure_simulated(options.batches)
        tables["simulated"] = simulated_table(records["simulated"])
    Path(options.json).parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record) + "\n" for some in records.values() for record in some]
    Path(options.json).write_text("".join(lines))
    page = Path(options.page)
    text = page.read_text()
    for marker, content in tables.items():
        text = renew(text, marker, content)
    page.write_text(text)
    if "cells" in records:
        picture(records["cells"], page.with_suffix(".svg"))


if __name__ == "__main__":
    main()
