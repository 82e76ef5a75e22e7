"""Which files of the suite are about a file of `front`: what a mutant of it breaks, they notice."""

from __future__ import annotations

OF_FRONT = {
    "assignment": "statements dataclasses", "attribute_lookup": "reached launched_again",
    "attributes": "dataclasses functions arrays views launched_again enumerations constness",
    "builtins": "functions pointers values loops", "bytecode_names": "reached launched_again",
    "call": "functions dataclasses calls methods", "callables": "functions calls methods meeting compute",
    "closures": "meeting joins context_managers calls repeated", "computed_names": "reached launched_again",
    "conditions": "conditions expressions", "context": "errors places meeting launched_again",
    "context_managers": "context_managers", "control_flow": "joins statements context_managers meeting places",
    "definition": "places calls meeting", "dependencies": "reached launched_again constness",
    "element_calls": "element_results element_functions",
    "expr": "expressions meeting repeated places errors calls", "functions": "calls functions places repeated",
    "items": "expressions dataclasses", "loops": "loops places meeting element_results",
    "object_state": "reached launched_again constness", "op_calls": "methods calls errors element_results",
    "operators": "compile_time dataclasses static_eval functions strict_constants places bits",
    "private_names": "dataclasses", "program": "kernels errors arguments launch",
    "proxies": "static_eval methods views", "python_objects": "constants functions constness dataclasses values",
    "records": "dataclasses launched_again", "repeated_calls": "repeated meeting launched_again calls",
    "repeated_ops": "repeated meeting", "scope": "meeting repeated launched_again expressions",
    "source_text": "places calls functions dataclasses", "static": "static_eval errors reached",
    "static_names": "static_eval meeting", "stmt": "statements places loops",
    "syntax": "places static_eval printing", "term_joins": "joins meeting repeated loops element_results",
}


def files_about(path: str) -> list[str]:
    """The files of the suite that are about a file of source; none for other rooms than `front`."""
    room, _, name = path.removeprefix("cutile/").removesuffix(".py").rpartition("/")
    names = OF_FRONT.get(name, "") if room == "front" else ""
    return [f"conformance/test_{n}.py" for n in names.split()]
