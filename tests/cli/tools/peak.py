#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""peak.py FILE COMMAND...: runs the command, writes its largest resident set in bytes to FILE, and
ends with its exit code."""
import os
import resource
import subprocess
import sys

# Memory that is only reserved does not count; MALLOC_PERTURB_ would fill it.
environment = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}
code = subprocess.call(sys.argv[2:], env=environment)
with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write(f"{1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}\n")
sys.exit(code if code >= 0 else 128 - code)
