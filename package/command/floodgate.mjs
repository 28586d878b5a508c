#!/usr/bin/env node
import '../../gateway/cli/floodgate.mjs';
