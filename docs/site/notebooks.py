"""The notebooks as pages, with what their cells give: each is executed when the site is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "examples" / "notebooks"


def pages() -> dict[str, str]:
    return {f"notebooks/{path.stem}.md": page(executed(path), path.name) for path in sorted(FOLDER.glob("*.ipynb"))}


def executed(path: Path) -> Any:
    """The notebook with its outputs. A cell that fails ends the build."""
    import nbformat
    from nbclient import NotebookClient

    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}}).execute()
    return notebook


def page(notebook: Any, name: str) -> str:
    text = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text.append(cell.source)
        else:
            text.append(f"```python\n{cell.source}\n```")
            if printed := "".join(output.text for output in cell.outputs if output.output_type == "stream").rstrip():
                text.append(f"``` {{ .text .output }}\n{printed}\n```")
            text += [given(output.data) for output in cell.outputs if "data" in output]
    text.append(f"*This page is `examples/notebooks/{name}`, executed when the site was built.*")
    return "\n\n".join(text) + "\n"


def given(data: Any) -> str:
    """The value of a cell, as Markdown."""
    if "application/vnd.jupyter.widget-view+json" in data:
        return "*In a notebook the view is here. On this site there are [views of other runs](../views.md).*"
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return f'<div class="output">\n{data[kind]}\n</div>'
    if "image/png" in data:
        return f"![what the cell draws](data:image/png;base64,{data['image/png'].strip()})"
    return f"``` {{ .text .output }}\n{data['text/plain']}\n```"
