"""`Block`: a titled table, tree or list of notes, rendered as text, for rich, or as HTML."""

from __future__ import annotations

import html
import io
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_TEXT_WIDTH = 110


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of a tree, and the lines below it."""

    text: str
    branches: tuple[Branch, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A title, a table of texts, trees and notes."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    trees: tuple[Branch, ...] = ()


def as_rich(blocks: Sequence[Block]) -> Any:
    """A rich renderable."""
    from rich.console import Group  # noqa: PLC0415 - only who prints pays for loading it
    from rich.text import Text  # noqa: PLC0415

    parts: list[Any] = []
    for block in blocks:
        parts.append(Text(plain(block.title), style="bold"))
        parts += [_rich_table(block)] if block.header else []
        parts += map(_rich_tree, block.trees)
        parts += [Text(f"  {plain(note)}") for note in block.notes]
    return Group(*parts)


def _rich_table(block: Block) -> Any:
    from rich.table import Table  # noqa: PLC0415 - only who prints pays for loading it
    from rich.text import Text  # noqa: PLC0415

    table = Table()
    for name in block.header:
        table.add_column(name, overflow="fold")
    for row in block.rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def _rich_tree(branch: Branch) -> Any:
    from rich.text import Text  # noqa: PLC0415 - only who prints pays for loading it
    from rich.tree import Tree  # noqa: PLC0415

    tree = Tree(Text(plain(branch.text), overflow="fold"))
    for each in branch.branches:
        tree.children.append(_rich_tree(each))
    return tree


def as_text(blocks: Sequence[Block]) -> str:
    """Plain text, no colours."""
    from rich.console import Console  # noqa: PLC0415 - only who prints pays for loading it

    out = io.StringIO()
    console = Console(file=out, width=_TEXT_WIDTH, color_system=None, legacy_windows=False)
    for block in blocks:
        # Paths are copied from the output, so long ones are not wrapped.
        out.write(f"{plain(block.title)}\n")
        if block.header:
            console.print(_rich_table(block))
        for tree in block.trees:
            console.print(_rich_tree(tree))
        out.writelines(f"{_note(note)}\n" for note in block.notes)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def plain(text: str) -> str:
    """The text without control characters, which names and paths may contain."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _note(note: str) -> str:
    return textwrap.fill(
        plain(note),
        _TEXT_WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def as_html(blocks: Sequence[Block]) -> str:
    """An HTML fragment."""
    return "<div>" + "".join(map(_html_block, blocks)) + "</div>"


def _html_block(block: Block) -> str:
    head = _html_row("th", block.header) if block.header else ""
    body = "".join(_html_row("td", row) for row in block.rows)
    table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>" if head else ""
    trees = "".join(map(_html_branch, block.trees))
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in block.notes)
    lists = "".join(f"<ul>{items}</ul>" for items in (trees, notes) if items)
    return f"<h4>{html.escape(block.title)}</h4>{table}{lists}"


def _html_branch(branch: Branch) -> str:
    below = "".join(map(_html_branch, branch.branches))
    return f"<li>{html.escape(branch.text)}" + (f"<ul>{below}</ul>" if below else "") + "</li>"


def _html_row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
