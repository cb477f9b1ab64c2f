"""Mistakes on purpose, as changes of the library's sources: python mutants.py FOLDER.

Builds for tests (GRAPE6_TEST_HOOKS) compile the copies in the folder in place of the files of csrc
(CMakeLists.txt), and make the mistake that GRAPE6_TEST_MISTAKE names: one that libraries of this
API have made or may make. tests/c/mutants.c has the longer ones. tests/api/test_mistakes.py checks
that each is noticed."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# By file: what is inserted, and the text that it follows. Mistakes are named in MUTANT.
PATCHES = {
    "shared/predictor.h": [
        ("    *xp = fma(dt, fma(dt, fma(dt, x3, a2), v), x);\n",
         "if (MUTANT(velocity_power)) { "
         "*vp = fma(dt, fma(dt, dt * (2.0 * v2 - 3.0 * j6), a2 + a2), v); return; }")],
    "cpu/direct_pack.h": [
        ("        v2 = records_fma(dt, k, j6);\n    }\n",
         "if (MUTANT(velocity_power)) "
         "v2 = records_mul(dt, records_fma(records_set1(-1.0), j6, records_add(v2, v2)));")],
    "api/g6.c": [
        ("FORTRAN(g6_open, int *clusterid) {",
         "if (MUTANT(open_by_exported_name)) { extern int (*dlsym(void *, const char *))(int);"
         "return dlsym(0, \"g6_open\")(clusterid ? *clusterid : 0); }"),
        ("    s->time = ti;\n", "if (MUTANT(predict_in_set_ti)) mutants_let_go(&s->j);"),
        ("        if (code) (void)explain(s, code, address, index);\n",
         "if (!code && MUTANT(predict_in_set_ti)) mutants_hold(&s->j, address, s->time);"),
        ("        if (code && !first) first = explain(s, code, a, label);\n",
         "if (!code && MUTANT(predict_in_set_ti)) mutants_hold(&s->j, a, s->time);")],
    "session/force_list.c": [
        ("        l.highs = index + n - l.high;\n    }\n",
         "if (MUTANT(lists_empty)) l.lows = l.highs = 0;"
         "if (MUTANT(lists_truncated)) {"
         "    l.lows = l.lows < 256 ? l.lows : 256;"
         "    l.highs = l.highs < 256 - l.lows ? l.highs : 256 - l.lows; }")],
    "session/output.c": [
        ("                        float *distance)\n{\n", "if (MUTANT(stale_outputs)) return;")],
    "session/force.c": [
        ("static int begin(struct session *s, int nj, struct caller_arrays *from, int each)\n{\n",
         "if (MUTANT(nj_ignored)) nj = (int)s->j.capacity;"),
        ("    const int64_t zero_distances = s->backend->zero_distances(s->state);\n",
         "mutants_spoil_row(c->results.sum[SUM_AX], c->ni);")],
    "cpu/direct.c": [
        ("    jmemory_map(d->memory);\n",
         "if (MUTANT(self_by_distance)) mutants_self_by_distance(job, d->index);"
         "if (MUTANT(self_by_address)) mutants_self_by_address(job, d->index);")],
}  # fmt: skip


def mutated(name):
    """A file with its mistakes. Its lines keep their numbers and its name, for counts of lines."""
    path = ROOT / "csrc" / name
    text = path.read_text()
    for after, _ in PATCHES[name]:
        assert text.count(after) == 1, f"{name}: {after!r} stands there {text.count(after)} times"
    # From the last one on, so that those before it stay where they are.
    for after, inserted in sorted(PATCHES[name], key=lambda patch: -text.index(patch[0])):
        end = text.index(after) + len(after)
        here = f"\n#line {text.count(chr(10), 0, end) + 1}\n"
        text = f"{text[:end]}{here}{inserted}{here}{text[end:]}"
    return f'#include "{ROOT}/tests/c/mutants.h"\n#line 1 "{path}"\n{text}'


def main(folder):
    for path in {*Path(folder).rglob("*.[ch]")} - {Path(folder, "csrc", name) for name in PATCHES}:
        path.unlink()  # it had mistakes once
    for name in PATCHES:
        path, text = Path(folder, "csrc", name), mutated(name)
        if not path.exists() or path.read_text() != text:  # else it is not compiled again
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1])
