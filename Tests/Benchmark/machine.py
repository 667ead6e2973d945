"""What the figures of a benchmark say of the machine that they were measured on."""

import os
import platform
import time


def about():
    """The machine and its load, in one phrase."""
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; {os.cpu_count()} processors ({model}), {memory:.0f} GiB; "
        f"Linux {platform.release()}; load before {load}")
