/* snapshot.h - reads the snapshots of the example programs, for C and C++.
 *
 * A snapshot is text: one line a body, m x y z vx vy vz, with G = 1; # starts a comment,
 * blank lines are skipped. Numbers are as C or Fortran writes them: 1.5e-3, 1.5D-3 and
 * 1.5-103. Any bytes and lines of any length may come: what is no snapshot is refused with
 * the number of the line and the reason, and it is the caller who stops.
 *
 *   struct snapshot s;
 *   char fault[SNAPSHOT_FAULT];
 *   if (snapshot_load("plummer.dat", &s, fault) != 0) puts(fault); */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SNAPSHOT_FAULT = 120, SNAPSHOT_WORD = 128 };

struct snapshot {
    int n;                       /* bodies */
    double *m, (*x)[3], (*v)[3]; /* to be freed by the caller, or by snapshot_free */
};

static inline void snapshot_free(struct snapshot *s)
{
    free(s->m), free(s->x), free(s->v);
    s->n = 0, s->m = NULL, s->x = s->v = NULL;
}

/* Makes room for that many bodies; 0 if there is no memory for them. */
static inline int snapshot_grow(struct snapshot *s, int bodies)
{
    size_t number = (size_t)bodies;
    void *m = realloc(s->m, number * sizeof *s->m), *x, *v;
    if (m != NULL) s->m = (double *)m;
    x = realloc(s->x, number * sizeof *s->x);
    if (x != NULL) s->x = (double (*)[3])x;
    v = realloc(s->v, number * sizeof *s->v);
    if (v != NULL) s->v = (double (*)[3])v;
    return m != NULL && x != NULL && v != NULL;
}

static inline int snapshot_blank(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Next word of the line, what does not fit or cannot be printed left out or as a ?.
 * Returns its true length; 0 at the end of the line, which is then over; EOF likewise. */
static inline long snapshot_word(FILE *f, char word[SNAPSHOT_WORD])
{
    long length = 0;
    int c = getc(f);

    while (c != '\n' && snapshot_blank(c)) c = getc(f);
    if (c == '#')
        while (c != '\n' && c != EOF) c = getc(f);
    for (; c != EOF && c != '#' && !snapshot_blank(c); c = getc(f)) {
        if (length < SNAPSHOT_WORD - 1) word[length] = (char)(c > ' ' && c < 127 ? c : '?');
        length++;
    }
    word[length < SNAPSHOT_WORD ? length : SNAPSHOT_WORD - 1] = '\0';
    if (length == 0) return c == EOF ? EOF : 0;
    ungetc(c, f);
    return length;
}

/* Value of a word; 0 if it is not a finite number. strtod sees decimal digits first, so
 * that it takes no nan, infinity or hexadecimal number. */
static inline int snapshot_number(const char word[SNAPSHOT_WORD], double *value)
{
    char text[SNAPSHOT_WORD + 1], *end;
    size_t sign = *word == '+' || *word == '-';
    size_t digits = sign + strspn(word + sign, "0123456789."), from = digits;

    memcpy(text, word, digits);
    text[digits] = '\0';
    if (word[digits] != '\0') { /* an exponent, with or without its letter */
        if (strchr("eEdDqQ", word[from]) != NULL) from++;
        text[digits] = 'e';
        strcpy(text + digits + 1, word + from);
    }
    *value = strtod(text, &end);
    return digits > sign && *end == '\0' && fabs(*value) <= DBL_MAX;
}

/* Reads a snapshot to the end of the file. 0; or -1 with the reason in fault, and no bodies. */
static inline int snapshot_read(FILE *f, struct snapshot *s, char fault[SNAPSHOT_FAULT])
{
    static const char *const column[7] = {"m", "x", "y", "z", "vx", "vy", "vz"};
    char word[SNAPSHOT_WORD];
    long line = 1, length;
    double b[7];
    int k = 0, room = 0;

    s->n = 0, s->m = NULL, s->x = s->v = NULL;
    *fault = '\0';
    do {
        length = snapshot_word(f, word);
        if (length > 0) {
            if (k == 7)
                snprintf(fault, SNAPSHOT_FAULT, "line %ld: more than 7 numbers", line);
            else if (length >= SNAPSHOT_WORD || !snapshot_number(word, b + k))
                snprintf(fault, SNAPSHOT_FAULT, "line %ld: %s = '%.40s' is not a finite number",
                         line, column[k], word);
            else if (k++ == 0 && b[0] < 0.0)
                snprintf(fault, SNAPSHOT_FAULT, "line %ld: negative mass", line);
            continue;
        }
        if (k > 0 && k < 7 && !ferror(f))
            snprintf(fault, SNAPSHOT_FAULT, "line %ld: %d of the 7 numbers m x y z vx vy vz", line,
                     k);
        if (k == 7) {
            if (s->n == room) {
                int more = room == 0 ? 1024 : room <= INT_MAX / 2 ? 2 * room : 0;
                if (more == 0 || !snapshot_grow(s, more)) {
                    snprintf(fault, SNAPSHOT_FAULT, "line %ld: no memory for more bodies", line);
                    break;
                }
                room = more;
            }
            s->m[s->n] = b[0];
            memcpy(s->x[s->n], b + 1, sizeof *s->x);
            memcpy(s->v[s->n++], b + 4, sizeof *s->v);
        }
        k = 0;
        line++;
    } while (*fault == '\0' && length != EOF);
    if (*fault == '\0' && ferror(f)) snprintf(fault, SNAPSHOT_FAULT, "cannot be read");
    if (*fault == '\0' && s->n == 0) snprintf(fault, SNAPSHOT_FAULT, "no bodies in it");
    if (*fault == '\0') return 0;
    snapshot_free(s);
    return -1;
}

/* The same from the file of this name. */
static inline int snapshot_load(const char *name, struct snapshot *s, char fault[SNAPSHOT_FAULT])
{
    FILE *f = fopen(name, "r");
    int status;

    s->n = 0, s->m = NULL, s->x = s->v = NULL;
    if (f == NULL) {
        snprintf(fault, SNAPSHOT_FAULT, "cannot be opened");
        return -1;
    }
    status = snapshot_read(f, s, fault);
    fclose(f);
    return status;
}

#endif
