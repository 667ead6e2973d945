"""Runs the phases on every file system in turn and writes the tables of docs/BENCHMARKS.md (see mount-scripts/benchmark)."""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys

import file_systems
import history
import machine
import parallel
import phases
import scale


def arguments():
    parser = argparse.ArgumentParser(prog="mount-scripts/benchmark", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the operations, 3 runs: a glance")
    parser.add_argument("--runs", type=int, help="runs of which the median is told (default 5)")
    parser.add_argument("--phase", action="append", metavar="NAME", help="only these phases, and those that they need")
    parser.add_argument("--on", action="append", metavar="NAME", choices=list(file_systems.ALL), help="only these file systems")
    parser.add_argument("--history", action="store_true", help="instead: what a thousand saves take, beside git and borg")
    parser.add_argument("--saves", type=int, help="so many saves for --history (default 1000; --quick: 100)")
    parser.add_argument(
        "--scale", nargs="*", choices=list(scale.PARTS), metavar="PART",
        help=f"instead: what it costs to have much: {', '.join(scale.PARTS)}; without a name, all")
    parser.add_argument(
        "--parallel", action="store_true", help="instead: 1, 2, 4 and 8 clients at once; on passthrough_ll and sheaf")
    parser.add_argument("--work", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--sheaf", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


#: What has to have run before a phase in the same folder.
NEEDS = {
    "stat-first": ["create"], "stat-again": ["create"], "read": ["create"], "list": ["create"],
    "list-again": ["create", "list"], "setxattr": ["create"], "getxattr": ["create", "setxattr"],
    "safe-save": ["create"], "rename": ["create"], "unlink": ["create", "rename"], "read-cold": ["write-large"],
    "read-hot": ["write-large"], "random-write": ["write-large"], "random-write-fsync": ["write-large"],
    "git-status": ["untar"], "grep": ["untar"], "compile": ["untar"],
}


def chosen(names):
    if not names:
        return phases.PHASES
    known = {phase.name for phase in phases.PHASES}
    for name in names:
        if name not in known:
            raise SystemExit(f"no phase {name}; there are {', '.join(sorted(known))}")
    wanted = set(names).union(*(NEEDS.get(name, []) for name in names))
    return [phase for phase in phases.PHASES if phase.name in wanted]


def measure(systems, selected, tools, runs, scale):
    """Seconds of an operation, by phase and file system, a list of one a run; and the daemons' processor seconds."""
    times = {phase.name: {system.name: [] for system in systems} for phase in selected}
    processor = {phase.name: {system.name: [] for system in systems} for phase in selected}
    # ext4 does not give the number of a deleted file to another one for a minute or more, and looks for a free one the
    # longer: what deletes many files comes last, and nothing is cleaned up between the runs.
    for sweep in (False, True):
        for run in range(runs):
            # Each run begins with another one, so that none always comes after the same neighbour.
            order = systems[run % len(systems):] + systems[:run % len(systems)]
            for phase in (phase for phase in selected if phase.deletes == sweep):
                phase.tools = tools
                for system in order:
                    folder = os.path.join(system.folder, f"{phase.group}-{run}")
                    phase.prepare(system, folder)
                    before = system.processor_seconds()
                    try:
                        times[phase.name][system.name].append(phase.run(tools, folder, scale))
                    except phases.JobFailed as error:
                        # passthrough_ll closes descriptors that others use, now and then.
                        print(f"{system.name}, {phase.name}: left out of run {run + 1}: {error}", file=sys.stderr)
                        continue
                    operations = 1 if phase.group == "jobs" else max(10, int(phase.count * scale))
                    processor[phase.name][system.name].append((system.processor_seconds() - before) / operations)
            for system in systems:
                large = os.path.join(system.folder, f"large-{run}", "large")
                if os.path.exists(large):
                    os.unlink(large)
                # All begin the next run with nothing cached, and passthrough_ll with descriptors.
                system.memories.append(system.memory())
                system.unmount()
                system.mount()
            print(f"run {run + 1} of {runs} done{', what deletes' if sweep else ''}", file=sys.stderr)
    return times, processor


def shown(seconds, unit):
    if unit == "MiB":
        return f"{1 / seconds:.0f} MiB/s"
    if unit == "run":
        return f"{seconds:.2f} s"
    return f"{seconds * 1e6:.1f} µs"


def spread(values):
    """Half the distance of the extremes, in percent of the median."""
    return f"±{(max(values) - min(values)) / 2 / statistics.median(values) * 100:.0f} %"


def table(systems, selected, times):
    names = [system.name for system in systems]
    yield "| phase | " + " | ".join(names) + " | Sheaf's ratio | at most | |"
    yield "|---|" + "---:|" * (len(names) + 2) + "---|"
    for phase in selected:
        medians = {name: statistics.median(times[phase.name][name]) for name in names}
        cells = [f"{shown(medians[name], phase.unit)} {spread(times[phase.name][name])}" for name in names]
        ratio, target, verdict = "", "", ""
        if "sheaf" in medians and phase.against in medians:
            ours, theirs = times[phase.name]["sheaf"], times[phase.name][phase.against]
            # The median of the runs' own ratios: neighbours in time, whatever else the machine did.
            value = (
                statistics.median(mine / other for mine, other in zip(ours, theirs)) if len(ours) == len(theirs)
                else medians["sheaf"] / medians[phase.against])
            ratio = f"{value:.2f}" + (" of ext4" if phase.against == "ext4" else "")
            if phase.target:
                target = f"{phase.target}"
                verdict = "" if value <= phase.target else "missed"
        yield f"| {phase.name} | " + " | ".join(cells) + f" | {ratio} | {target} | {verdict} |"


def processor_table(systems, selected, processor):
    names = [system.name for system in systems if system.process is not None]
    yield "| phase | " + " | ".join(names) + " |"
    yield "|---|" + "---:|" * len(names)
    for phase in selected:
        if phase.group == "jobs":
            continue
        cells = [f"{statistics.mean(processor[phase.name][name]) * 1e6:.0f} µs" for name in names]
        yield f"| {phase.name} | " + " | ".join(cells) + " |"


def make_tree(work, root):
    """The tree of the whole jobs: the sources of swift-nio, which the build has fetched, and a tar file of it."""
    tree = os.path.join(work, "tree")
    source = os.path.join(root, ".build", "checkouts", "swift-nio")
    shutil.copytree(source, os.path.join(tree, "nio"), ignore=shutil.ignore_patterns(".git"), symlinks=True)
    subprocess.run(["tar", "-C", tree, "-cf", tree + ".tar", "."], check=True)
    return tree


def main():
    options = arguments()
    # passthrough_ll keeps a descriptor for every file that was looked at.
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    tools = {
        "driver": os.path.join(options.work, "driver"), "sheaf": options.sheaf,
        "large-library": os.path.join(os.path.dirname(options.sheaf), "large-library"),
        "passthrough_ll": os.path.join(options.work, "passthrough_ll"),
        "parallel": os.path.join(options.work, "parallel"),
    }
    if options.history or options.scale is not None:
        print(f"{machine.about()}.\n", flush=True)
        if options.history:
            history.main(options.work, tools, options.saves or (100 if options.quick else 1000))
        if options.scale is not None:
            scale.main(options.work, tools, options.scale, options.quick)
        return
    if options.parallel:
        print(f"{machine.about()}.\n", flush=True)
        parallel.main(
            options.work, tools, options.on or ["passthrough_ll", "sheaf"], options.phase, options.runs or 5,
            0.5 if options.quick else 1)
        return
    selected = chosen(options.phase)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if any(phase.group == "jobs" for phase in selected):
        tools["tree"] = make_tree(options.work, root)
    about = machine.about()
    names = options.on or list(file_systems.ALL)
    systems = [file_systems.ALL[name](name, options.work, tools) for name in names]
    try:
        for system in systems:
            system.mount()
        runs, factor = options.runs or (3 if options.quick else 5), 0.2 if options.quick else 1
        times, processor = measure(systems, selected, tools, runs, factor)
        print(f"{about}. Medians of {runs} runs, spread in percent.\n")
        print("\n".join(table(systems, selected, times)))
        print("\nProcessor time of the daemon for an operation (10 ms ticks, mean of the runs):\n")
        print("\n".join(processor_table(systems, selected, processor)))
        print("\nResident memory of the daemon, the peak of all runs and at the end of the last:\n")
        for system in systems:
            if system.process is not None:
                peak, last = max(peak for peak, _ in system.memories), system.memories[-1][1]
                print(f"- {system.name}: {peak / 2**20:.0f} MiB, {last / 2**20:.0f} MiB")
    finally:
        for system in systems:
            system.unmount()


if __name__ == "__main__":
    main()
