/* embed.h - what bridge.c passes to the start function of the bridge module (python/embed.c). */
#pragma once

#include "core/device.h"

/* Paths and texts are in UTF-8 or the file system's encoding. Only `site` may be NULL. */
struct embed {
    int64_t build;          /* EMBED_BUILD: library and bridge must be of the same build */
    const char *executable; /* the executable that the embedded Python reports as its own */
    const char *package;    /* folder grape6py */
    const char *site;       /* folder to import from after all others, or NULL */
    const char *devices;    /* GRAPE6_DEVICES, or empty */
    char text[DEVICE_TEXT]; /* why it failed */
};

/* Starts Python if none runs. Positive; or 0 or a negative code, with the text. */
typedef int embed_starter(struct embed *how, const struct bridge **bridge);

#define EMBED_STARTER "grape6_bridge_start"

enum { EMBED_BUILD = (sizeof(struct device) << 16) + (sizeof(struct bridge) << 4) + 4 };
