/* records.h - the predictor's view of j particles: RECORDS records of four doubles (x, y, z and one
 * more) in one vector. AVX-512 takes two; elsewhere a record is a quad of the instruction set's
 * header. */
#ifndef RECORDS
#define RECORDS 1
typedef quad records;
/* The records at p and, if there are two, at p + next. */
#define records_load(p, next) q_load(p)
#define records_set q_set
#define records_set1 q_set1
#define records_add q_add
#define records_sub q_sub
#define records_mul q_mul
#define records_fma q_fma
/* time - *since, and time - since[next], in the lanes of x, y, z; 0 in the fourth. */
HOST_DEVICE records records_elapsed(double time, const double *since, int next)
{
    (void)next;
    return q_three(time - *since);
}
/* Splits x, y, z on the grid of integers; the fourth lane stays whole in hi. */
#define records_split q_split
/* Writes RECORD_GROUP records as columns of three or four rows, each 16 apart. In the vectors of
 * the group, records lie in the order of record_of. */
#define records_store_columns q_store_columns
#endif

/* Place in the group of the first record of vector n; a second one is RECORD_STEP after it. */
enum { RECORD_STEP = 4 };
HOST_DEVICE int record_of(int n) { return n % 4 + n / 4 * RECORD_STEP * RECORDS; }
