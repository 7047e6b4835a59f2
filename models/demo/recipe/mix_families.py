"""All template families of all kinds, by kind and as one list."""

from __future__ import annotations

import arithmetic
import json_tasks
import problems
import reading
import stories
import talk
import tasks
import tools
from samples import Family

BY_KIND: dict[str, list[Family]] = {
    "problems": problems.FAMILIES, "arithmetic": arithmetic.FAMILIES, "tools": tools.FAMILIES, "json": json_tasks.FAMILIES,
    "reading": reading.FAMILIES, "stories": stories.FAMILIES, "tasks": tasks.FAMILIES, "talk": talk.FAMILIES,
}
ALL: list[Family] = [family for families in BY_KIND.values() for family in families]
