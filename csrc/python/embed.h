/* embed.h - what bridge.c hands to the starter of the bridge module (python/embed.c). */
#pragma once

#include "core/device.h"

/* The paths and words are UTF-8 or whatever the file system has; all but `site` are set. */
struct embed {
    int64_t build;          /* EMBED_BUILD: library and bridge are of one build */
    const char *executable; /* python that the embedded one shall think it is */
    const char *package;    /* folder grape6py */
    const char *site;       /* folder to import from after all others, or NULL */
    const char *devices;    /* GRAPE6_DEVICES, or empty */
    char text[DEVICE_TEXT]; /* why it failed */
};

/* Positive, or 0 or a negative code with the text. Starts Python if none runs. */
typedef int embed_starter(struct embed *how, const struct bridge **bridge);

#define EMBED_STARTER "grape6_bridge_start"

enum { EMBED_BUILD = (sizeof(struct device) << 16) + (sizeof(struct bridge) << 4) + 3 };
