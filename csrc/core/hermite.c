/* hermite.c - see hermite.h. */
#include "core/hermite.h"

void hermite_predict(int ni, const int *address, double time, const struct hermite_state *s,
                     double (*xi)[3], double (*vi)[3])
{
    for (int i = 0; i < ni; i++) hermite_predict_one(s, address[i], time, xi[i], vi[i]);
}

int hermite_correct(int ni, const int *address, double time, const struct hermite_rule *rule,
                    const struct hermite_state *s, const double (*acc)[3], const double (*jerk)[3],
                    const double *noise, double (*xi)[3], double (*vi)[3])
{
    int held = 0;
    for (int i = 0; i < ni; i++) {
        double x[3], v[3]; /* of their own: acc and xi may be one array */
        held += hermite_correct_one(rule, s, address[i], time, acc[i], jerk[i],
                                    noise ? noise[i] : -1.0, x, v);
        for (int k = 0; k < 3; k++) xi[i][k] = x[k], vi[i][k] = v[k];
    }
    return held;
}
