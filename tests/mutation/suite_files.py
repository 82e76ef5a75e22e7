"""Which files of the suite are about a file of `front`, `analysis` or `passes`: what a mutant breaks, they notice."""

from __future__ import annotations

OF_FRONT = {
    "assignment": "statements dataclasses", "attribute_lookup": "reached unchanged launched_again unread_objects",
    "attributes": "dataclasses functions arrays views launched_again layouts_read enumerations constness",
    "builtins": "functions pointers values loops loop_exits",
    "bytecode_names": "reached unchanged launched_again unread_objects",
    "call": "functions dataclasses calls methods", "callables": "functions calls methods meeting compute",
    "closures": "meeting joins context_managers calls repeated",
    "computed_names": "reached unchanged launched_again unread_objects",
    "conditions": "conditions expressions", "context": "errors places meeting launched_again",
    "context_managers": "context_managers", "control_flow": "joins statements context_managers meeting places",
    "definition": "places calls meeting",
    "dependencies": "reached unchanged held_objects launched_again layouts_read unread_objects constness",
    "element_calls": "element_results element_functions",
    "expr": "expressions meeting repeated places errors calls", "functions": "calls functions places repeated",
    "items": "expressions dataclasses",
    "loop_else": "loops loop_exits statements joins", "loops": "loops loop_exits places meeting element_results",
    "object_state": "reached unchanged held_objects launched_again layouts_read unread_objects constness",
    "op_calls": "methods calls errors element_results",
    "operators": "compile_time dataclasses static_eval functions strict_constants places bits",
    "private_names": "dataclasses", "program": "kernels errors arguments launch",
    "proxies": "static_eval methods views", "python_objects": "constants functions constness dataclasses values",
    "records": "dataclasses launched_again", "repeated_calls": "repeated meeting launched_again calls",
    "repeated_ops": "repeated meeting", "scope": "meeting repeated launched_again expressions",
    "special_methods": "dataclasses enumerations launched_again",
    "source_text": "places calls functions dataclasses", "static": "static_eval errors reached held_objects",
    "static_names": "static_eval meeting", "stmt": "statements places loops loop_exits",
    "syntax": "places static_eval printing", "term_joins": "joins meeting repeated loops loop_exits element_results",
}
#: of `analysis` and `passes`, whose files have different names; short files first
OF_PASSES = {
    "access": "load part_limits computed_indices slices",
    "affine": "index_limits part_limits guarded_tiles computed_indices computed_slices",
    "aliasing": "store ordering waits slices", "divisibility": "computed_slices slices pointers",
    "elements": "integer_arithmetic arithmetic element_functions waits",
    "float_ranges": "quotient_edges quotient_bounds quotient_uses quotient_powers row_division quotient_limits",
    "guards": "index_corners guarded_limits guarded_tiles",
    "inside": "index_corners part_limits guarded_tiles computed_indices",
    "live": "fused_uses machine",
    "ranges": "index_corners part_limits index_limits guarded_limits computed_slices guarded_tiles "
              "computed_indices",
    "spin_wait": "ordering waits atomics",
    "tokens": "ordering computed_slices",
    "cse": "repeated_expressions repeated fused_uses", "dce": "fused_uses machine loops loop_exits counter_branches",
    "flatten_frames": "functions calls control_flow", "fma": "fused_uses machine calls arange",
    "licm": "waits loops loop_exits counter_branches repeated_expressions integer_arithmetic",
    "lift": "lifted_shapes element_functions element_results atomics",
    "loop_split": "counter_branches loops guarded_tiles", "relaxed_atomic": "atomics ordering",
    "shared_division": "quotient_edges quotient_bounds quotient_uses quotient_powers row_division quotient_limits",
    "short_reduction": "reductions reduce extremes",
    "structured_exits": "control_flow loop_exits loops functions", "waiting_load": "ordering waits atomics",
}


def files_about(path: str) -> list[str]:
    """The files of the suite that are about a file of source; none for rooms other than these."""
    room, _, name = path.removeprefix("cutile/").removesuffix(".py").rpartition("/")
    names = {"front": OF_FRONT, "analysis": OF_PASSES, "passes": OF_PASSES}.get(room, {}).get(name, "")
    return [f"conformance/test_{n}.py" for n in names.split()]
