"""A launch with checks: all findings become one error when the blocks have run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cutile.errors import TileInternalError
from cutile.interp.exec.block_set import Dim3, Launch
from cutile.interp.sanitize import alias, race_ops
from cutile.interp.sanitize.findings import CheckedLaunch
from cutile.interp.schedule import ExecutionPlan
from cutile.ir.nodes import Kernel


def run(kernel: Kernel, plan: ExecutionPlan, grid: Dim3, step_limit: int | None, args: Sequence,
        blocks: Callable[[Launch], None]) -> None:
    """Run the blocks. TileSanitizerError if the checks found anything. If the launch raised another error, that becomes
    its `__cause__`.
    """
    launch = CheckedLaunch(grid, step_limit, plan.noted)
    if "alias" in plan.checks:
        alias.check(launch, kernel, args)
    if "race" in plan.checks:
        launch.state[race_ops.NAME] = race_ops.AccessHistory(grid, args)
    try:
        blocks(launch)
    except TileInternalError:
        raise
    except Exception as e:
        if (found := launch.error()) is not None:
            raise found from e
        raise
    finally:
        launch.print_notes()
    if (found := launch.error()) is not None:
        raise found
