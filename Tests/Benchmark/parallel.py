"""Several clients at once: how many operations a second all of them make together."""

import os
import statistics
import subprocess
import sys

import file_systems
from daemon import header, row

PHASES = {
    "open-read": "open one of 1,000 files, read its 4 KiB, close it",
    "random-read": "read 64 KiB at a random place of a file of 256 MiB, past the page cache (O_DIRECT)",
    "create": "make a file, write 4 KiB, close it",
    "safe-save": "write 4 KiB to a temporary file and rename it over one of 200",
}
CLIENTS = (1, 2, 4, 8)


def rate(tools, system, phase, clients, seconds, run):
    folder = os.path.join(system.folder, "parallel")
    if phase in ("create", "safe-save"):
        # Folders that grow in one run must not slow the next one.
        folder = os.path.join(system.folder, f"parallel-{phase}-{run}-{clients}")
    os.makedirs(folder, exist_ok=True)
    output = subprocess.run(
        [tools["parallel"], phase, str(clients), str(seconds)], cwd=folder, stdout=subprocess.PIPE, text=True)
    # passthrough_ll closes descriptors that others use, now and then.
    return float(output.stdout) if output.returncode == 0 else None


def median(values, form):
    return format(statistics.median(values), form) if values else ""


def main(work, tools, names, phases, runs, seconds):
    systems = [file_systems.ALL[name](name, work, tools) for name in names]
    chosen = [phase for phase in PHASES if not phases or phase in phases]
    rates = {}
    try:
        for system in systems:
            system.mount()
            folder = os.path.join(system.folder, "parallel")
            os.makedirs(folder)
            subprocess.run([tools["driver"], "create", "1000"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            subprocess.run([tools["driver"], "write-large", "256"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            # What is stored behind the writer's back is stored when the mount is back.
            system.unmount()
            system.mount()
        for run in range(runs):
            for phase in chosen:
                for clients in CLIENTS:
                    if phase == "create":
                        # passthrough_ll keeps a descriptor for every file until its mount ends.
                        for system in systems:
                            system.unmount()
                            system.mount()
                    # The file systems take turns, and none always comes after the same neighbour.
                    for system in systems[run % len(systems):] + systems[:run % len(systems)]:
                        value = rate(tools, system, phase, clients, seconds, run)
                        if value is None:
                            print(f"{system.name}, {phase}, {clients}: left out of run {run + 1}", file=sys.stderr)
                        rates.setdefault((phase, clients, system.name), []).append(value)
            load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
            print(f"run {run + 1} of {runs} done, load {load}", file=sys.stderr)
    finally:
        for system in systems:
            system.unmount()
    print(f"Operations a second of all clients, medians of {runs} runs of {seconds} s each; the ratio is the median of the runs' own.\n")
    header("phase", "clients", *names, *(["ratio"] if {"sheaf", "passthrough_ll"} <= set(names) else []))
    for phase in chosen:
        for clients in CLIENTS:
            values = {name: rates[phase, clients, name] for name in names}
            cells = [median([value for value in values[name] if value is not None], ",.0f") for name in names]
            if {"sheaf", "passthrough_ll"} <= set(names):
                pairs = zip(values["sheaf"], values["passthrough_ll"])
                cells.append(median([mine / other for mine, other in pairs if mine and other], ".2f"))
            row(phase, clients, *cells)
