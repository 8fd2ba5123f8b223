"""Shared by the experiments: arguments, projects with one suite, reports, tables, estimates of scripts/recompute."""

import argparse
import importlib.machinery
import importlib.util
import json
import math
import pathlib
import subprocess
import sys

# No folder of compiled modules beside the scripts.
sys.dont_write_bytecode = True

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def parser(about):
    """A parser of arguments whose help is the documentation of a script."""
    return argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)


def make(folder, name, suite):
    """Makes a project: its own suites are in a folder beside linerate.toml."""
    (folder / "suites").mkdir(parents=True, exist_ok=True)
    (folder / "linerate.toml").touch()
    (folder / "suites" / f"{name}.toml").write_text(suite, encoding="utf-8")


def run(folder, name, suite):
    """The folder of a run of this suite, which is made unless it is there."""
    make(folder, name, suite)
    if not (folder / "run" / "report.json").exists():
        command = ["linerate", "run", name, "--seed", "7", "--install", "--quiet", "--out", "run"]
        with open(folder / "run.log", "w", encoding="utf-8") as log:
            subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=True)
    return folder / "run"


def report(folder):
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def us_per_iteration(folder, iterations, role):
    """Microseconds of CPU time of a role for each iteration, from a comparison of none with this number of them."""
    base, head = (cell["cpu"][role]["us_per_op"] for cell in report(folder)["suites"][0]["cells"])
    return (head - base) / iterations


def tables(run_folder):
    """The tables of the run's suite."""
    return report(run_folder)["suites"][0]["tables"]


def write(folder, rows):
    """Writes and prints a table."""
    text = "\n".join(rows) + "\n"
    (folder / "table.md").write_text(text, encoding="utf-8")
    print(text, end="")


def clopper_pearson(count, total):
    """The 95 % interval of a share."""

    def at_most(share, most):
        return sum(math.comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(most + 1))

    def root(is_low_enough):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if is_low_enough(middle) else (low, middle)
        return low

    low = root(lambda share: 1 - at_most(share, count - 1) < 0.025) if count else 0.0
    high = root(lambda share: at_most(share, count) > 0.025) if count < total else 1.0
    return low, high


def recompute():
    """The program that computes ratios from journals."""
    path = str(ROOT / "scripts" / "recompute")
    sys.path.append(str(ROOT / "scripts"))
    loader = importlib.machinery.SourceFileLoader("recompute", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("recompute", loader))
    loader.exec_module(module)
    return module
