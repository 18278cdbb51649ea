/* The limit on devices, which sizes the tables of every layer. */
#pragma once

enum { SPW_DEVICES_MAX = 64 };
