"""Writes include/g6lib.f90, the Fortran module, out of include/g6lib.h. CMakeLists.txt calls it.

*x                    one number or structure, by reference
x[], (*x)[3], x[3]    arrays. Where the comment above has "x: double[m][n]", x[] is x(n, *)
"May be NULL: x, y."  in that comment: addresses, type(c_ptr), as all arrays of calls on a device
"In and out: x, y."   these are read and written; others without const are only written
"""

import os
import re
import sys
import textwrap
from pathlib import Path

INCLUDE = Path(__file__).resolve().parent.parent.parent / "include"
HEADER, MODULE = INCLUDE / "g6lib.h", INCLUDE / "g6lib.f90"

HEAD = """\
! g6lib.f90 - the GRAPE-6 host library (grape6py) for Fortran 2003 and later.
! Made from g6lib.h by csrc/api/fortran.py: changes belong there.
!
! Interfaces to every call of g6lib.h and its named constants; nothing else. Each function is the
! C function of that name: numbers go by value, arrays by reference. What a call does, and what
! holds for all, is in g6lib.h; here is what Fortran has otherwise. Old programs need no module:
! their CALL G6_OPEN(ID) reaches the same library through the names with an underscore, with all
! arguments by reference. In one program unit use either the module or those, not both.
!
!   use g6lib
!   ierr = g6_open(0)
!   ierr = g6_set_j_particle(0, i - 1, i, t, dt, m(i), k18, j6, a2, v(:, i), x(:, i))
!
! Conventions
!   kinds      integer(c_int), real(c_double); vectors of n particles are x(3, n)
!   address    slot in the j memory; as ipipe, self, entries of lists, and start, i_start and
!              j_start, counted from 0: list i is list(start(i) + 1:start(i + 1))
!   arrays     assumed-size, so that a contiguous array is passed without a copy. A type(c_ptr) is
!              c_loc of an array, which a comment describes, or c_null_ptr where it may be absent;
!              of arrays in the memory of a device the address there (c_devloc of CUDA Fortran)
!   text       character buffers are filled with a final c_null_char; pass character(len=80) and 80
module g6lib
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_float, c_int, c_long_long, &
      c_null_ptr, c_ptr, c_signed_char
   implicit none
   private :: c_char, c_double, c_float, c_int, c_long_long, c_null_ptr, c_ptr, c_signed_char
"""

TYPES = {
    "int": "integer(c_int)",
    "long long": "integer(c_long_long)",
    "unsigned long long": "integer(c_long_long)",
    "unsigned char": "integer(c_signed_char)",
    "float": "real(c_float)",
    "double": "real(c_double)",
    "char": "character(kind=c_char)",
    "void": "",
}
# "call argument" where the call writes what is not const.
WRITTEN = re.compile(r"(g6x_|get_|g6_get_)\w+ \w+|g6calc_last\w+ (acc|jerk|pot|nnbindex|rnnb)")
PHRASES = "May be NULL", "In and out"
INITIAL = {"passes": 1}  # members of structures that do not begin with 0

ITEM = re.compile(
    r"/\*(?P<comment>.*?)\*/|enum \{(?P<enum>.*?)\};"
    r"|struct (?P<structure>\w+) \{(?P<members>.*?)\n\};"
    r"|int (?P<call>\w+)\((?:void|(?P<arguments>.*?))\);",
    re.DOTALL,
)
NUMBER = re.compile(r"(G6X_\w+) = (-?\d+),?\s*(?:/\*(.*?)\*/)?", re.DOTALL)
DECLARATION = re.compile(rf"(const )?({'|'.join(TYPES)}|struct (\w+)) ?(.*)")


def one_line(text):
    """C text without the stars that begin the lines of comments."""
    return " ".join(re.sub(r"\n \*", " ", text).split())


def listed(phrase, comment):
    """Names behind a phrase."""
    found = re.search(rf"{phrase}: ([\w, ]+)\.", comment)
    return found[1].split(", ") if found else []


class Variable:
    """An argument, or a member of a structure."""

    def __init__(self, const, kind, structure, declarator):
        self.name = re.findall(r"\w+", declarator.replace("const ", ""))[0]
        self.const, self.structure, self.pointer = const, structure, "*" in declarator
        self.kind = f"type({structure})" if structure else TYPES[kind]
        sizes = [size or "*" for size in re.findall(r"\[(\w*)\]", declarator)]
        self.shape = [*sizes[::-1], *"*" * ("(*" in declarator)]
        if "*const" in declarator:
            self.const, self.kind, self.shape = True, "type(c_ptr)", ["*"]

    def declared(self, kind):
        shape = f"({', '.join(self.shape)})" if self.shape else ""
        return f"{kind} :: {self.name}{shape}"

    def address(self, attribute, initial=""):
        comment = f"  ! {self.declared(self.kind)}" if self.kind else ""
        return f"type(c_ptr){attribute} :: {self.name}{initial}{comment}"

    def member(self):
        if self.pointer:
            return self.address("", " = c_null_ptr")
        return self.declared(self.kind) + f" = {INITIAL.get(self.name, 0)}" * (not self.structure)

    def argument(self, call, comment):
        null, both = (self.name in listed(phrase, comment) for phrase in PHRASES)
        size = re.search(rf"\b{self.name}\b[\w, ]*: [a-z ]+\[\w+\]\[(\w+)\]", comment)
        if size and self.shape == ["*"]:
            self.shape = [size[1], "*"]
        if null or not self.kind or (self.shape and call.endswith("_device")):
            return self.address(", value")
        if not self.shape and not self.pointer:
            return self.declared(f"{self.kind}, value")
        written = not self.const and WRITTEN.fullmatch(f"{call} {self.name}")
        intent = "in" if not written else "inout" if both or self.structure else "out"
        return self.declared(f"{self.kind}, intent({intent})")


def variables(declarations, separator):
    """Those of `const double *t, (*x)[3]` and the like."""
    for declaration in filter(None, re.split(separator, one_line(declarations))):
        *kind, declarators = DECLARATION.fullmatch(declaration).groups()
        yield from (Variable(*kind, each) for each in declarators.split(", "))


def interface(call, arguments, comment):
    found = list(variables(arguments or "", ", "))
    names = [variable.name for variable in found]
    for unknown in {name for phrase in PHRASES for name in listed(phrase, comment)} - {*names}:
        sys.exit(f"{HEADER}: {call} has no argument {unknown}")
    head = f"      integer(c_int) function {call}({', '.join(names)}) bind(c)"
    yield "\n" + " &\n".join(textwrap.wrap(head, 97, subsequent_indent=" " * 9))
    yield "         import"
    yield from (f"         {variable.argument(call, comment)}" for variable in found)
    yield "      end function"


def module(header):
    """The text."""
    body = header.split('extern "C" {\n#endif')[1].split("#ifdef __cplusplus")[0]
    for line in ITEM.sub("", body).split("\n"):
        if line.strip():
            sys.exit(f"{HEADER}: not understood: {line}")
    first, calls, comment = [], [], ""
    for item in ITEM.finditer(body):
        if item["comment"]:
            comment = one_line(item["comment"])
            calls += [f"\n      ! {comment}"] * comment.startswith("----")
        elif item["enum"]:
            first.append("")
            for name, value, said in NUMBER.findall(item["enum"]):
                lines = textwrap.wrap(one_line(said), 92)
                first += [f"   ! {line}" for line in lines]
                first.append(f"   integer(c_int), parameter :: {name} = {value}")
        elif item["structure"]:
            members = variables(re.sub(r"(?s)/\*.*?\*/", "", item["members"]), "; ?")
            first.append(f"\n   type, bind(c) :: {item['structure']}")
            first += [*(f"      {variable.member()}" for variable in members), "   end type"]
        else:
            calls += interface(item["call"], item["arguments"], comment)
    lines = [*first, "\n   interface", *calls, "\n   end interface\n", "end module g6lib\n"]
    return HEAD + "\n".join(lines)


def main():
    text = module(HEADER.read_text(encoding="ascii"))
    if MODULE.exists() and MODULE.read_text(encoding="ascii") == text:
        return
    half = MODULE.with_name(f"{MODULE.name}.{os.getpid()}")
    try:
        half.write_text(text, encoding="ascii")
        half.replace(MODULE)
    except OSError as error:
        sys.exit(f"{MODULE} cannot be written: {error.strerror}")


if __name__ == "__main__":
    main()
