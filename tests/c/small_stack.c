/* Every call from a thread with a stack of 64 KB (row 37). */
#include "board.h"

#include <limits.h>
#include <pthread.h>

static void *work(void *argument)
{
    Board *b = argument;
    int bad = board_everything(b, 2, 1);
    bad += g6_open_all() != 0 || g6_close_all() != 0 || g6_close(2) != 0;
    b->list[0] = bad;
    return NULL;
}

int main(void)
{
    Board *b = board_new();
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, 65536) != 0 ||
        pthread_create(&thread, &attributes, work, b) != 0) {
        return 99;
    }
    pthread_join(thread, NULL);
    return b->list[0];
}
