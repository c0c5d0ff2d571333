"""Try the named mutations, and with a seed as many chosen by it; fail when one survives."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from scripts.mutations.generated import choose_mutations
from scripts.mutations.mutation import Mutation, MutationError, changed_lines, describe_change
from scripts.mutations.named import EquivalentChange, read_equivalents, read_mutations
from scripts.mutations.selection import Stage, stages_for
from scripts.mutations.trial import Finding, TreeCopy

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Try mutations; 0 when all were caught or change nothing, 1 when one survived, 3 when nothing could be tried."""
    asked = _parser().parse_args(arguments)
    try:
        chosen = _chosen(ROOT, asked)
        if asked.list:
            for mutation in chosen:
                _say(f"{mutation.name}: {describe_change(mutation, (ROOT / mutation.file).read_text('utf-8'))}")
            return 0
        return _try_all(ROOT, chosen, read_equivalents(), near=asked.near)
    except MutationError as error:
        sys.stderr.write(f"error: {error}\n")
        return 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scripts.mutations", description=__doc__)
    parser.add_argument("--seed", type=int, help="also try mutations that this number chooses")
    parser.add_argument("--count", type=int, default=20, help="how many of those (20)")
    parser.add_argument("--only", metavar="NAME", help="only mutations with this text in their name")
    parser.add_argument("--near", action="store_true", help="of chosen ones run only the nearest tests: a quick look")
    parser.add_argument("--list", action="store_true", help="show them and try none")
    return parser


def _chosen(root: Path, asked: argparse.Namespace) -> list[Mutation]:
    found = read_mutations(root)
    if asked.seed is not None:
        found += choose_mutations(root, asked.seed, asked.count)
    found = [each for each in found if asked.only is None or asked.only in each.name]
    if not found:
        raise MutationError(f"no mutation has {asked.only!r} in its name")
    return found


def _try_all(root: Path, chosen: Sequence[Mutation], equivalents: Sequence[EquivalentChange], *, near: bool) -> int:
    missed = 0
    with tempfile.TemporaryDirectory(prefix="headrace-mutations-") as folder:
        copy = TreeCopy(root, Path(folder) / "tree")
        for mutation in chosen:
            source = (root / mutation.file).read_text("utf-8")
            if (reason := reason_if_equivalent(mutation, source, equivalents)) is not None:
                _say(f"equivalent  {mutation.name}: {mutation.file}:{mutation.line(source)}: {reason}")
                continue
            began = time.monotonic()
            stages = [Stage(mutation.tests)] if mutation.tests else stages_for(root, mutation.file)
            finding = copy.try_mutation(mutation, stages[:1] if near else stages)
            missed += finding.end != "caught"
            _say(report_line(finding, source, time.monotonic() - began))
    _say(f"{len(chosen)} mutations, {missed} not caught")
    return 1 if missed else 0


def reason_if_equivalent(mutation: Mutation, source: str, equivalents: Sequence[EquivalentChange]) -> str | None:
    """Why a mutation changes no behaviour; None when it is not in the list."""
    before, after = (text.strip() for text in changed_lines(mutation, source))
    wanted = (mutation.file, before, after)
    return next((each.reason for each in equivalents if (each.file, each.before, each.after) == wanted), None)


def report_line(finding: Finding, source: str, seconds: float) -> str:
    """What became of a mutation; of one that was not caught, also the change itself."""
    mutation = finding.mutation
    place = f"{mutation.file}:{mutation.line(source)}"
    told = f"{finding.end:<10}  {mutation.name}  {place}  {seconds:.0f} s"
    if finding.test is not None:
        told += f"  by {finding.test}"
    else:
        told += "\n" + describe_change(mutation, source)
    return told + "".join(f"\n  fails without the mutation, too: {test}" for test in finding.broken)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
