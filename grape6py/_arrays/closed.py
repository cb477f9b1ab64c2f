"""Objects that refuse to be given an attribute which would do nothing."""

import inspect
from typing import ClassVar, NoReturn

from grape6py.errors import ReadOnlyError, meant


class Closed:
    """Its public attributes are those of the class; those without a setter are changed by calls."""

    _SET_BY: ClassVar[dict[str, str]] = {}  # such calls

    def __getattr__(self, name: str) -> NoReturn:
        kind = type(self)
        if name[0] == "_" or hasattr(kind, name):  # whose own error is raised again
            object.__getattribute__(self, name)
        hint = meant(name, (known for known in dir(kind) if known[0] != "_"))
        text = f"a {kind.__name__} has no attribute {name}{hint}"
        raise AttributeError(text, name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        kind = type(self)
        own = getattr(kind, name, Closed)
        is_data = own is not Closed and not callable(own)
        if name[0] == "_" or (own.fset if isinstance(own, property) else is_data):
            super().__setattr__(name, value)
            return
        options = inspect.signature(kind.__init__).parameters
        if own is not Closed:
            call = kind._SET_BY.get(name)
            reason = f"{name} cannot be set: " + (f"call {call}" if call else "calls change it")
        elif name in options:
            reason = f"{name} is fixed from the start: make a new {kind.__name__}({name}=...)"
        else:
            known = [known for known in {*dir(kind), *options} if known[0] != "_"]
            reason = f"a {kind.__name__} has no attribute {name}{meant(name, known)}"
        raise ReadOnlyError(reason)
